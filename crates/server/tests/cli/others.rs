//! Help, completions, tables, follow.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::world::Place;

#[test]
fn completions_are_made_for_each_shell() {
    let place = Place::store();
    for (shell, word) in [
        ("bash", "_millpond"),
        ("zsh", "#compdef"),
        ("fish", "complete"),
        ("powershell", "Register"),
    ] {
        let script = place.good(&["completions", shell]);
        assert!(script.contains(word) && script.contains("dead-letters"), "{shell}");
    }
}

#[test]
fn every_command_has_help_and_families_tell_their_exit_codes() {
    let place = Place::store();
    for family in ["queue", "sequence", "log", "consumer", "store", "bench"] {
        let help = place.good(&[family, "--help"]);
        assert!(help.contains("Exit codes") && help.contains("--json"), "{family}: {help}");
        let commands = help.lines().skip_while(|line| !line.starts_with("Commands:")).skip(1);
        for line in commands.take_while(|line| line.starts_with("  ")) {
            let words: Vec<&str> = line.split_whitespace().collect();
            assert!(words.len() > 2, "{family}: {line:?} says nothing");
        }
    }
}

#[test]
fn tables_have_titles_and_stay_within_their_lines() {
    let place = Place::store();
    place.good(&["queue", "create", "q"]);
    assert_eq!(place.good(&["queue", "list"]), "QUEUE\nq\n");
    place.good(&["queue", "send", "q", "two\nlines\u{1b}[31m"]);
    let peeked = place.good(&["queue", "peek", "q"]);
    assert_eq!(peeked.lines().count(), 2, "{peeked}");
    assert!(peeked.contains("two\\nlines\\u{1b}[31m"), "{peeked}");
    assert_eq!(place.good(&["queue", "peek", "q", "--client", "nobody"]), "");
}

#[test]
fn follow_prints_what_comes_until_it_is_stopped() {
    let place = Place::server();
    let Place::Server(_, server) = &place else { unreachable!("it is one") };
    place.good(&["queue", "create", "q"]);
    place.good(&["log", "create", "t", "--partitions", "2"]);
    let follow = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_millpond"))
            .args(arguments)
            .args(["--json", "--server", &server.url])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs")
    };
    let mut receiving = follow(&["queue", "receive", "q", "--follow", "--ack"]);
    let mut reading = follow(&["log", "follow", "t", "--from", "earliest"]);
    for number in 0..3 {
        let text = format!("m{number}");
        place.good(&["queue", "send", "q", &text]);
        place.good(&["log", "append", "t", &text, "--key", "k"]);
    }
    for (child, field) in [(&mut receiving, "body"), (&mut reading, "payload")] {
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().take(3);
        for (number, line) in lines.enumerate() {
            let line: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
            assert_eq!(line[field], format!("m{number}"));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
