//! `cargo xtask test`: everything that CI runs, as a list of steps.

pub(crate) mod count;

use anyhow::Result;

use self::count::Counts;
use crate::metadata::Metadata;
use crate::report::{Finished, Outcome};
use crate::workspace::Workspace;
use crate::{clients, crash, dynamodb_local, moto, sim, tidy};

/// Run everything that CI runs: tidy, all tests (those of cost among them), the second DynamoDB engine, the AWS
/// emulator, real SQS clients, crashes and simulated worlds.
///
/// Every step runs, also after another failed. The summary at the end says how each one went; what
/// could not run here is SKIPPED with the reason. The last line counts tests.
#[derive(clap::Args)]
pub(crate) struct Args {}

/// One thing that must pass.
struct Step {
    name: &'static str,
    /// What must exist for the step to mean something: package, kind and name of a target.
    needs: Option<(&'static str, &'static str, &'static str)>,
    run: fn(&Workspace, &mut Counts) -> Result<Outcome>,
}

const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        needs: None,
        run: |workspace, _| {
            let well = tidy::run_all(workspace)?;
            Ok(if well { Outcome::Ok } else { Outcome::failed("see the checks above") })
        },
    },
    Step {
        name: "cargo test",
        needs: None,
        run: |workspace, counts| {
            counts.run(workspace.cargo().args(["test", "--workspace", "--no-fail-fast"]))
        },
    },
    Step {
        name: "dynamodb-local",
        needs: Some(("millpond-dynamodb", "test", "local")),
        run: dynamodb_local::step,
    },
    Step {
        name: "template",
        needs: Some(("millpond-lambda", "test", "moto")),
        run: |workspace, _| moto::lint(workspace),
    },
    Step { name: "moto", needs: Some(("millpond-lambda", "test", "moto")), run: moto::step },
    Step {
        name: "clients",
        needs: Some(("millpond", "bin", "millpond")),
        run: |workspace, _| clients::step(workspace),
    },
    Step {
        name: "crash",
        needs: Some(("millpond-sim", "bin", "millpond-sim")),
        run: |workspace, _| crash::step(workspace),
    },
    Step {
        name: "sim",
        needs: Some(("millpond-sim", "bin", "millpond-sim")),
        run: |workspace, _| sim::step(workspace),
    },
];

/// Runs all steps; `true` when none failed.
pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<bool> {
    let metadata = Metadata::load(workspace)?;
    let mut counts = Counts::default();
    let mut finished = Vec::new();
    for step in STEPS {
        println!("\n=== {} ===", step.name);
        finished.push(Finished::run(step.name, || match step.needs {
            Some((package, kind, target)) if !metadata.has_target(package, kind, target) => {
                Ok(Outcome::Skipped(format!("{package} has no {kind} target `{target}`")))
            }
            _ => (step.run)(workspace, &mut counts),
        }));
    }
    println!("\n=== summary ===");
    for step in &finished {
        println!("{}", step.lines());
    }
    println!("{counts}");
    Ok(!finished.iter().any(|step| step.outcome.is_failure()))
}
