//! The binary as a newcomer runs it.

use std::path::Path;
use std::process::{Command, Output};

fn millpond(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_millpond"));
    command.current_dir(directory).args(arguments).output().expect("the binary runs")
}

#[test]
fn the_demo_runs_twice_in_the_default_directory() {
    let directory = tempfile::tempdir().unwrap();
    for first in ["from number 0 on", "from number 500 on"] {
        let output = millpond(directory.path(), &["demo", "--messages", "500", "--bytes", "2000"]);
        let printed = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{output:?}");
        assert!(printed.contains(first), "{printed}");
        for line in ["store", "durable", "appended", "read", "removed"] {
            assert!(printed.contains(line), "{printed}");
        }
    }
    assert!(directory.path().join("millpond-data").is_dir());
}

#[test]
fn bad_input_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("a-file");
    std::fs::write(&file, "not a directory").unwrap();
    let cases: [(&[&str], &[&str]); 5] = [
        (&["demo", "--store", "redis://host"], &["--store", "redis"]),
        (&["demo", "--store", "a-file"], &["a-file"]),
        (&["demo", "--messages", "0"], &["--messages", "0"]),
        (&["demo", "--bytes", "7"], &["--bytes", "7"]),
        (&["demo", "--durability", "perhaps"], &["--durability", "unsafe-no-sync"]),
    ];
    for (arguments, named) in cases {
        let output = millpond(directory.path(), arguments);
        let printed = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?} was accepted");
        assert!(named.iter().all(|word| printed.contains(word)), "{arguments:?}: {printed}");
        assert!(!printed.contains("panicked"), "{printed}");
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1, "something was written");
}

#[test]
fn help_is_there() {
    let directory = tempfile::tempdir().unwrap();
    let printed = |arguments: &[&str]| {
        let output = millpond(directory.path(), arguments);
        assert!(output.status.success());
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert!(printed(&["--help"]).contains("demo"));
    let demo = printed(&["demo", "--help"]);
    assert!(demo.contains("--store <DIR>") && demo.contains("power failure loses"), "{demo}");
}
