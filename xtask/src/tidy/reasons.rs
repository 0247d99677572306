//! Every crate has its place on the map, and every dependency its reason, in ARCHITECTURE.md.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use crate::metadata::Metadata;
use crate::report::Outcome;
use crate::workspace::Workspace;

const PAGE: &str = "ARCHITECTURE.md";

/// What the workspace holds and uses is on the page.
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let metadata = Metadata::load(workspace)?;
    let own: BTreeSet<&str> = metadata.members().map(|member| member.name.as_str()).collect();
    let crates = metadata.members().map(crate::metadata::Package::directory);
    let used = metadata
        .members()
        .flat_map(|member| &member.dependencies)
        .map(|dependency| dependency.name.as_str())
        .filter(|name| !own.contains(name));
    let page = workspace.read(Path::new(PAGE))?;
    Ok(Outcome::from_problems(problems(&page, &crates.collect(), &used.collect())))
}

fn problems(page: &str, crates: &BTreeSet<&str>, used: &BTreeSet<&str>) -> Vec<String> {
    let on_the_map = |name: &str| {
        page.lines().filter(|line| line.starts_with("### ")).any(|line| {
            line.contains(&format!("`crates/{name}`")) || line.contains(&format!("`{name}`"))
        })
    };
    let has_a_row = |name: &str| {
        page.lines().filter_map(|line| line.strip_prefix("| ")?.split_once(" | ")).any(
            |(names, reason)| names.contains(&format!("`{name}`")) && reason.len() > " |".len(),
        )
    };
    let lost = crates.iter().filter(|name| !on_the_map(name));
    let unexplained = used.iter().filter(|name| !has_a_row(name));
    lost.map(|name| format!("the code map in {PAGE} has no heading for `{name}`"))
        .chain(
            unexplained
                .map(|name| format!("the table of dependencies in {PAGE} has no row for `{name}`")),
        )
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "### `crates/store`\n### `xtask`\n| `bytes`, `rand` | shared |\n| `odd` | |\nuses `tokio`\n";

    #[test]
    fn what_is_on_the_page_is_fine() {
        let found = problems(TEXT, &["store", "xtask"].into(), &["bytes", "rand"].into());
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn a_crate_off_the_map_and_a_dependency_without_a_reason_are_reported() {
        let found = problems(TEXT, &["lanes"].into(), &["tokio", "odd"].into());
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found.iter().any(|said| said.contains("`lanes`")), "{found:?}");
        assert!(found.iter().any(|said| said.contains("`tokio`")), "{found:?}");
    }
}
