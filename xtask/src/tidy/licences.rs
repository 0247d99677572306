//! Everything that ends up in a build has a licence that `deny.toml` allows.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result};
use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::metadata::{Metadata, Package};
use crate::report::Outcome;
use crate::workspace::Workspace;

/// The list is kept where `cargo deny check` reads it too.
const LIST: &str = "deny.toml";

#[derive(Deserialize)]
struct Deny {
    licenses: Licenses,
}

#[derive(Deserialize)]
struct Licenses {
    allow: Vec<String>,
}

/// The licence of every normal and build dependency, however deep, is allowed.
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let deny: Deny = toml::from_str(&workspace.read(Path::new(LIST))?)
        .with_context(|| format!("cannot understand {LIST}"))?;
    let metadata = Metadata::load(workspace)?;
    let problems =
        built(&metadata).into_iter().filter_map(|package| problem(package, &deny.licenses.allow));
    Ok(Outcome::from_problems(problems.collect()))
}

/// All packages that a build without tests contains.
fn built(metadata: &Metadata) -> Vec<&Package> {
    let mut waiting: Vec<&str> = metadata.workspace_members.iter().map(String::as_str).collect();
    let mut reached: BTreeSet<&str> = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if !reached.insert(id) {
            continue;
        }
        let edges = metadata.resolve.nodes.iter().filter(|node| node.id == id);
        waiting.extend(
            edges
                .flat_map(|node| &node.deps)
                .filter(|edge| edge.dep_kinds.iter().any(|why| why.kind.as_deref() != Some("dev")))
                .map(|edge| edge.pkg.as_str()),
        );
    }
    let by_id = metadata.by_id();
    reached.into_iter().filter_map(|id| by_id.get(id).copied()).collect()
}

fn problem(package: &Package, allowed: &[String]) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let Some(licence) = &package.license else {
        return Some(format!("{name}: names no licence"));
    };
    match Expression::parse_mode(licence, ParseMode::LAX) {
        Err(error) => Some(format!("{name}: cannot understand the licence `{licence}`: {error}")),
        Ok(expression) => {
            let accepted = expression.evaluate(|wanted| allowed.contains(&wanted.to_string()));
            (!accepted).then(|| format!("{name}: licence `{licence}` is not allowed by {LIST}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(licence: Option<&str>) -> Option<String> {
        let package = Package {
            id: "x".into(),
            name: "thing".into(),
            version: "1.2.3".into(),
            license: licence.map(Into::into),
            manifest_path: String::new(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        };
        problem(&package, &["MIT".into(), "Apache-2.0 WITH LLVM-exception".into()])
    }

    #[test]
    fn one_allowed_choice_is_enough() {
        assert_eq!(said(Some("MIT")), None);
        assert_eq!(said(Some("GPL-3.0-only OR MIT")), None);
        assert_eq!(said(Some("MIT/Apache-2.0")), None);
        assert_eq!(said(Some("Apache-2.0 WITH LLVM-exception")), None);
    }

    #[test]
    fn anything_else_is_reported_with_its_package() {
        let refused = said(Some("MIT AND GPL-3.0-only")).expect("both are required");
        assert!(refused.contains("thing 1.2.3") && refused.contains("GPL"), "{refused}");
        assert!(said(Some("Apache-2.0")).is_some());
        assert!(said(Some("Something-Odd")).is_some());
        assert!(said(None).is_some());
    }
}
