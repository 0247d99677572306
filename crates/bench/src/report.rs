//! Figures and their targets.

use std::fmt;
use std::path::Path;

use serde::Serialize;

use crate::error::{BenchError, Result};

/// One measured figure.
#[derive(Debug, Clone, Serialize)]
pub struct Figure {
    pub name: &'static str,
    pub value: f64,
    pub unit: &'static str,
    /// At least or at most this, when it has a target.
    pub target: Option<Target>,
    pub reached: Option<bool>,
}

#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    AtLeast(f64),
    AtMost(f64),
}

#[derive(Debug, Default, Serialize)]
pub struct Report {
    figures: Vec<Figure>,
}

impl Report {
    /// Adds a figure that is only for comparison.
    pub fn note(&mut self, name: &'static str, value: f64, unit: &'static str) {
        self.figures.push(Figure { name, value, unit, target: None, reached: None });
    }

    /// Adds a figure with its target.
    pub fn judge(&mut self, name: &'static str, value: f64, unit: &'static str, target: Target) {
        let reached = match target {
            Target::AtLeast(least) => value >= least,
            Target::AtMost(most) => value <= most,
        };
        self.figures.push(Figure {
            name,
            value,
            unit,
            target: Some(target),
            reached: Some(reached),
        });
    }

    pub fn all_reached(&self) -> bool {
        self.figures.iter().all(|figure| figure.reached != Some(false))
    }

    pub fn write_json(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_vec_pretty(self)
            .map_err(|error| BenchError::Wrong(format!("the figures are not JSON: {error}")))?;
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(BenchError::file(parent))?;
        }
        std::fs::write(path, json).map_err(BenchError::file(path))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:48} {:>14} {:8} {:>12}", "figure", "value", "", "target")?;
        for figure in &self.figures {
            let target = match figure.target {
                Some(Target::AtLeast(least)) => format!(">= {least}"),
                Some(Target::AtMost(most)) => format!("<= {most}"),
                None => String::new(),
            };
            let verdict = match figure.reached {
                Some(true) => "reached",
                Some(false) => "MISSED",
                None => "",
            };
            let Figure { name, value, unit, .. } = figure;
            writeln!(f, "{name:48} {value:>14.2} {unit:8} {target:>12} {verdict}")?;
        }
        Ok(())
    }
}
