//! `cargo xtask test`: everything that CI runs, as a list of steps.

pub(crate) mod count;

use anyhow::Result;

use self::count::Counts;
use crate::metadata::Metadata;
use crate::report::{Finished, Outcome};
use crate::workspace::Workspace;
use crate::{clients, crash, dynamodb_local, model, moto, sim, tidy};

/// Run everything that CI runs: tidy, all tests (those of cost among them), long histories against models, the second
/// DynamoDB engine, the AWS emulator, real SQS clients, crashes and simulated worlds.
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
    /// Whether it needs what is fetched in the meantime.
    is_fetched: bool,
    run: fn(&Workspace, &mut Counts) -> Result<Outcome>,
}

const STEPS: &[Step] = &[
    Step {
        name: "tidy",
        needs: None,
        is_fetched: false,
        run: |workspace, _| {
            let well = tidy::run_all(workspace)?;
            Ok(if well { Outcome::Ok } else { Outcome::failed("see the checks above") })
        },
    },
    Step {
        name: "cargo test",
        needs: None,
        is_fetched: false,
        run: |workspace, counts| {
            counts.run(workspace.cargo().args(["test", "--workspace", "--no-fail-fast"]))
        },
    },
    Step {
        name: "model",
        needs: Some(("millpond-embedded", "test", "embedded")),
        is_fetched: false,
        run: model::step,
    },
    Step {
        name: "dynamodb-local",
        needs: Some(("millpond-dynamodb", "test", "dynamodb")),
        is_fetched: true,
        run: dynamodb_local::step,
    },
    Step {
        name: "template",
        needs: Some(("millpond-lambda", "test", "moto")),
        is_fetched: true,
        run: |workspace, _| moto::lint(workspace),
    },
    Step {
        name: "moto",
        needs: Some(("millpond-lambda", "test", "moto")),
        is_fetched: true,
        run: moto::step,
    },
    Step {
        name: "clients",
        needs: Some(("millpond", "bin", "millpond")),
        is_fetched: true,
        run: |workspace, _| clients::step(workspace),
    },
    Step {
        name: "crash",
        needs: Some(("millpond-sim", "bin", "millpond-sim")),
        is_fetched: false,
        run: |workspace, _| crash::step(workspace),
    },
    Step {
        name: "sim",
        needs: Some(("millpond-sim", "bin", "millpond-sim")),
        is_fetched: false,
        run: |workspace, _| sim::step(workspace),
    },
];

/// Runs all steps; `true` when none failed.
pub(crate) fn run(workspace: &Workspace, _: &Args) -> Result<bool> {
    let metadata = Metadata::load(workspace)?;
    let mut counts = Counts::default();
    let finished = std::thread::scope(|scope| {
        let mut fetching = Some(scope.spawn(|| fetch(workspace)));
        run_steps(workspace, &metadata, &mut counts, || {
            // A panic there has been printed; the step itself fetches again what is missing.
            fetching.take().map(|thread| thread.join().is_ok());
        })
    });
    println!("\n=== summary ===");
    for step in &finished {
        println!("{}", step.lines());
    }
    println!("{counts}");
    Ok(!finished.iter().any(|step| step.outcome.is_failure()))
}

/// Fetches what the later steps need, while the first ones keep the processors busy. What fails here fails again in the
/// step that needs it, which says so.
fn fetch(workspace: &Workspace) {
    clients::fetch(workspace);
    let _ = moto::fetch(workspace);
    let _ = dynamodb_local::fetch(workspace);
}

fn run_steps(
    workspace: &Workspace,
    metadata: &Metadata,
    counts: &mut Counts,
    mut wait_for_what_is_fetched: impl FnMut(),
) -> Vec<Finished> {
    let mut finished = Vec::new();
    for step in STEPS {
        if step.is_fetched {
            wait_for_what_is_fetched();
        }
        println!("\n=== {} ===", step.name);
        finished.push(Finished::run(step.name, || match step.needs {
            Some((package, kind, target)) if !metadata.has_target(package, kind, target) => {
                Ok(Outcome::Skipped(format!("{package} has no {kind} target `{target}`")))
            }
            _ => (step.run)(workspace, counts),
        }));
    }
    finished
}
