//! The examples of docs/cli.md, run as they are written.

use std::path::Path;

use super::world::Place;

/// One command, and the lines that it is said to print.
struct Example {
    line: usize,
    command: String,
    printed: Vec<String>,
}

fn examples() -> Vec<Example> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let text = std::fs::read_to_string(file).unwrap();
    let (mut examples, mut inside) = (Vec::<Example>::new(), false);
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            inside = line == "```console";
            continue;
        }
        if !inside {
            continue;
        }
        match line.strip_prefix("$ ") {
            Some(command) => {
                let command = command.to_owned();
                examples.push(Example { line: at + 1, command, printed: Vec::new() });
            }
            None => examples.last_mut().expect("a command first").printed.push(line.to_owned()),
        }
    }
    examples
}

/// Whether a line is as documented; `…` stands for anything.
fn fits(wanted: &str, got: &str) -> bool {
    let normal = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let (wanted, got) = (normal(wanted), normal(got));
    let mut rest = got.as_str();
    let parts: Vec<&str> = wanted.split('…').collect();
    for (at, part) in parts.iter().enumerate() {
        let part = part.trim();
        match rest.find(part) {
            Some(found) if at > 0 || found == 0 => rest = &rest[found + part.len()..],
            _ => return false,
        }
    }
    rest.trim().is_empty() || wanted.ends_with('…')
}

#[test]
fn the_examples_of_the_manual_do_what_it_says() {
    let place = Place::store();
    let examples = examples();
    assert!(examples.len() >= 25, "only {} examples were found", examples.len());
    let path = Path::new(env!("CARGO_BIN_EXE_millpond")).parent().unwrap().to_owned();
    for Example { line, command, printed } in examples {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{command} 2>&1")])
            .current_dir(place.directory())
            .env("PATH", format!("{}:{}", path.display(), std::env::var("PATH").unwrap()))
            .env_remove("MILLPOND_STORE")
            .output()
            .unwrap();
        let got = String::from_utf8(output.stdout).unwrap();
        let got: Vec<&str> = got.lines().collect();
        let all = printed.len() == got.len();
        let fit = all && printed.iter().zip(&got).all(|(wanted, got)| fits(wanted, got));
        assert!(fit, "docs/cli.md:{line}: $ {command}\nsaid: {printed:#?}\ngot: {got:#?}");
    }
}

#[test]
fn lines_fit_when_all_that_is_said_is_there() {
    assert!(fits("a … c", "a   b  c") && fits("…", "anything") && fits("a …", "a b c"));
    assert!(!fits("a … c", "a b") && !fits("a", "a b") && !fits("b …", "a b"));
}
