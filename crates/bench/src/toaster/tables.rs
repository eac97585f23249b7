//! The paper's figures as tables (Markdown) and as pictures.

use super::goals::goals;
use super::run::{Pass, Report, Run};
use super::variant::Variant;
use crate::error::Error;
use crate::plot;
use crate::storage::page::{heading, line};
use crate::usenetfs::GOAL_TITLES;

const MINUTE: f64 = 60.0;

/// Everything of a report as tables.
#[must_use]
pub fn markdown(report: &Report) -> String {
    let mut text = format!("{}\n", report.about.said());
    if let Some(why) = &report.warm {
        text.push_str(&format!(
            "Caches were not emptied between phases: {why}\n\n"
        ));
    }
    let plain = of_variant(report, Variant::Plain);
    section(
        &mut text,
        "What was asked, and what was seen",
        &asked(report),
    );
    section(
        &mut text,
        "Figure 2: articles unbatched in a second",
        &figure_2(&plain),
    );
    section(
        &mut text,
        "Figure 3: articles unbatched in a second, pass by pass",
        &by_pass(
            &plain,
            |pass| Some(pass.per_second),
            |rate| format!("{rate:.0}"),
        ),
    );
    section(&mut text, "Figure 4: expiry", &figure_4(&plain));
    section(
        &mut text,
        "Figure 5: minutes to send what came in the pass before",
        &by_pass(&plain, batch_minutes, |minutes| format!("{minutes:.3}")),
    );
    let both: Vec<&Run> = report
        .runs
        .iter()
        .filter(|run| is(run, Variant::SameDisk) || is(run, Variant::Plain))
        .filter(|run| has_same_disk(report, run))
        .collect();
    section(
        &mut text,
        "Figure 6: articles unbatched in a second, with the history on another disk (plain) and on the same",
        &by_pass(
            &both,
            |pass| Some(pass.per_second),
            |rate| format!("{rate:.0}"),
        ),
    );
    section(&mut text, "What options change", &options(report));
    section(&mut text, "Not measured", &skipped(report));
    text
}

/// The pictures, each with its name.
pub fn pictures(report: &Report) -> Result<Vec<(&'static str, String)>, Error> {
    let plain = of_variant(report, Variant::Plain);
    let bars = |of: fn(&Run) -> Option<f64>| -> Vec<(String, f64)> {
        let bars = plain.iter().filter_map(|run| Some((name(run), of(run)?)));
        bars.collect()
    };
    let curves = |runs: &[&Run], of: fn(&Pass) -> Option<f64>| -> Vec<(String, Vec<(f64, f64)>)> {
        let curve = |run: &&Run| {
            let points = run.passes.iter();
            let points = points.filter_map(|pass| Some((f64::from(pass.pass), of(pass)?)));
            (name(run), points.collect())
        };
        runs.iter().map(curve).collect()
    };
    let rates = ("pass", "articles/s");
    let both: Vec<&Run> = report
        .runs
        .iter()
        .filter(|run| has_same_disk(report, run))
        .collect();
    let mut pictures = vec![
        (
            "2",
            plot::bars(
                "Figure 2: articles unbatched in a second",
                &bars(|run| Some(run.per_second)),
            )?,
        ),
        (
            "3",
            plot::curves(
                "Figure 3: articles unbatched in a second",
                rates,
                &curves(&plain, |pass| Some(pass.per_second)),
            )?,
        ),
        (
            "4",
            plot::bars(
                "Figure 4: minutes of an expire phase",
                &bars(Run::expire_minutes),
            )?,
        ),
        (
            "5",
            plot::curves(
                "Figure 5: minutes of a batch phase",
                ("pass", "minutes"),
                &curves(&plain, batch_minutes),
            )?,
        ),
    ];
    if !both.is_empty() {
        let title = "Figure 6: history on another disk (plain) and on the same";
        let picture = plot::curves(title, rates, &curves(&both, |pass| Some(pass.per_second)))?;
        pictures.push(("6", picture));
    }
    Ok(pictures)
}

fn section(text: &mut String, title: &str, table: &str) {
    if !table.is_empty() {
        text.push_str(&format!("**{title}**\n\n{table}\n"));
    }
}

fn is(run: &Run, variant: Variant) -> bool {
    run.variant == variant.name()
}

fn of_variant(report: &Report, variant: Variant) -> Vec<&Run> {
    report.runs.iter().filter(|run| is(run, variant)).collect()
}

fn is_same(one: &Run, other: &Run) -> bool {
    (&one.place, &one.server, &one.method) == (&other.place, &other.server, &other.method)
}

/// Whether it is plain or with the history on the same disk, and the other is there.
fn has_same_disk(report: &Report, run: &Run) -> bool {
    let pair = [Variant::Plain, Variant::SameDisk];
    let has = |variant| {
        report
            .runs
            .iter()
            .any(|other| is(other, variant) && is_same(other, run))
    };
    pair.into_iter().any(|variant| is(run, variant)) && pair.into_iter().all(has)
}

fn name(run: &Run) -> String {
    let variant = match is(run, Variant::Plain) {
        true => String::new(),
        false => format!(", {}", run.variant),
    };
    let wrong = if run.complaints.is_empty() {
        ""
    } else {
        " (!)"
    };
    format!(
        "{} {} {}{variant}{wrong}",
        run.place, run.server, run.method
    )
}

fn batch_minutes(pass: &Pass) -> Option<f64> {
    Some(pass.batch.as_ref()?.seconds / MINUTE)
}

fn table(titles: &[&str], rows: Vec<Vec<String>>) -> String {
    let mut text = String::new();
    if rows.is_empty() {
        return text;
    }
    heading(
        &mut text,
        &titles
            .iter()
            .map(|&title| title.to_owned())
            .collect::<Vec<_>>(),
    );
    rows.into_iter().for_each(|row| line(&mut text, row));
    text
}

fn asked(report: &Report) -> String {
    let lines: String = goals(report).iter().map(super::Goal::markdown).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("{GOAL_TITLES}{lines}"),
    }
}

fn figure_2(runs: &[&Run]) -> String {
    let rows = runs.iter().map(|run| {
        let inn = runs
            .iter()
            .find(|one| one.server == "inn" && one.place == run.place);
        let ratio = inn.map(|inn| run.per_second / inn.per_second.max(1e-9));
        let count = |of: fn(&Pass) -> u64| run.passes.iter().map(of).sum::<u64>().to_string();
        vec![
            name(run),
            format!("{:.0}", run.per_second),
            ratio.map_or_else(String::new, |ratio| format!("{ratio:.2}")),
            format!("{:.1} %", 100.0 * run.ageing),
            run.eight_to_seven
                .map_or_else(String::new, |share| format!("{:.1} %", 100.0 * share)),
            count(|pass| pass.taken.accepted),
            count(|pass| pass.taken.refused + pass.taken.rejected),
        ]
    });
    let titles = [
        "",
        "articles/s",
        "INN's there = 1",
        "last pass : first",
        "pass 8 : 7",
        "accepted",
        "not taken",
    ];
    table(&titles, rows.collect())
}

fn by_pass(runs: &[&Run], of: fn(&Pass) -> Option<f64>, said: fn(f64) -> String) -> String {
    let Some(first) = runs
        .iter()
        .find(|run| run.passes.iter().any(|pass| of(pass).is_some()))
    else {
        return String::new();
    };
    let shown: Vec<usize> = (0..first.passes.len())
        .filter(|&place| first.passes.get(place).and_then(of).is_some())
        .collect();
    let passes = shown.iter().map(|place| (place + 1).to_string());
    let titles: Vec<String> = ["pass".to_owned()].into_iter().chain(passes).collect();
    let titles: Vec<&str> = titles.iter().map(String::as_str).collect();
    let rows = runs.iter().map(|run| {
        let values = shown
            .iter()
            .map(|&place| run.passes.get(place).and_then(of));
        let cells = values.map(|value| value.map_or_else(String::new, said));
        [name(run)].into_iter().chain(cells).collect()
    });
    table(&titles, rows.collect())
}

fn figure_4(runs: &[&Run]) -> String {
    let rows = runs.iter().map(|run| {
        let passes = || run.passes.iter().filter(|pass| pass.expire.articles > 0);
        let articles: u64 = passes().map(|pass| pass.expire.articles).sum();
        let seconds: f64 = passes().map(|pass| pass.expire.phase.seconds).sum();
        let settling: f64 = passes()
            .map(|pass| pass.expire.phase.settling_seconds)
            .sum();
        let written = run
            .passes
            .iter()
            .map(|pass| Some(pass.expire.phase.device?.written_octets));
        let written: Option<u64> = written.sum();
        let each = 1e6 / articles.max(1) as f64;
        vec![
            name(run),
            run.expire_minutes()
                .map_or_else(String::new, |minutes| format!("{minutes:.4}")),
            articles.to_string(),
            format!("{:.1}", seconds * each),
            format!("{:.1}", settling * each),
            written.map_or_else(String::new, |octets| format!("{:.1}", octets as f64 / 1e6)),
        ]
    });
    let titles = [
        "",
        "minutes of a phase",
        "went in all",
        "us each",
        "us each until durable",
        "MB written to the articles' disk, all phases",
    ];
    table(&titles, rows.collect())
}

/// As the paper says it: the time of each phase, as a share of that of the plain run.
fn options(report: &Report) -> String {
    let mut rows = Vec::new();
    for variant in Variant::ALL
        .into_iter()
        .filter(|one| *one != Variant::Plain)
    {
        for run in of_variant(report, variant) {
            let plain = of_variant(report, Variant::Plain);
            let Some(plain) = plain.into_iter().find(|plain| is_same(plain, run)) else {
                continue;
            };
            let pairs = run.seconds().into_iter().zip(plain.seconds());
            let shares = pairs.map(|(own, plain)| {
                let share = own
                    .zip(plain)
                    .map(|(own, plain)| 100.0 * own / plain.max(1e-9));
                share.map_or_else(String::new, |share| format!("{share:.1} %"))
            });
            let who = format!("{} {} {}", run.place, run.server, run.method);
            rows.push(
                [variant.is().to_owned(), who]
                    .into_iter()
                    .chain(shares)
                    .collect(),
            );
        }
    }
    table(
        &[
            "time of the plain run = 100 %",
            "",
            "unbatch",
            "batch",
            "expire",
        ],
        rows,
    )
}

fn skipped(report: &Report) -> String {
    let rows = report.skipped.iter();
    table(
        &["what", "why"],
        rows.map(|skip| vec![skip.what.clone(), skip.why.replace('\n', " ")])
            .collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::super::run::{Expired, Phase, Sent};
    use super::super::subject::Taken;
    use super::*;
    use crate::measure::machine::DeviceCost;

    fn phase(seconds: f64, written_octets: u64) -> Phase {
        let device = DeviceCost {
            read_octets: 0,
            written_octets,
            reads: 0,
            writes: 0,
            flushes: 0,
            service_ms: None,
        };
        Phase {
            seconds,
            settling_seconds: 0.5,
            device: Some(device),
        }
    }

    fn made(server: &str, method: &str, variant: Variant, seconds: f64) -> Run {
        let pass = |pass: u32| Pass {
            pass,
            batches: 2,
            articles: 100,
            octets: 1000,
            taken: Taken {
                accepted: 100,
                ..Taken::default()
            },
            per_second: 100.0 / seconds,
            unbatch: phase(seconds, 9),
            batch: pass.is_multiple_of(3).then_some(Sent {
                articles: 100,
                seconds: 2.0 * seconds,
            }),
            expire: Expired {
                articles: if pass > 6 { 100 } else { 0 },
                phase: phase(seconds, 0),
            },
        };
        Run {
            place: "ext4".into(),
            server: server.into(),
            method: method.into(),
            variant: variant.name().into(),
            file_system: "ext4".into(),
            batch_is: String::new(),
            passes: (1..=14).map(pass).collect(),
            per_second: 100.0 / seconds,
            ageing: 0.98,
            eight_to_seven: Some(1.1),
            digest: String::new(),
            remarks: Vec::new(),
            complaints: Vec::new(),
        }
    }

    fn report() -> Report {
        Report {
            runs: vec![
                made("newsreel", "cnfs", Variant::Plain, 1.0),
                made("newsreel", "cnfs", Variant::SameDisk, 1.5),
                made("newsreel", "tradspool-range1024", Variant::Plain, 4.0),
                made("inn", "tradspool", Variant::Plain, 6.0),
            ],
            ..Report::default()
        }
    }

    #[test]
    fn goals_compare_what_is_there() {
        let of = |report: &Report| -> Vec<(String, bool)> {
            goals(report)
                .into_iter()
                .map(|goal| {
                    let is_met = goal.is_met();
                    (goal.what, is_met)
                })
                .collect()
        };
        let said = of(&report());
        let expected = [
            ("ext4, cnfs: articles unbatched, as often as INN's", true),
            (
                "ext4, cnfs: written to the disk of articles while they expire",
                true,
            ),
            ("ext4, cnfs: rate of the last pass, of the first's", true),
            (
                "ext4, tradspool-range1024: articles unbatched, as often as INN's",
                false,
            ),
            (
                "ext4, tradspool-range1024: articles expired in a second, as often as `fastrm`'s files",
                false,
            ),
        ];
        assert_eq!(
            said,
            expected.map(|(what, is_met)| (what.to_owned(), is_met))
        );
        let mut without = report();
        without.runs.retain(|run| run.server != "inn");
        assert_eq!(of(&without).len(), 2);
        without.runs[0].complaints.push("wrong".into());
        assert_eq!(of(&without), []);
    }

    #[test]
    fn every_figure_has_its_table_and_its_picture() {
        let page = markdown(&report());
        for line in [
            "| ext4 newsreel cnfs | 100 | 6.00 | 98.0 % | 110.0 % | 1400 | 0 |",
            "| ext4 inn tradspool | 0.1000 | 800 | 60000.0 | 5000.0 | 0.0 |",
            "| pass | 3 | 6 | 9 | 12 |",
            "| ext4 newsreel cnfs, same-disk | 67 |",
            "| history on the same disk | ext4 newsreel cnfs | 150.0 % | 150.0 % | 150.0 % |",
        ] {
            assert!(page.contains(line), "{line} in\n{page}");
        }
        let pictures = pictures(&report()).unwrap();
        let names: Vec<_> = pictures.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["2", "3", "4", "5", "6"]);
        assert!(pictures[4].1.contains("ext4 newsreel cnfs, same-disk"));
        let mut plain = report();
        plain.runs.remove(1);
        assert!(!markdown(&plain).contains("Figure 6"));
        assert_eq!(super::pictures(&plain).unwrap().len(), 4);
    }
}
