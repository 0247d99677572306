//! The steps, and how one of them is run.

use anyhow::Result;

use super::count::Counts;
use crate::metadata::Metadata;
use crate::report::Outcome;
use crate::workspace::Workspace;
use crate::{clients, crash, dynamodb_local, model, moto, sim, tidy};

/// A package, and kind and name of a target of it.
type Target = (&'static str, &'static str, &'static str);

/// One thing that must pass.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// What must exist for the step to mean something.
    needs: Option<Target>,
    /// Whether it needs what is fetched in the meantime.
    pub(super) is_fetched: bool,
    run: fn(&Workspace, &mut Counts) -> Result<Outcome>,
}

impl Step {
    const fn new(
        name: &'static str,
        needs: Option<Target>,
        run: fn(&Workspace, &mut Counts) -> Result<Outcome>,
    ) -> Self {
        Self { name, needs, is_fetched: false, run }
    }

    const fn fetched(self) -> Self {
        Self { is_fetched: true, ..self }
    }

    /// Why the step would mean nothing here, if so.
    pub(super) fn missing(&self, metadata: &Metadata) -> Option<Outcome> {
        let (package, kind, target) = self.needs?;
        let is_there = metadata.has_target(package, kind, target);
        let reason = || format!("{package} has no {kind} target `{target}`");
        (!is_there).then(|| Outcome::Skipped(reason()))
    }

    /// Runs it in this process; what it has to say goes to the terminal as it comes.
    pub(super) fn run(&self, workspace: &Workspace, counts: &mut Counts) -> Result<Outcome> {
        (self.run)(workspace, counts)
    }
}

/// These run first, one after another: each keeps all processors busy by itself.
pub(super) const FIRST: &[Step] = &[
    Step::new("tidy", None, |workspace, _| {
        let well = tidy::run_all(workspace)?;
        Ok(if well { Outcome::Ok } else { Outcome::failed("see the checks above") })
    }),
    Step::new("build", None, |workspace, _| {
        let status = workspace.cargo().args(["test", "--workspace", "--no-run"]).status()?;
        Ok(if status.success() { Outcome::Ok } else { Outcome::failed("see cargo's messages") })
    }),
];

/// These come then, one after another, and what they say is shown as it comes.
pub(super) const SHOWN: &[Step] = &[
    Step::new("cargo test", None, |workspace, counts| {
        counts.run(workspace.cargo().args(["test", "--workspace", "--no-fail-fast"]))
    }),
    Step::new("model", Some(("millpond-embedded", "test", "embedded")), model::step),
    Step::new("sim", Some(("millpond-sim", "bin", "millpond-sim")), |workspace, _| {
        sim::step(workspace)
    }),
];

/// These run beside them, one after another too: for the most part they wait, for timers, servers and other people's clients.
pub(super) const BESIDE: &[Step] = &[
    Step::new(
        "dynamodb-local",
        Some(("millpond-dynamodb", "test", "dynamodb")),
        dynamodb_local::step,
    )
    .fetched(),
    Step::new("template", Some(("millpond-lambda", "test", "moto")), |workspace, _| {
        moto::lint(workspace)
    })
    .fetched(),
    Step::new("moto", Some(("millpond-lambda", "test", "moto")), moto::step).fetched(),
    Step::new("clients", Some(("millpond", "bin", "millpond")), |workspace, _| {
        clients::step(workspace)
    })
    .fetched(),
    Step::new("crash", Some(("millpond-sim", "bin", "millpond-sim")), |workspace, _| {
        crash::step(workspace)
    }),
];

/// The step of this name.
pub(super) fn named(name: &str) -> Option<&'static Step> {
    FIRST.iter().chain(SHOWN).chain(BESIDE).find(|step| step.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_is_there_once_and_found_by_its_name() {
        let names: Vec<&str> =
            FIRST.iter().chain(SHOWN).chain(BESIDE).map(|step| step.name).collect();
        assert_eq!(
            names,
            [
                "tidy",
                "build",
                "cargo test",
                "model",
                "sim",
                "dynamodb-local",
                "template",
                "moto",
                "clients",
                "crash"
            ]
        );
        for name in names {
            assert_eq!(named(name).map(|step| step.name), Some(name));
        }
        assert!(named("nothing").is_none());
    }
}
