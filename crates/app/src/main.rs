//! newsreel, a complete Usenet news system in one binary: what was typed goes to its verb.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    newsreel_app::main()
}
