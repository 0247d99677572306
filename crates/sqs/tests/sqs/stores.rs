//! The same tests on the stores that users have: this program runs itself again, with another one. Time stays virtual.
#![allow(clippy::unwrap_used, reason = "test code")]

use std::process::Command;

use crate::common::Kind;
use crate::common::store::VARIABLE;

/// What is about bytes and not about stores, and this file.
const NOT_ABOUT_STORES: [&str; 3] = ["hostile::", "signature::", "stores::"];

/// Runs the tests whose names have one of `words` in them, at least `least` of them.
fn run_on(kind: Kind, words: &[&str], least: usize) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.env(VARIABLE, kind.name()).args(words);
    command.envs([("AWS_EC2_METADATA_DISABLED", "true")]);
    for word in NOT_ABOUT_STORES {
        command.args(["--skip", word]);
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "on {kind:?}:\n{said}\n{complained}");
    let passed = said.lines().find_map(|line| line.strip_prefix("test result: ok. "));
    let passed: usize = passed.and_then(|line| line.split(' ').next()).unwrap().parse().unwrap();
    assert!(passed >= least, "only {passed} tests ran on {kind:?}:\n{said}");
}

#[test]
fn everything_holds_on_the_embedded_store() {
    run_on(Kind::Embedded, &[], 90);
}

#[test]
fn what_matters_most_holds_on_dynamodb_over_http() {
    let words = ["dead_letters::", "fifo::", "messages::", "queues::", "visibility::", "wire::"];
    run_on(Kind::DynamoDb, &words, 70);
}
