//! A contract is only as good as its tests: every numbered clause of a `# Contract` section names the
//! conformance test that checks it, every such test is named by a clause, and the suite that backends
//! run holds them all.

use std::collections::BTreeSet;

use anyhow::Result;
use regex::Regex;

use crate::report::Outcome;
use crate::workspace::Workspace;

const CONTRACTS_IN: &str = "crates/store/src";
const SUITE: &str = "macro_rules! store_conformance";
const TESTS_IN: &str = "crates/testing/src/conformance";

/// One clause: its number and the tests it names.
struct Clause {
    number: usize,
    tests: Vec<String>,
}

/// The conformance tests.
#[derive(Default)]
struct Tests {
    /// Those that exist.
    written: BTreeSet<String>,
    /// Those that the macro makes a backend run.
    suite: BTreeSet<String>,
}

/// Clauses and conformance tests name each other.
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut contracts = Vec::new();
    let mut tests = Tests::default();
    for file in workspace.rust_files()? {
        if file.starts_with(CONTRACTS_IN) {
            contracts.extend(contracts_in(&workspace.read(&file)?)?);
        } else if file.starts_with(TESTS_IN) {
            tests.read(&workspace.read(&file)?)?;
        }
    }
    if contracts.is_empty() {
        return Ok(Outcome::failed(format!("no `# Contract` in the docs under {CONTRACTS_IN}")));
    }
    Ok(Outcome::from_problems(compare(&contracts, &tests)))
}

/// The clauses of each `# Contract` section in the documentation comments of a file.
fn contracts_in(text: &str) -> Result<Vec<Vec<Clause>>> {
    let numbered = Regex::new(r"^(\d+)\. ")?;
    let named = Regex::new(r"conformance::(\w+)")?;
    let mut contracts: Vec<Vec<Clause>> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim_start) {
        let Some(line) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            inside = false;
            continue;
        };
        let line = line.trim();
        if line.starts_with("# ") {
            inside = line == "# Contract";
            if inside {
                contracts.push(Vec::new());
            }
        }
        let Some(clauses) = contracts.last_mut().filter(|_| inside) else {
            continue;
        };
        if let Some(number) = numbered.captures(line).and_then(|found| found.get(1)) {
            clauses.push(Clause { number: number.as_str().parse()?, tests: Vec::new() });
        }
        if let Some(clause) = clauses.last_mut() {
            clause.tests.extend(first_groups(&named, line));
        }
    }
    Ok(contracts)
}

impl Tests {
    /// Adds what one file holds: `pub async fn name`, and lines `name,` in the suite's macro.
    fn read(&mut self, text: &str) -> Result<()> {
        let test = Regex::new(r"pub async fn (\w+)")?;
        let listed = Regex::new(r"(?m)^\s*(\w+),$")?;
        self.written.extend(first_groups(&test, text));
        if let Some((_, suite)) = text.split_once(SUITE) {
            self.suite.extend(first_groups(&listed, suite));
        }
        Ok(())
    }
}

fn first_groups<'a>(pattern: &'a Regex, text: &'a str) -> impl Iterator<Item = String> + 'a {
    let found = pattern.captures_iter(text).filter_map(|found| found.get(1));
    found.map(|group| group.as_str().to_owned())
}

fn compare(contracts: &[Vec<Clause>], tests: &Tests) -> Vec<String> {
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for clauses in contracts {
        for (index, clause) in clauses.iter().enumerate() {
            let number = clause.number;
            if number != index + 1 {
                problems.push(format!("clause {number} stands where {} should be", index + 1));
            }
            if clause.tests.is_empty() {
                problems.push(format!("clause {number} names no test (`conformance::…`)"));
            }
            for test in &clause.tests {
                named.insert(test);
                if !tests.written.contains(test) {
                    problems.push(format!(
                        "clause {number} names `{test}`, but {TESTS_IN} has no `pub async fn {test}`"
                    ));
                }
            }
        }
    }
    let unnamed = tests.written.iter().filter(|test| !named.contains(test));
    problems.extend(unnamed.map(|test| format!("no clause names the test `{test}`")));
    let unrun = tests.written.difference(&tests.suite);
    problems.extend(unrun.map(|test| format!("`{SUITE}` does not run the test `{test}`")));
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOCS: &str = "\
//! # Contract
//!
//! 1. **Get.** Strong. (`conformance::gets`)
//! 2. **Query.** Ordered, and
//!    complete. (`conformance::queries`)
//!
//! # Not the contract
//!
//! 3. Something else.
";
    const TESTS: &str = "pub async fn gets() {}\npub async fn queries() {}\n";
    const MACRO: &str = "macro_rules! store_conformance {\n    gets,\n    queries,\n}\n";

    fn problems(docs: &str, tests: &[&str]) -> Vec<String> {
        let mut read = Tests::default();
        for text in tests {
            read.read(text).expect("tests that parse");
        }
        compare(&contracts_in(docs).expect("docs that parse"), &read)
    }

    #[test]
    fn matching_clauses_and_tests_are_fine() {
        let contracts = contracts_in(DOCS).expect("docs that parse");
        let numbers: Vec<usize> = contracts.iter().flatten().map(|clause| clause.number).collect();
        assert_eq!(numbers, [1, 2]);
        assert_eq!(problems(DOCS, &[TESTS, MACRO]), Vec::<String>::new());
    }

    #[test]
    fn a_missing_test_is_reported() {
        let found = problems(DOCS, &["pub async fn gets() {}", MACRO]);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found.concat().contains("clause 2 names `queries`"), "{found:?}");
    }

    #[test]
    fn a_test_without_a_clause_and_outside_the_suite_is_reported_twice() {
        let found = problems(DOCS, &[TESTS, MACRO, "pub async fn forgotten() {}"]);
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().all(|said| said.contains("`forgotten`")), "{found:?}");
    }

    #[test]
    fn a_clause_without_a_test_or_in_the_wrong_place_is_reported() {
        let found = problems("/// # Contract\n/// 1. **A.** Nothing.\n/// 3. **B.** Nothing.", &[]);
        assert_eq!(found.len(), 3, "{found:?}");
    }
}
