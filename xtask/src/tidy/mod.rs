//! `cargo xtask tidy`: everything that can be said about the code without running it.

mod cargo;
mod clauses;
mod file_sizes;
mod layers;
mod licences;
mod reasons;
mod words;

use anyhow::{Result, bail};

use crate::report::{Finished, Outcome};
use crate::workspace::Workspace;

/// Check format, lints, dependencies, file sizes, licences, words, contract, docs and features.
///
/// Prints a line per check and fails if any check does. `cargo fmt` repairs the format; the other
/// checks say what to change and where.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these checks: format, clippy, layers, file-sizes, licences, reasons, words, clauses,
    /// docs, features.
    checks: Vec<String>,
}

type Check = fn(&Workspace) -> Result<Outcome>;

/// The cheap checks come first, so that a small mistake is said at once.
const CHECKS: &[(&str, Check)] = &[
    ("format", cargo::format),
    ("file-sizes", file_sizes::check),
    ("words", words::check),
    ("clauses", clauses::check),
    ("layers", layers::check),
    ("licences", licences::check),
    ("reasons", reasons::check),
    ("clippy", cargo::clippy),
    ("docs", cargo::docs),
    ("features", cargo::features),
];

/// Runs the chosen checks; `true` when all is well.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<bool> {
    for chosen in &args.checks {
        if !CHECKS.iter().any(|(name, _)| name == chosen) {
            let known: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
            bail!("there is no check `{chosen}`; there are {}", known.join(", "));
        }
    }
    let mut all_well = true;
    for (name, check) in CHECKS {
        if !args.checks.is_empty() && !args.checks.iter().any(|chosen| chosen == name) {
            continue;
        }
        let finished = Finished::run(name, || check(workspace));
        println!("{}", finished.lines());
        all_well &= !finished.outcome.is_failure();
    }
    Ok(all_well)
}

/// Runs all checks.
pub(crate) fn run_all(workspace: &Workspace) -> Result<bool> {
    run(workspace, &Args { checks: Vec::new() })
}
