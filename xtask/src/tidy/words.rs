//! Words that must not be in the repository: paths that exist on one machine only, and the hosts of
//! package registries, which a user's tools are configured with and a project is not.

use anyhow::{Context, Result};
use regex::Regex;

use crate::report::Outcome;
use crate::workspace::Workspace;

/// Directories at the root of somebody's machine.
const MACHINE_DIRECTORIES: &[&str] = &["home", "root", "tmp", "work", "Users", "private"];

/// Hosts, in pieces so that this file does not contain what it looks for.
const REGISTRY_HOSTS: &[&[&str]] = &[
    &["crates", "io"],
    &["registry", "npmjs", "org"],
    &["repo", "maven", "apache", "org"],
    &["repo1", "maven", "org"],
    &["pypi", "org"],
    &["pythonhosted", "org"],
];

/// Cargo writes the lock file, and names the index of its registry in it.
const LEFT_TO_CARGO: &str = "Cargo.lock";

/// No file that git tracks, or would, holds a forbidden word.
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let words = Words::new()?;
    let mut problems = Vec::new();
    for file in workspace.files()? {
        if file.file_name().is_some_and(|name| name == LEFT_TO_CARGO) {
            continue;
        }
        let bytes = std::fs::read(workspace.path(&file))
            .with_context(|| format!("cannot read {}", file.display()))?;
        let text = String::from_utf8_lossy(&bytes);
        problems.extend(
            words.find(&text).map(|(line, what)| format!("{}:{line}: {what}", file.display())),
        );
    }
    Ok(Outcome::from_problems(problems))
}

struct Words {
    machine_path: Regex,
    registry_host: Regex,
}

impl Words {
    fn new() -> Result<Self> {
        let directories = MACHINE_DIRECTORIES.join("|");
        let hosts: Vec<String> = REGISTRY_HOSTS.iter().map(|host| host.join(r"\.")).collect();
        Ok(Self {
            // A path that starts here: `docs/tmp/x` and `https://host/home/x` are no machine's.
            machine_path: Regex::new(&format!(r"(?:^|[^\w.~}}/-]|file://)/(?:{directories})/\w"))?,
            registry_host: Regex::new(&format!(
                r"(?:^|[^\w-])(?:{})(?:[^\w-]|$)",
                hosts.join("|")
            ))?,
        })
    }

    fn find<'a>(&'a self, text: &'a str) -> impl Iterator<Item = (usize, &'static str)> + 'a {
        text.lines().enumerate().filter_map(|(index, line)| {
            if self.machine_path.is_match(line) {
                Some((index + 1, "a path that exists on one machine only"))
            } else if self.registry_host.is_match(line) {
                Some((index + 1, "the host of a package registry"))
            } else {
                None
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<usize> {
        Words::new().expect("valid patterns").find(text).map(|(line, _)| line).collect()
    }

    #[test]
    fn machine_paths_are_found_wherever_they_start() {
        for directory in MACHINE_DIRECTORIES {
            assert_eq!(found(&format!("first\nlet x = \"/{directory}/someone\";")), [2]);
            assert_eq!(found(&format!("/{directory}/someone")), [1]);
            assert_eq!(found(&format!("file:///{directory}/someone")), [1]);
        }
    }

    #[test]
    fn relative_paths_and_addresses_are_fine() {
        for directory in MACHINE_DIRECTORIES {
            assert!(found(&format!("docs/{directory}/x ./{directory}/x")).is_empty());
            assert!(found(&format!("https://example.com/{directory}/x")).is_empty());
        }
    }

    #[test]
    fn registry_hosts_are_found_and_their_namesakes_are_not() {
        for host in REGISTRY_HOSTS {
            let host = host.join(".");
            assert_eq!(found(&format!("see https://{host}/thing")), [1]);
            assert_eq!(found(&format!("see {host}")), [1]);
            assert!(found(&format!("see my-{host}-mirror")).is_empty());
        }
    }
}
