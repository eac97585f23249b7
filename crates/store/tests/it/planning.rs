//! What would be made or get another size is refused as doing it is, all of it before any of it is begun.

use std::path::Path;
use std::sync::Arc;

use newsreel_host::{Disk, MemoryDisk, OpenMode};
use newsreel_store::conformance::{Rig, config_of};
use newsreel_store::{Error, Store, StoreConfig};

use crate::common::{FILE, place, sized};

const ROOM: u64 = 1 << 20;

/// Two buffers that are written out.
fn two() -> StoreConfig {
    let mut config = config_of("cnfs", ROOM);
    config.buffers.iter_mut().for_each(|it| it.sparse = false);
    config
}

fn names(config: &StoreConfig) -> Vec<String> {
    config.buffers.iter().map(|it| it.name.clone()).collect()
}

fn create(disk: &Arc<dyn Disk>, config: &StoreConfig, names: &[String]) -> Result<(), Error> {
    Store::create(disk, place(), config, names, &[], &mut |_, _, _| {})
}

/// The only refusal: whose, and why.
fn only(refusals: Vec<(String, Error)>) -> (String, String) {
    let [(name, why)] = refusals.try_into().unwrap();
    (name, why.to_string())
}

/// A dry run had promised all of them what is free once, and the first was made before the second was refused.
#[test]
fn room_for_new_buffers_is_promised_once() {
    let config = two();
    let all = names(&config);
    let try_create = |disk: &Arc<dyn Disk>, config: &StoreConfig| {
        Store::try_create(disk, place(), config, &all).unwrap()
    };
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::with_capacity(2 * ROOM - 1024));
    let (name, why) = only(try_create(&disk, &config));
    assert_eq!(name, "C1");
    let lack = "it needs 1024 KiB, /spool/buffers has 1023 KiB free";
    assert!(why.contains(lack), "{why}");
    let error = create(&disk, &config, &all).unwrap_err();
    assert_eq!(error.to_string(), why);
    assert!(
        !disk.exists(Path::new("/spool")).unwrap(),
        "nothing is made"
    );

    create(&disk, &config, &all[..1]).unwrap();
    assert_eq!(only(try_create(&disk, &config)).0, "C1");
    let mut sparse = config.clone();
    sparse.buffers[1].sparse = true;
    assert!(try_create(&disk, &sparse).is_empty());

    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::with_capacity(3 * ROOM));
    create(&disk, &config, &all).unwrap();
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::with_capacity(3 * ROOM));
    assert!(try_create(&disk, &config).is_empty());
    // What a kill left of one has its room, which comes back.
    disk.create_dir_all(Path::new("/spool/buffers")).unwrap();
    let begun = Path::new("/spool/buffers/C1.unfinished");
    let file = disk.open(begun, OpenMode::CreateNew).unwrap();
    file.write_at(&[1; 1 << 20], ROOM / 2).unwrap();
    drop(file);
    assert!(try_create(&disk, &config).is_empty());
}

/// Whatever else stands in the way of one is known before the others are made.
#[test]
fn nothing_is_made_while_one_of_them_cannot_be() {
    let mut config = two();
    let all = names(&config);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::new());
    let at = Path::new("/device");
    config.buffers[1].path = Some(at.to_path_buf());
    let harms: [(&str, &[u8]); 3] = [
        ("it has room for 3 octets", &[0; 3]),
        ("no newsreel buffer", &[b'x'; 8192]),
        ("it is not blank: there is something at 0x2000", &{
            let mut octets = [0; 8193];
            octets[8192] = 1;
            octets
        }),
    ];
    for (expected, octets) in harms {
        if disk.exists(at).unwrap() {
            disk.remove(at).unwrap();
        }
        let file = disk.open(at, OpenMode::CreateNew).unwrap();
        file.set_len(ROOM).unwrap();
        file.write_at(octets, 0).unwrap();
        if octets.len() == 3 {
            file.set_len(3).unwrap();
        }
        let (name, why) = only(Store::try_create(&disk, place(), &config, &all).unwrap());
        assert_eq!(name, "C1");
        assert!(why.contains(expected), "{expected}: {why}");
        let error = create(&disk, &config, &all).unwrap_err();
        assert_eq!(error.to_string(), why);
        assert!(!disk.exists(Path::new(FILE)).unwrap(), "{expected}");
    }
}

#[test]
fn another_size_is_refused_alike_beside_the_server_and_without_it() {
    let before = two();
    let all = names(&before);
    let disk: Arc<dyn Disk> = Arc::new(MemoryDisk::with_capacity(4 * ROOM));
    let mut rig = Rig::new(Arc::clone(&disk), &before).unwrap();
    rig.place(1, 500).unwrap();
    rig.commit().unwrap();
    rig.checkpoint().unwrap();
    let addition = rig.store.addition();
    let sizes = |first: u64, second: u64| {
        let mut config = before.clone();
        (config.buffers[0].octets, config.buffers[1].octets) = (first, second);
        config
    };
    for (config, lacks) in [
        (sizes(2 * ROOM, ROOM), None),
        (
            sizes(2 * ROOM, 2 * ROOM),
            Some(("C1", "it needs 1024 KiB more, /spool/buffers has")),
        ),
        (
            sizes(4 * ROOM, ROOM),
            Some(("C0", "it needs 3072 KiB more, /spool/buffers has")),
        ),
        (sizes(ROOM / 2, ROOM), None),
        (sizes(8192, ROOM), Some(("C0", "no room for its bitmap"))),
    ] {
        let refusals = [
            Store::try_resize(&disk, place(), &config, &all),
            addition.try_resize(&config, &all),
        ];
        for refusals in refusals {
            let told = refusals
                .iter()
                .map(|(name, why)| (name.as_str(), why.to_string()));
            let told: Vec<_> = told.collect();
            match lacks {
                None => assert_eq!(told, []),
                Some((name, why)) => {
                    assert_eq!(told.len(), 1, "{told:?}");
                    assert_eq!(told[0].0, name);
                    assert!(told[0].1.contains(why), "{told:?}");
                }
            }
        }
    }
    // Doing it says the same.
    let config = sizes(4 * ROOM, ROOM);
    let why = only(addition.try_resize(&config, &all)).1;
    let error = addition.make_room(&config, "C0", &mut |_, _, _| {});
    assert_eq!(error.unwrap_err().to_string(), why);
    let error = Store::resize(&disk, place(), &config, "C0", &mut |_, _, _| {});
    assert_eq!(error.unwrap_err().to_string(), why);
    let error = Store::try_resize(&disk, place(), &sized(ROOM), &["C9".to_owned()]);
    assert!(only(error).1.contains("C9"));
}
