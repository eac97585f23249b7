//! What the paper says of its figures 3 and 4, and where it does not hold.

use super::Outcome;
use crate::policies::PolicyKind;

/// Something the paper says, and whether it is so here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What the paper says.
    pub says: &'static str,
    /// It is so.
    pub holds: bool,
    /// The sizes at which it is not so, octets; of what is said of some size only, those at which it is.
    pub at: Vec<u64>,
}

#[derive(Debug, Clone, Copy)]
enum Measure {
    /// More hits.
    Hits,
    /// Fewer octets fetched.
    Octets,
}

/// One policy does better than another.
struct Claim {
    says: &'static str,
    measure: Measure,
    better: PolicyKind,
    worse: PolicyKind,
    /// Of ten sizes it may be otherwise at so many.
    exceptions: usize,
}

const fn claim(
    says: &'static str,
    measure: Measure,
    better: PolicyKind,
    worse: PolicyKind,
) -> Claim {
    Claim {
        says,
        measure,
        better,
        worse,
        exceptions: 0,
    }
}

const CLAIMS: &[Claim] = &[
    claim(
        "LRUG has more hits than LRUA",
        Measure::Hits,
        PolicyKind::Lrug,
        PolicyKind::Lrua,
    ),
    claim(
        "LRUG fetches less than LRUA",
        Measure::Octets,
        PolicyKind::Lrug,
        PolicyKind::Lrua,
    ),
    claim(
        "LRUA has more hits than LFUA",
        Measure::Hits,
        PolicyKind::Lrua,
        PolicyKind::Lfua,
    ),
    claim(
        "LFUG has more hits than LFUA",
        Measure::Hits,
        PolicyKind::Lfug,
        PolicyKind::Lfua,
    ),
    claim(
        "LETF has more hits than BAF",
        Measure::Hits,
        PolicyKind::Letf,
        PolicyKind::Baf,
    ),
    claim(
        "LETF has more hits than LFUA",
        Measure::Hits,
        PolicyKind::Letf,
        PolicyKind::Lfua,
    ),
    Claim {
        exceptions: 2,
        ..claim(
            "BAF has nearly always more hits than LFUA",
            Measure::Hits,
            PolicyKind::Baf,
            PolicyKind::Lfua,
        )
    },
    claim(
        "the mix of LRUA and LRUG has no more hits than LRUG",
        Measure::Hits,
        PolicyKind::Lrug,
        PolicyKind::Hybrid,
    ),
];

/// How a policy did at each size.
fn of(outcomes: &[(PolicyKind, Vec<Outcome>)], kind: PolicyKind) -> &[Outcome] {
    let mut found = outcomes.iter().filter(|(of, _)| *of == kind);
    found.next().map_or(&[], |(_, outcomes)| outcomes)
}

/// Compares what the paper says with outcomes, those of each policy in the order of the sizes.
#[must_use]
pub fn findings(sizes: &[u64], outcomes: &[(PolicyKind, Vec<Outcome>)]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CLAIMS
        .iter()
        .map(|claim| {
            let pairs = of(outcomes, claim.better)
                .iter()
                .zip(of(outcomes, claim.worse));
            let fails = |(better, worse): &(&Outcome, &Outcome)| match claim.measure {
                Measure::Hits => better.hits < worse.hits,
                Measure::Octets => better.fetched > worse.fetched,
            };
            let at = sizes.iter().zip(pairs);
            let at: Vec<u64> = at
                .filter(|(_, pair)| fails(pair))
                .map(|(size, _)| *size)
                .collect();
            Finding {
                says: claim.says,
                holds: at.len() * 10 <= claim.exceptions * sizes.len(),
                at,
            }
        })
        .collect();
    let pairs = of(outcomes, PolicyKind::Baf)
        .iter()
        .zip(of(outcomes, PolicyKind::Lfua));
    let somewhere = sizes.iter().zip(pairs);
    let somewhere = somewhere
        .filter(|(_, (baf, lfua))| baf.hits > lfua.hits && baf.fetched > lfua.fetched)
        .map(|(size, _)| *size);
    findings.push(said_of_some(
        "at some size BAF has more hits than LFUA and fetches more",
        somewhere.collect(),
    ));
    for (says, kind) in [
        (
            "at some size LRUG has fewer hits than with less room",
            PolicyKind::Lrug,
        ),
        (
            "at some size LFUG has fewer hits than with less room",
            PolicyKind::Lfug,
        ),
    ] {
        let falls = of(outcomes, kind).windows(2).zip(sizes.iter().skip(1));
        let falls = falls
            .filter(|(pair, _)| matches!(pair, [less, more] if more.hits < less.hits))
            .map(|(_, size)| *size);
        findings.push(said_of_some(says, falls.collect()));
    }
    findings
}

const fn said_of_some(says: &'static str, at: Vec<u64>) -> Finding {
    Finding {
        says,
        holds: !at.is_empty(),
        at,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policies::POLICIES;

    /// Each policy with these hits and octets fetched.
    fn outcomes(of: impl Fn(PolicyKind) -> [(u64, u64); 2]) -> Vec<(PolicyKind, Vec<Outcome>)> {
        let outcome = |(hits, fetched)| Outcome {
            hits,
            fetched,
            ..Outcome::default()
        };
        let rows = POLICIES.iter();
        rows.map(|row| (row.kind, of(row.kind).map(outcome).to_vec()))
            .collect()
    }

    fn held(findings: &[Finding], says: &str) -> (bool, Vec<u64>) {
        let found = findings.iter().find(|finding| finding.says.contains(says));
        let found = found.unwrap();
        (found.holds, found.at.clone())
    }

    #[test]
    fn what_does_not_hold_is_said_with_its_sizes() {
        let found = findings(
            &[10, 20],
            &outcomes(|kind| match kind {
                PolicyKind::Lrug => [(9, 1), (8, 5)],
                PolicyKind::Lrua => [(7, 2), (8, 4)],
                PolicyKind::Baf => [(6, 9), (6, 1)],
                PolicyKind::Lfua => [(5, 8), (7, 8)],
                _ => [(6, 6), (6, 6)],
            }),
        );
        assert_eq!(held(&found, "LRUG has more hits than LRUA"), (true, vec![]));
        assert_eq!(held(&found, "LRUG fetches less"), (false, vec![20]));
        assert_eq!(held(&found, "nearly always"), (false, vec![20]));
        assert_eq!(held(&found, "and fetches more"), (true, vec![10]));
        assert_eq!(held(&found, "LRUG has fewer hits"), (true, vec![20]));
        assert_eq!(held(&found, "LFUG has fewer hits"), (false, vec![]));
    }
}
