//! A package of sources to be unpacked and built: one that is given, or C made by a seed, with a `configure` and a `Makefile`.
//!
//! Invariant: the same seed and number of sources make the same octets, so that figures of two days can be compared.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use newsreel_host::folder::Kind;
use newsreel_host::{Folder, OpenMode};

use super::volume::call;
use crate::error::Error;
use crate::load::Machine;
use crate::random::Dice;

/// The directory in a generated package.
const TOP: &str = "package";

/// So many sources share a header in the mean.
const SOURCES_A_HEADER: u32 = 2;

/// A header includes one at most so far before it, and chains stay within groups of so many.
const CHAIN_STEP: u32 = 4;
const CHAIN: u32 = 16;

/// Headers of the C library that `configure` looks for; a few of them nobody has.
const LOOKED_FOR: [&str; 12] = [
    "stdio", "stdlib", "string", "unistd", "errno", "fcntl", "dirent", "signal", "time", "ndir",
    "strbuf", "paths",
];

/// The end of what a build said that an error shows.
const SAID_MAX: usize = 600;

/// A package.
#[derive(Debug, Clone)]
pub struct Package {
    /// As `tar` unpacks it.
    pub tar: PathBuf,
    /// What the shell runs in its only directory, or where it was unpacked if it has more.
    pub build: String,
}

impl Package {
    /// Makes one of so many sources in `directory`.
    pub fn generated(
        directory: &Path,
        machine: Machine<'_>,
        sources: u32,
        seed: u64,
        build: &str,
    ) -> Result<Self, Error> {
        let top = directory.join(TOP);
        for folder in ["src", "include"] {
            machine.disk.create_dir_all(&top.join(folder))?;
        }
        let write = |name: &str, text: &str| -> Result<(), Error> {
            let file = machine.disk.open(&top.join(name), OpenMode::CreateNew)?;
            Ok(file.write_at(text.as_bytes(), 0)?)
        };
        let headers = (sources / SOURCES_A_HEADER).max(1);
        for n in 0..headers {
            write(&format!("include/h{n}.h"), &header(n, seed))?;
        }
        for n in 0..sources {
            write(&format!("src/s{n}.c"), &source(n, headers, seed))?;
        }
        write("src/main.c", &main_source(sources))?;
        write("configure", &configure())?;
        write("Makefile", MAKEFILE)?;
        let tar = directory.join("package.tar");
        let words = [
            "-cf".as_ref(),
            tar.as_os_str(),
            "-C".as_ref(),
            directory.as_os_str(),
            TOP.as_ref(),
        ];
        call("tar", words)?;
        call("rm", ["-rf".as_ref(), top.as_os_str()])?;
        Ok(Self {
            tar,
            build: build.to_owned(),
        })
    }

    /// Unpacks it in a directory; where it is to be built.
    pub(super) fn unpack(&self, at: &Path) -> Result<PathBuf, Error> {
        let words = [
            "-xf".as_ref(),
            self.tar.as_os_str(),
            "-C".as_ref(),
            at.as_os_str(),
        ];
        call("tar", words)?;
        let mut entries = Vec::new();
        for entry in Folder::open(at)?.entries()? {
            entries.push(entry?);
        }
        Ok(match entries.as_slice() {
            [one] if one.kind == Kind::Folder => at.join(&one.name),
            _ => at.to_path_buf(),
        })
    }

    /// Builds it.
    pub(super) fn build(&self, at: &Path) -> Result<(), Error> {
        let failed = |why: String| Error::Program {
            program: format!("{} (in {})", self.build, at.display()),
            why,
        };
        let mut command = Command::new("sh");
        command.args([OsStr::new("-c"), self.build.as_ref()]);
        command.current_dir(at).stdin(Stdio::null());
        let output = command
            .output()
            .map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        let said: Vec<char> = said.trim().chars().collect();
        let end: String = said
            .iter()
            .skip(said.len().saturating_sub(SAID_MAX))
            .collect();
        Err(failed(format!("it ended with {}: {end}", output.status)))
    }
}

const MAKEFILE: &str = "CFLAGS = -O2 -I. -Iinclude\n\
    OBJECTS = $(patsubst %.c,%.o,$(wildcard src/*.c))\n\
    program: $(OBJECTS)\n\
    \t$(CC) -o $@ $(OBJECTS)\n\
    $(OBJECTS): config.h $(wildcard include/*.h)\n";

/// As the usual ones do: a program a question, compiled and removed.
fn configure() -> String {
    let mut text = "echo '/* made by configure */' > config.h\n".to_owned();
    for name in LOOKED_FOR {
        let upper = name.to_uppercase();
        // Writing to a text cannot fail.
        let _ = write!(
            text,
            "printf '#include <{name}.h>\\nint main(void) {{ return 0; }}\\n' > conftest.c\n\
             if ${{CC:-cc}} -c conftest.c -o conftest.o 2> conftest.err; then echo '#define HAVE_{upper}_H 1' >> config.h; fi\n\
             rm -f conftest.c conftest.o conftest.err\n"
        );
    }
    text.push_str(
        "grep -q HAVE_STDIO_H config.h || { echo 'the C compiler cannot compile' >&2; exit 1; }\n",
    );
    text
}

fn header(n: u32, seed: u64) -> String {
    let mut dice = Dice::new(seed, 0x68, u64::from(n));
    let mut number = || dice.next() as u32;
    // Chains of headers end at every sixteenth: compilers bound how deep they go.
    let below = n.checked_sub(1 + number() % CHAIN_STEP);
    let below = below.filter(|_| n % CHAIN >= CHAIN_STEP);
    let mut text = format!("#ifndef H{n}_H\n#define H{n}_H\n");
    let value = match below {
        Some(below) => {
            let _ = writeln!(text, "#include \"h{below}.h\"");
            format!("mix{below}(value >> 3)")
        }
        None => "value".to_owned(),
    };
    let _ = write!(
        text,
        "#define LIMIT{n} {}u\n\
         struct record{n} {{ unsigned key; unsigned values[{}]; }};\n\
         static inline unsigned mix{n}(unsigned value) {{ return ({value} ^ {}u) * {}u; }}\n\
         #endif\n",
        number() % 1000,
        1 + number() % 32,
        number(),
        number() | 1,
    );
    text
}

/// Functions of a source.
const FUNCTIONS: u32 = 8;

fn source(n: u32, headers: u32, seed: u64) -> String {
    let mut dice = Dice::new(seed, 0x73, u64::from(n));
    let mut number = || dice.next() as u32;
    let mut text =
        "#include \"config.h\"\n#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
            .to_owned();
    let used = [number() % headers, number() % headers, number() % headers];
    for header in used {
        let _ = writeln!(text, "#include \"h{header}.h\"");
    }
    for (function, header) in (0..FUNCTIONS).zip(used.into_iter().cycle()) {
        let _ = write!(
            text,
            "static unsigned work{function}(const struct record{header} *records, unsigned count) {{\n\
             \x20   unsigned sum = {}u;\n\
             \x20   for (unsigned i = 0; i < count; i++) {{\n\
             \x20       sum = mix{header}(sum + records[i].key);\n\
             \x20       if (sum % {}u < LIMIT{header}) sum ^= records[i].values[0] << {};\n\
             \x20   }}\n\
             \x20   return sum;\n}}\n",
            number(),
            1 + number() % 2000,
            number() % 16,
        );
    }
    let _ = write!(
        text,
        "unsigned source{n}(unsigned count) {{\n    unsigned sum = 0;\n"
    );
    for (function, header) in (0..FUNCTIONS).zip(used.into_iter().cycle()) {
        let _ = writeln!(
            text,
            "    {{ struct record{header} *records = calloc(count, sizeof *records);\n\
             \x20     if (records) sum += work{function}(records, count);\n\
             \x20     free(records); }}"
        );
    }
    text.push_str("    return sum;\n}\n");
    text
}

fn main_source(sources: u32) -> String {
    let mut text = "#include <stdio.h>\n".to_owned();
    for n in 0..sources {
        let _ = writeln!(text, "unsigned source{n}(unsigned count);");
    }
    text.push_str("int main(void) {\n    unsigned sum = 0;\n");
    for n in 0..sources {
        let _ = writeln!(text, "    sum += source{n}(100);");
    }
    text.push_str("    printf(\"%u\\n\", sum);\n    return 0;\n}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_follow_from_the_seed_and_chains_of_headers_are_short() {
        assert_eq!(source(3, 50, 7), source(3, 50, 7));
        assert_ne!(source(3, 50, 7), source(3, 50, 8));
        let below = |n: u32| -> Option<u32> {
            let text = header(n, 7);
            let mut lines = text.lines();
            let name = lines.find_map(|line| line.strip_prefix("#include \"h"))?;
            name.strip_suffix(".h\"")?.parse().ok()
        };
        for n in 0..500 {
            let chain =
                std::iter::successors(Some(n), |&n| below(n).inspect(|&next| assert!(next < n)));
            assert!(chain.count() <= CHAIN as usize, "{n}");
        }
        assert!((0..500).filter(|&n| below(n).is_some()).count() > 250);
    }
}
