//! What is fetched before anybody asks for it.

use std::time::Duration;

use newsreel_cache::{PrefetchLimits, Prefetched};
use newsreel_wire::wildmat::Wildmat;
use tokio::time::Instant;

use crate::cached::{REFRESH_S, Rig, rig};

const ALL: PrefetchLimits = PrefetchLimits {
    articles: 1000,
    octets: 1 << 30,
    octets_per_s: 0,
};

async fn prefetch(rig: &Rig, groups: &str, limits: PrefetchLimits) -> Prefetched {
    let wildmat = Wildmat::parse(groups).unwrap();
    let mut goes_on = |_: &Prefetched| true;
    let fetching = rig.here.prefetch(&wildmat, limits, &mut goes_on);
    fetching.await.unwrap()
}

fn articles_asked(rig: &Rig) -> Vec<String> {
    let mut asked = rig.to.asked();
    asked.retain(|said| said.starts_with("ARTICLE"));
    asked
}

#[tokio::test(start_paused = true)]
async fn what_is_not_kept_is_fetched_in_few_round_trips_and_is_there() {
    let rig = rig(1000, REFRESH_S);
    rig.to.0.lock().articles.remove(&990);
    assert!(rig.read(1000).await.unwrap());
    while rig.here.kept_figures().articles < 1 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    rig.to.asked();
    let round_trip = Duration::from_millis(20);
    rig.to.0.lock().round_trip = round_trip;
    let begun = Instant::now();
    let newest = PrefetchLimits {
        articles: 500,
        ..ALL
    };
    let done = prefetch(&rig, "misc.*", newest).await;
    assert_eq!((done.matching, done.groups, done.failed), (1, 1, 0));
    assert_eq!((done.asked, done.articles, done.is_cut), (498, 498, false));
    // Three connections, windows of 48, and what is asked before.
    let trips = begun.elapsed().as_millis() / round_trip.as_millis();
    assert!(trips <= 12, "{trips} round trips");
    assert_eq!(articles_asked(&rig).len(), 498);
    for number in 501..=1000 {
        assert_eq!(rig.read(number).await, Ok(number != 990));
    }
    assert_eq!(articles_asked(&rig), [""; 0]);
    // Nothing is new.
    assert_eq!(prefetch(&rig, "misc.*", newest).await.asked, 0);
    assert_eq!(prefetch(&rig, "alt.*", ALL).await.matching, 0);
}

#[tokio::test(start_paused = true)]
async fn it_keeps_to_its_limits_and_ends_when_nobody_wants_it() {
    let rig = rig(500, REFRESH_S);
    let few = PrefetchLimits {
        octets: 100_000,
        ..ALL
    };
    let done = prefetch(&rig, "*", few).await;
    assert!(
        done.is_cut && done.octets <= 100_000 && done.octets > 50_000,
        "{done:?}"
    );
    assert_eq!(articles_asked(&rig).len() as u64, done.articles);
    let slow = PrefetchLimits {
        octets_per_s: 10_000,
        ..ALL
    };
    let begun = Instant::now();
    let done = prefetch(&rig, "*", slow).await;
    let least = Duration::from_secs(done.octets / 10_000);
    assert!(
        begun.elapsed() >= least,
        "{:?} for {done:?}",
        begun.elapsed()
    );
    let rig = crate::cached::rig(500, REFRESH_S);
    let wildmat = Wildmat::parse("*").unwrap();
    let mut asked = 0;
    let mut goes_on = |_: &Prefetched| {
        asked += 1;
        asked <= 2
    };
    let done = rig
        .here
        .prefetch(&wildmat, ALL, &mut goes_on)
        .await
        .unwrap();
    assert!(done.is_cut && done.articles < 200, "{done:?}");
}
