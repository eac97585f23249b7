//! What newsreel's own server keeps is not turned over behind its back.

use std::ops::ControlFlow;
use std::path::Path;

use newsreel_host::Folder;
use newsreel_layout::convert::{Options, Refusal, Target, convert, plan};
use newsreel_layout::{
    ATTRIBUTE, Algorithm, Error, Mark, SET_MARK, SET_UID, set_around, set_at_or_above,
};

use crate::world::{World, put, tree};

/// A set's directory with a group in it.
fn set() -> (World, Folder) {
    let world = World::new();
    put(&world.group(), Path::new(SET_MARK), b"").unwrap();
    let misc = Path::new("misc");
    world.group().make_folder(misc, 0o755).unwrap();
    let group = misc.join("test");
    world.group().make_folder(&group, 0o755).unwrap();
    let group = Folder::open(&world.path().join(group)).unwrap();
    for number in 1..20 {
        put(&group, Path::new(&number.to_string()), b"").unwrap();
    }
    (world, group)
}

fn run(folder: &Folder, target: Target) -> Result<u64, Error> {
    let mut go_on = |_| ControlFlow::Continue(());
    let report = convert(folder, target, Options::default(), &mut go_on)?;
    Ok(report.renames)
}

#[track_caller]
fn refused(folder: &Folder, target: Target, set: &Path) {
    let before = tree(folder);
    let planned = plan(folder, target).unwrap().refusals;
    assert!(
        planned.contains(&Refusal::OfSet(set.to_path_buf())),
        "{planned:?}"
    );
    let error = run(folder, target).unwrap_err().to_string();
    assert!(
        error.contains("`layouts` of the [[set]]") && error.contains(SET_MARK),
        "{error}"
    );
    assert_eq!(
        (tree(folder), Mark::read(folder).unwrap()),
        (before, Mark::None)
    );
}

/// A group of newsreel's own was converted behind its server's back, which took the articles for removed and then removed them.
#[test]
fn what_a_server_of_ours_keeps_is_not_converted() {
    let (world, group) = set();
    let own = world.path();
    let above = Folder::open(own.parent().unwrap()).unwrap();
    for target in [
        Target::On(Algorithm::YYY),
        Target::To(Algorithm::RANGE_1024),
    ] {
        refused(&group, target, &own);
        refused(&world.group(), target, &own);
        refused(&above, target, &own);
    }
    let beside = World::new_beside(&world, "other");
    assert_eq!(set_at_or_above(&group).unwrap(), Some(own.clone()));
    assert_eq!(set_at_or_above(&above).unwrap(), None);
    assert_eq!(set_around(&above).unwrap(), Some(own));
    assert_eq!(set_around(&beside).unwrap(), None);
    assert_eq!(run(&beside, Target::On(Algorithm::YYY)).unwrap(), 0);
}

/// Of what was turned over before there was this refusal, or by hand, there is a way back.
#[test]
fn a_mark_that_is_there_may_be_taken_off_and_a_bit_alone_tells_nothing() {
    let (world, group) = set();
    let mark = world.path().join(SET_MARK);
    world.group().remove(Path::new(SET_MARK)).unwrap();
    let before = tree(&group);
    run(&group, Target::On(Algorithm::YYY)).unwrap();
    put(&world.group(), Path::new(SET_MARK), b"").unwrap();
    assert!(
        run(&group, Target::To(Algorithm::RANGE_1024)).is_err(),
        "{mark:?}"
    );
    run(&group, Target::Off).unwrap();
    assert_eq!(tree(&group), before);
    // What lies in such directories may be as `layouts` has it.
    group.set_mode(0o755 | SET_UID).unwrap();
    assert_eq!(group.attribute(ATTRIBUTE).unwrap(), None);
    let error = run(&group, Target::Off).unwrap_err().to_string();
    assert!(error.contains("[[set]]"), "{error}");
}
