//! Doubts about where articles lie: what a spool has and its configuration does not name, articles that no rule takes, sets that no rule
//! reaches.  The spool's register is read, and nothing written.

use std::sync::Arc;

use newsreel_host::{Disk, RealDisk};
use newsreel_store::{RuleConfig, Store};

use super::doubts::Doubt;
use super::{Config, Unit};

/// All of them.
pub(super) fn doubts(config: &Config) -> Vec<Doubt> {
    let mut doubts: Vec<Doubt> = unnamed(config).into_iter().collect();
    doubts.extend(no_rule_for_all(config));
    doubts.extend(unreached(config));
    doubts
}

/// Buffers and sets of the spool that are not named: a start is refused without them.
fn unnamed(config: &Config) -> Option<Doubt> {
    let disk: Arc<dyn Disk> = Arc::new(RealDisk);
    let spool = &config.server.spool;
    let unnamed = Store::unnamed(&disk, spool, &config.store).ok()?;
    let first = unnamed.first()?;
    let last = crate::access::last_config(spool).ok().flatten();
    let lines: Vec<String> = unnamed
        .iter()
        .map(|name| lines(name, last.as_ref()))
        .collect();
    let what = format!(
        "the spool {} has {}, which this file does not name, and no server starts without: add {}; or, if the articles in it may go for good, \
         let it go with `newsreel serve --drop-buffer {first}`",
        spool.display(),
        unnamed.join(", "),
        lines.join(", and ")
    );
    Some(("buffer".to_owned(), what))
}

/// What would name a buffer or set, as the server that ran last had it.
fn lines(name: &str, last: Option<&Config>) -> String {
    let store = last.map(|last| &last.store);
    let buffer = store.and_then(|it| it.buffers.iter().find(|buffer| buffer.name == name));
    let set = store.and_then(|it| it.sets.iter().find(|set| set.name == name));
    match (buffer, set) {
        (Some(buffer), _) => {
            let path = buffer.path.as_ref();
            let path = path.map(|path| format!(" and path = \"{}\"", path.display()));
            format!(
                "a [[buffer]] with name = \"{name}\" and octets = \"{}\"{}",
                Unit::Octets.print(buffer.octets),
                path.unwrap_or_default()
            )
        }
        (None, Some(set)) => format!(
            "a [[set]] with name = \"{name}\" and method = \"{}\"",
            set.method
        ),
        (None, None) => {
            format!("a [[buffer]] or [[set]] with name = \"{name}\" and the size it was made with")
        }
    }
}

/// Rules of which none takes everything that is left.
fn no_rule_for_all(config: &Config) -> Option<Doubt> {
    let rules = &config.store.rules;
    if rules.is_empty() || rules.iter().any(RuleConfig::takes_everything) {
        return None;
    }
    let last = rules.len() - 1;
    let what = "articles that no rule is for are refused: if that is not meant, add a last [[rule]] that has nothing but the set for all others";
    Some((format!("rule[{last}].set"), what.to_owned()))
}

/// Sets that no rule brings anything into.
fn unreached(config: &Config) -> Vec<Doubt> {
    let rules = &config.store.rules;
    let all = rules.iter().position(RuleConfig::takes_everything);
    let (reached, behind) = rules.split_at(all.map_or(rules.len(), |at| at + 1));
    let names = |rules: &[RuleConfig], name: &str| rules.iter().any(|rule| rule.set == name);
    let sets = config.store.sets.iter().enumerate();
    let unreached = sets.filter(|(_, set)| {
        !set.is_attached() && !config.store.is_read_only(set) && !names(reached, &set.name)
    });
    let doubts = unreached.map(|(at, set)| {
        let why = match names(behind, &set.name) {
            true => "a rule in front of those that name it takes everything",
            false => "no rule names it",
        };
        let what = format!(
            "nothing comes into this set but by `newsreel store move`, as {why}: mend the rules"
        );
        (format!("set[{at}].name"), what)
    });
    doubts.collect()
}

#[cfg(test)]
mod tests {
    use super::super::doubts::tests::check;

    const SETS: &str = "[[buffer]]\nname = 'A'\noctets = '8MiB'\n[[set]]\nname = 'main'\nbuffers = ['A']\n[[set]]\nname = 'files'\nmethod = 'tradspool'\n";

    #[test]
    fn articles_without_a_rule_and_sets_that_nothing_comes_into() {
        let rules = |rules: &str| format!("{SETS}{rules}");
        let both = "[[rule]]\ngroups = 'comp.*'\nset = 'files'\n[[rule]]\nset = 'main'\n";
        check(&rules(both), &[]);
        let said = check(
            &rules(
                "[[rule]]\ngroups = 'comp.*'\nset = 'files'\n[[rule]]\ngroups = '*'\nlarger_than = 9\nset = 'main'\n",
            ),
            &[("rule[1].set", 16)],
        );
        assert!(said.contains("are refused"), "{said}");
        let said = check(&rules("[[rule]]\nset = 'main'\n"), &[("set[1].name", 8)]);
        assert!(said.contains("no rule names it"), "{said}");
        let said = check(
            &rules("[[rule]]\nset = 'main'\n[[rule]]\nset = 'files'\n"),
            &[("set[1].name", 8)],
        );
        assert!(said.contains("in front of those"), "{said}");
        check("", &[]);
    }
}
