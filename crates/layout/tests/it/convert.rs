//! Conversions: every way between the layouts, what is refused, what clashes, what is turned round.

use std::ops::ControlFlow;
use std::path::Path;

use newsreel_host::{ErrorKind, Folder};
use newsreel_layout::convert::{Options, Plan, Progress, STAGING, Target, convert, plan};
use newsreel_layout::verify::verify;
use newsreel_layout::{ATTRIBUTE, Algorithm, Error, Layout, Mark, SET_UID};

use crate::world::{World, link, put, soft, tree, view};

const YYY: Algorithm = Algorithm::YYY;
const RANGE: Algorithm = Algorithm::RANGE_1024;
const QUIET: fn(Progress) -> ControlFlow<()> = |_| ControlFlow::Continue(());

/// Every layout.
fn layouts() -> impl Iterator<Item = Layout> {
    let managed = Algorithm::ALL.into_iter().map(Layout::Managed);
    managed.chain([Layout::Flat])
}

fn target(layout: Layout) -> Target {
    match layout {
        Layout::Flat => Target::Off,
        Layout::Managed(algorithm) => Target::To(algorithm),
    }
}

fn run(folder: &Folder, target: Target) -> newsreel_layout::Result<u64> {
    let options = Options { verify: true };
    let report = convert(folder, target, options, &mut { QUIET })?;
    assert!(!report.differs(), "{report:?}");
    Ok(report.renames)
}

#[track_caller]
fn refusals(world: &World, target: Target) -> String {
    let error = run(&world.group(), target).unwrap_err();
    let Error::Refused { reasons, .. } = &error else {
        panic!("{error}");
    };
    // What is refused is said beforehand too, unless it is a matter of the mark itself.
    if let Ok(plan) = plan(&world.group(), target) {
        assert_eq!(&plan.refusals, reasons);
    }
    let text = error.to_string();
    text.split_once(" is not converted: ").unwrap().1.to_owned()
}

#[test]
fn every_layout_becomes_every_other_and_shows_the_same() {
    let world = World::with_odd_names();
    let group = world.group();
    let before = view(&group);
    assert!(before.len() > 25);
    for from in layouts() {
        for to in layouts() {
            for layout in [from, to] {
                run(&group, target(layout)).unwrap();
                let mark = match layout {
                    Layout::Flat => Mark::None,
                    Layout::Managed(algorithm) => Mark::Managed(algorithm),
                };
                assert_eq!(Mark::read(&group).unwrap(), mark);
                assert_eq!(view(&group), before, "{from} to {to}");
                assert!(!tree(&group).iter().any(|path| path.contains(STAGING)));
            }
        }
    }
}

#[test]
fn the_tree_of_1998() {
    let world = World::new();
    let group = world.group();
    for name in ["123456", "123457", "987", "foo", "345"] {
        put(&group, Path::new(name), b"").unwrap();
    }
    assert_eq!(run(&group, Target::On(YYY)).unwrap(), 5 + 4);
    let managed = [
        "034/",
        "034/345",
        "098/",
        "098/987",
        "345/",
        "345/123456",
        "345/123457",
        "aaa/",
        "aaa/foo",
    ];
    assert_eq!(tree(&group), managed);
    // As in 1998 the bit alone says it.
    group.remove_attribute(ATTRIBUTE).unwrap();
    assert_eq!(run(&group, Target::On(YYY)).unwrap(), 0);
    run(&group, Target::Off).unwrap();
    assert_eq!(tree(&group), ["123456", "123457", "345", "987", "foo"]);
    assert_eq!(group.facts().unwrap().mode, 0o755);
    assert_eq!(group.attribute(ATTRIBUTE).unwrap(), None);
}

#[test]
fn a_plan_says_what_would_be_done_and_changes_nothing() {
    let world = World::with_odd_names();
    let group = world.group();
    let before = (tree(&group), Mark::read(&group).unwrap());
    let plan = plan(&group, Target::On(Algorithm::ALL[1])).unwrap();
    assert_eq!((tree(&group), Mark::read(&group).unwrap()), before);
    let names = view(&group).len() as u64;
    let Plan {
        from,
        to,
        goes_on,
        entries,
        ..
    } = plan;
    assert_eq!((from, goes_on, entries), (Layout::Flat, None, names));
    assert_eq!(to, Layout::Managed(Algorithm::ALL[1]));
    assert!(plan.articles > 15 && plan.folders >= 3, "{plan:?}");
    assert_eq!((plan.relative_links, plan.refusals.len()), (1, 0));
    run(&group, Target::On(Algorithm::ALL[1])).unwrap();
    let made = tree(&group)
        .iter()
        .filter(|path| path.ends_with('/') && path.len() <= "34/56/".len())
        .filter(|path| path.split('/').all(|part| part.len() <= 2 || part == "aaa"))
        .count();
    assert_eq!(plan.new_folders, made as u64);
}

#[test]
fn what_is_unsafe_is_refused_with_a_word() {
    let world = World::new();
    let group = world.group();
    put(&group, Path::new(STAGING), b"").unwrap();
    assert_eq!(
        refusals(&world, Target::On(YYY)),
        "something in it is called .usenetfs-convert; rename that first"
    );
    group.remove(Path::new(STAGING)).unwrap();
    run(&group, Target::On(YYY)).unwrap();
    assert_eq!(
        refusals(&world, Target::On(RANGE)),
        "it is managed by yyy already; convert it `to` another algorithm"
    );
    put(&group, Path::new("123456"), b"").unwrap();
    assert_eq!(
        refusals(&world, Target::Off),
        "1 things in it are where its view does not find them; verify --repair it first"
    );
    group.remove(Path::new("123456")).unwrap();
    group.set_mode(0o755).unwrap();
    group.set_attribute(ATTRIBUTE, b"1 yyy").unwrap();
    assert_eq!(
        refusals(&world, Target::On(YYY)),
        "it is marked as managed by yyy, but its set-uid bit is off; verify --repair it first"
    );
}

#[test]
fn a_bucket_is_not_converted_but_what_a_view_shows_is() {
    for algorithm in Algorithm::ALL {
        let world = World::new();
        let group = world.group();
        for name in ["alt", "2600"] {
            group.make_folder(Path::new(name), 0o755).unwrap();
            put(&group, &Path::new(name).join("123456"), b"").unwrap();
        }
        run(&group, Target::On(algorithm)).unwrap();
        for path in tree(&group) {
            let Some(path) = path.strip_suffix('/') else {
                continue;
            };
            let folder = group.open_folder(Path::new(path)).unwrap();
            let is_view = path.ends_with("alt") || path.ends_with("2600");
            let result = run(&folder, Target::On(YYY));
            assert_eq!(result.is_ok(), is_view, "{algorithm} {path}");
            if let Err(error) = result {
                assert!(
                    error
                        .to_string()
                        .ends_with("it is a bucket of a managed directory")
                );
            }
        }
    }
}

#[test]
fn two_conversions_at_once_are_refused() {
    let world = World::new();
    let _lock = world.group().lock().unwrap();
    let error = run(&world.group(), Target::On(YYY)).unwrap_err();
    assert!(
        matches!(&error, Error::Host(e) if e.kind() == ErrorKind::Locked),
        "{error}"
    );
}

/// Stops in the first report of progress of each step.
fn stop_in(step: newsreel_layout::Step) -> impl FnMut(Progress) -> ControlFlow<()> {
    move |progress| {
        if progress.step == step {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}

#[test]
fn progress_is_told_and_may_stop_it() {
    let world = World::new();
    let group = world.group();
    for number in 0..600 {
        put(&group, Path::new(&number.to_string()), b"").unwrap();
    }
    let mut told = Vec::new();
    let mut listen = |progress: Progress| {
        told.push(format!(
            "{} {}/{}",
            progress.step, progress.done, progress.total
        ));
        ControlFlow::Continue(())
    };
    convert(&group, Target::On(YYY), Options::default(), &mut listen).unwrap();
    assert_eq!(
        told,
        [
            "scatter 0/600",
            "scatter 256/600",
            "scatter 512/600",
            "raise 0/60"
        ]
    );
    let mut stop = |progress: Progress| match progress.done {
        256 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = convert(&group, Target::Off, Options::default(), &mut stop).unwrap_err();
    assert!(matches!(stopped, Error::Interrupted { .. }), "{stopped}");
    let left = plan(&group, Target::Off).unwrap();
    assert_eq!(
        (left.entries, left.goes_on),
        (600 - 256, Some(newsreel_layout::Step::Spread))
    );
    run(&group, Target::Off).unwrap();
    assert_eq!(view(&group).len(), 600);
}

/// Of one that was stopped while buckets were lowered it said that nothing was left.
#[test]
fn what_is_left_is_told_in_every_step() {
    use newsreel_layout::Step::{Lower, Raise, Scatter, Spread};
    for (from, to, step, done, left) in [
        (Target::Off, Target::On(YYY), Scatter, 512, 88),
        (Target::Off, Target::On(YYY), Raise, 0, 600),
        (Target::On(YYY), Target::Off, Lower, 0, 600),
        (Target::On(YYY), Target::To(RANGE), Lower, 0, 600),
        (Target::On(YYY), Target::To(RANGE), Spread, 256, 600 - 256),
    ] {
        let world = World::fast();
        let group = world.group();
        for number in 1..=600 {
            put(&group, Path::new(&number.to_string()), b"").unwrap();
        }
        run(&group, from).unwrap();
        let mut stop = |progress: Progress| match (progress.step, progress.done) {
            (at, so_many) if at == step && so_many >= done => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        let stopped = convert(&group, to, Options::default(), &mut stop).unwrap_err();
        assert!(matches!(stopped, Error::Interrupted { .. }), "{stopped}");
        let plan = plan(&group, to).unwrap();
        assert_eq!(
            (plan.goes_on, plan.entries),
            (Some(step), left),
            "{from:?} {to:?}"
        );
        assert!(plan.refusals.is_empty(), "{plan:?}");
        // Those that are there are not made again.
        let all = if to == Target::On(YYY) { 60 } else { 1 };
        let makes = match step {
            Scatter => plan.new_folders > 0 && plan.new_folders < all,
            Lower if to != Target::Off => plan.new_folders == all,
            _ => plan.new_folders == 0,
        };
        assert!(makes, "{plan:?}");
        run(&group, to).unwrap();
        assert_eq!(view(&group).len(), 600);
    }
}

#[test]
fn a_conversion_is_turned_round_where_that_can_be() {
    use newsreel_layout::Step::{Lower, Raise, Scatter, Spread};
    let other = Algorithm::ALL[3];
    for (from, to, step) in [
        (Layout::Flat, Layout::Managed(YYY), Scatter),
        (Layout::Flat, Layout::Managed(YYY), Raise),
        (Layout::Managed(YYY), Layout::Flat, Lower),
        (Layout::Managed(YYY), Layout::Flat, Spread),
        (Layout::Managed(YYY), Layout::Managed(other), Lower),
        (Layout::Managed(YYY), Layout::Managed(other), Spread),
    ] {
        let world = World::with_odd_names();
        let group = world.group();
        let before = view(&group);
        run(&group, target(from)).unwrap();
        let options = Options { verify: true };
        convert(&group, target(to), options, &mut stop_in(step)).unwrap_err();
        assert_eq!(
            refusals(&world, Target::To(RANGE)),
            format!(
                "a conversion from {from} to {to} is under way; finish that one, or the one back, first"
            )
        );
        let mut stop = |_| ControlFlow::Break(());
        convert(&group, target(from), options, &mut stop).unwrap_err();
        let Mark::UnderWay(turned) = Mark::read(&group).unwrap() else {
            panic!("{from} to {to}");
        };
        assert_eq!((turned.from, turned.to), (to, from));
        run(&group, target(from)).unwrap();
        assert_eq!(view(&group), before, "{from} to {to}");
    }
}

#[test]
fn hard_links_between_managed_groups_stay() {
    let world = World::new();
    let group = world.group();
    let other = World::new_beside(&world, "other");
    for number in 1..50_u32 {
        let (a, b) = (number.to_string(), (number * 1000 + 7).to_string());
        put(&group, Path::new(&a), a.as_bytes()).unwrap();
        link(&group, &a, &other, &b);
    }
    let before = (view(&group), view(&other));
    run(&group, Target::On(YYY)).unwrap();
    run(&other, Target::On(RANGE)).unwrap();
    assert_eq!((view(&group), view(&other)), before);
    for number in 1..50_u32 {
        let place = |algorithm: Algorithm, name: String| {
            algorithm.place(newsreel_layout::Name::parse(name.as_ref()).unwrap())
        };
        let a = group.facts_of(&place(YYY, number.to_string())).unwrap();
        let b = other
            .facts_of(&place(RANGE, (number * 1000 + 7).to_string()))
            .unwrap();
        assert!(a.is_same_as(&b) && a.links == 2, "{a:?} {b:?}");
    }
}

/// ext2 after a power cut may have both names of a rename: one goes, nothing is lost, and the run ends.
#[test]
fn one_file_in_both_places_is_one_file() {
    let world = World::new();
    let group = world.group();
    for name in ["123456", "123457"] {
        put(&group, Path::new(name), name.as_bytes()).unwrap();
    }
    let before = view(&group);
    let mut stop = stop_in(newsreel_layout::Step::Scatter);
    convert(&group, Target::On(YYY), Options::default(), &mut stop).unwrap_err();
    let staging = group.open_folder(Path::new(STAGING)).unwrap();
    staging.make_folder(Path::new("345"), 0o755).unwrap();
    link(&group, "123456", &staging, "345/123456");
    run(&group, Target::On(YYY)).unwrap();
    assert_eq!(view(&group), before);
    let facts = group.facts_of(Path::new("345/123456")).unwrap();
    assert_eq!(facts.links, 1);
}

#[test]
fn two_files_with_a_claim_to_one_place_are_both_kept() {
    let world = World::new();
    let group = world.group();
    put(&group, Path::new("123456"), b"old").unwrap();
    let mut stop = stop_in(newsreel_layout::Step::Raise);
    convert(&group, Target::On(YYY), Options::default(), &mut stop).unwrap_err();
    // Somebody who does not know writes into the directory: the next conversion back finds two.
    let back = Target::Off;
    convert(
        &group,
        back,
        Options::default(),
        &mut stop_in(newsreel_layout::Step::Spread),
    )
    .unwrap_err();
    put(&group, Path::new("123456"), b"new").unwrap();
    let error = run(&group, back).unwrap_err();
    assert!(matches!(error, Error::Clash { .. }), "{error}");
    let kept = tree(&group);
    assert_eq!(
        kept,
        [
            ".usenetfs-convert/",
            ".usenetfs-convert/345/",
            ".usenetfs-convert/345/123456",
            "123456"
        ]
    );
    group
        .rename_new(Path::new("123456"), &group, Path::new("x"))
        .unwrap();
    run(&group, back).unwrap();
    assert_eq!(tree(&group), ["123456", "x"]);
}

#[test]
fn buckets_have_the_mode_of_the_directory() {
    let world = World::new();
    let group = world.group();
    group.set_mode(0o2771).unwrap();
    put(&group, Path::new("123456"), b"").unwrap();
    run(&group, Target::On(Algorithm::ALL[1])).unwrap();
    assert_eq!(group.facts().unwrap().mode, SET_UID | 0o2771);
    for path in ["34", "34/56"] {
        assert_eq!(
            group.facts_of(Path::new(path)).unwrap().mode,
            0o2771,
            "{path}"
        );
    }
    run(&group, Target::Off).unwrap();
    assert_eq!(group.facts().unwrap().mode, 0o2771);
}

/// Owner and mode were changed while a conversion lay stopped: the buckets made before kept the old ones.
#[test]
fn buckets_made_before_a_stop_follow_the_directory() {
    use newsreel_layout::Step::{Raise, Scatter, Spread};
    for (begin, target, step) in [
        (Target::Off, Target::On(RANGE), Scatter),
        (Target::Off, Target::On(Algorithm::ALL[1]), Raise),
        (Target::On(YYY), Target::To(RANGE), Spread),
    ] {
        let world = World::new();
        let group = world.group();
        for number in 0..2000 {
            put(&group, Path::new(&number.to_string()), b"").unwrap();
        }
        group.make_folder(Path::new("94400"), 0o700).unwrap();
        run(&group, begin).unwrap();
        // There are too few buckets to be told of in the middle of their moving.
        let mut stop = |progress: Progress| match (progress.step == step, progress.done) {
            (true, done) if done > 0 || step == Raise => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        convert(&group, target, Options::default(), &mut stop).unwrap_err();
        group.set_mode(0o2771).unwrap();
        if newsreel_host::process::own_uid() == 0 {
            group.set_owner(7001, 7100).unwrap();
            // Whoever changes the owner takes such bits off.
            group.set_mode(0o2771).unwrap();
        }
        run(&group, target).unwrap();
        let mut found = Vec::new();
        verify(&group, false, &mut |finding| {
            found.push(format!("{}: {}", finding.path.display(), finding.what));
        })
        .unwrap();
        assert_eq!(found, Vec::<String>::new(), "{target:?} {step}");
        let Mark::Managed(algorithm) = Mark::read(&group).unwrap() else {
            panic!("not managed");
        };
        // What lies in a bucket is none.
        let place = algorithm.place(newsreel_layout::Name::parse("94400".as_ref()).unwrap());
        assert_eq!(group.facts_of(&place).unwrap().mode, 0o700);
    }
}

#[test]
fn what_somebody_else_removes_meanwhile_is_told() {
    let world = World::new();
    let group = world.group();
    for name in ["1", "2"] {
        put(&group, Path::new(name), b"").unwrap();
    }
    let options = Options { verify: true };
    let mut stop = stop_in(newsreel_layout::Step::Scatter);
    convert(&group, Target::On(YYY), options, &mut stop).unwrap_err();
    group.remove(Path::new("1")).unwrap();
    let report = convert(&group, Target::On(YYY), Options::default(), &mut { QUIET }).unwrap();
    let counts = report
        .verified
        .map(|(before, after)| (before.entries, after.entries));
    assert_eq!((counts, report.differs()), (Some((2, 1)), true));
}

/// The owner of a directory led root out of it by a mark of their own and links where its conversion has buckets.
#[test]
fn a_conversion_is_led_nowhere_by_links_in_the_places_of_buckets() {
    let flat = ["16", "x"].map(Path::new);
    let staged = ["20"].map(|name| Path::new(".usenetfs-convert/000").join(name));
    for (mark, target, links, files) in [
        (
            "1 convert flat range1024 scatter",
            Target::On(RANGE),
            [".usenetfs-convert/r0", ".usenetfs-convert/aaa"].as_slice(),
            flat.map(Path::to_path_buf).to_vec(),
        ),
        (
            "1 convert yyy range1024 spread",
            Target::To(RANGE),
            &["r0"],
            staged.to_vec(),
        ),
    ] {
        let world = World::new();
        let outside = World::new_beside(&world, "outside");
        let group = world.group();
        for path in [".usenetfs-convert", ".usenetfs-convert/000"] {
            group.make_folder(Path::new(path), 0o755).unwrap();
        }
        for file in &files {
            put(&group, file, b"").unwrap();
        }
        for name in links {
            soft(&group, outside.path(), name);
        }
        group.set_attribute(ATTRIBUTE, mark.as_bytes()).unwrap();
        let before = tree(&group);
        let error = run(&group, target).unwrap_err().to_string();
        assert!(error.contains("ot a directory"), "{error}");
        assert_eq!(tree(&group), before);
        assert_eq!(tree(&outside), Vec::<String>::new(), "{mark}");
    }
}
