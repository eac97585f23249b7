//! A buffer that is added while the engine runs.

use newsreel_store::BufferConfig;

use crate::world::{World, config};

/// Two who asked at once both found it missing, and its set had it twice.
#[test]
fn what_two_add_at_once_is_added_once() {
    let world = World::new(config(1 << 20));
    let mut wanted = world.config.clone();
    let more = BufferConfig {
        name: "C9".to_owned(),
        ..wanted.store.buffers[0].clone()
    };
    wanted.store.buffers.push(more);
    wanted.store.sets[0].buffers.push("C9".to_owned());
    let (engine, wanted) = (&world.engine, &wanted);
    assert_eq!(engine.missing_buffers(wanted), ["C9"]);
    let add = || engine.add_buffer(wanted, "C9", &mut |_, _, _| {}).is_ok();
    let added = std::thread::scope(|scope| {
        let threads = [(); 8].map(|()| scope.spawn(add));
        threads.map(|thread| thread.join().unwrap())
    });
    assert_eq!(added.iter().filter(|is_added| **is_added).count(), 1);
    assert!(engine.missing_buffers(wanted).is_empty());
    let names = engine
        .status()
        .buffers
        .into_iter()
        .map(|buffer| buffer.name);
    assert_eq!(names.collect::<Vec<_>>(), ["C0", "C1", "C9"]);
}
