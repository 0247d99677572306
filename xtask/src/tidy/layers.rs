//! Dependencies point one way: from the server down to the store, and never back.
//!
//! What a crate's tests may use (its dev-dependencies) is its own business; these rules are about
//! what ends up in a build.

use anyhow::Result;

use crate::metadata::{Metadata, Package};
use crate::report::Outcome;
use crate::workspace::Workspace;

/// Which crates of the workspace a crate may use. Names are those of the directories. A product never
/// names a backend: only those at the end of the chain choose one.
const MAY_USE: &[(&str, &[&str])] = &[
    ("store", &[]),
    ("embedded", &["store"]),
    ("dynamodb", &["store"]),
    ("lanes", &["store"]),
    ("queue", &["store", "lanes"]),
    ("sequencer", &["store", "lanes"]),
    ("log", &["store", "lanes"]),
    ("consumer", &["store", "lanes", "queue", "sequencer", "log"]),
    ("sqs", &["store", "lanes", "queue", "sequencer", "log"]),
    (
        "lambda",
        &["store", "embedded", "dynamodb", "lanes", "queue", "sequencer", "log", "consumer"],
    ),
    (
        "server",
        &[
            "store",
            "embedded",
            "dynamodb",
            "lanes",
            "queue",
            "sequencer",
            "log",
            "consumer",
            "lambda",
            "sqs",
        ],
    ),
    ("testing", &["store", "lanes", "queue", "sequencer", "log", "consumer"]),
    (
        "sim",
        &[
            "store",
            "embedded",
            "dynamodb",
            "lanes",
            "queue",
            "sequencer",
            "log",
            "consumer",
            "testing",
        ],
    ),
    ("bench", &["store", "embedded", "dynamodb", "lanes", "queue", "sequencer", "log", "consumer"]),
    (
        "xtask",
        &[
            "store",
            "embedded",
            "dynamodb",
            "lanes",
            "queue",
            "sequencer",
            "log",
            "consumer",
            "testing",
            "sim",
        ],
    ),
];

/// Crates from outside that only some may use.
const KEPT_TO: &[Kept] = &[
    Kept { what: "an AWS client", matches: &["aws-*"], used_by: &["dynamodb", "lambda"] },
    Kept {
        what: "HTTP",
        matches: &["actix-web", "axum", "hyper", "tonic", "tower-http", "warp"],
        used_by: &["sqs", "server"],
    },
    Kept {
        what: "the plumbing of an HTTP client",
        // `dynamodb` asks errors of the AWS client what they mean, and chooses TLS for `object_store`.
        matches: &["hyper-util", "reqwest"],
        used_by: &["dynamodb", "sqs", "server"],
    },
    Kept {
        what: "`anyhow`, which hides what a caller can do",
        matches: &["anyhow"],
        used_by: &["sim", "xtask"],
    },
];

struct Kept {
    what: &'static str,
    /// Exact names, or the beginning of one followed by `*`.
    matches: &'static [&'static str],
    used_by: &'static [&'static str],
}

/// Every dependency in the workspace's manifests is one the tables allow.
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let metadata = Metadata::load(workspace)?;
    let members: Vec<&Package> = metadata.members().collect();
    let mut problems = Vec::new();
    for user in &members {
        for dependency in &user.dependencies {
            if dependency.kind.as_deref() == Some("dev") {
                continue;
            }
            let inside = members.iter().find(|member| member.name == dependency.name);
            problems.extend(match inside {
                Some(used) => inside_problem(user.directory(), used.directory()),
                None => outside_problem(user.directory(), &dependency.name),
            });
        }
        if !MAY_USE.iter().any(|(name, _)| *name == user.directory()) {
            problems.push(format!("`{}` has no place in the table MAY_USE yet", user.directory()));
        }
    }
    Ok(Outcome::from_problems(problems))
}

fn inside_problem(user: &str, used: &str) -> Option<String> {
    let (_, allowed) = MAY_USE.iter().find(|(name, _)| *name == user)?;
    (!allowed.contains(&used)).then(|| {
        if allowed.is_empty() {
            format!("`{user}` depends on `{used}`, but stands on no other crate of the workspace")
        } else {
            format!("`{user}` depends on `{used}`, but may only use {}", allowed.join(", "))
        }
    })
}

fn outside_problem(user: &str, used: &str) -> Option<String> {
    let kept = KEPT_TO.iter().find(|kept| kept.matches.iter().any(|name| matches(name, used)))?;
    (!kept.used_by.contains(&user)).then(|| {
        format!(
            "`{user}` depends on `{used}`: {} is for {} only",
            kept.what,
            kept.used_by.join(", ")
        )
    })
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACKENDS: &[&str] = &["embedded", "dynamodb"];

    #[test]
    fn a_forbidden_edge_is_reported_with_both_ends() {
        let said = inside_problem("store", "lanes").expect("the waist stands on nothing");
        assert!(said.contains("`store` depends on `lanes`"), "{said}");
        assert!(inside_problem("queue", "embedded").is_some());
        assert!(inside_problem("lanes", "testing").is_some());
        assert_eq!(inside_problem("queue", "lanes"), None);
        assert_eq!(inside_problem("server", "embedded"), None);
    }

    #[test]
    fn only_the_ends_of_the_chain_choose_a_backend() {
        for (user, allowed) in MAY_USE {
            let chooses = allowed.iter().any(|used| BACKENDS.contains(used));
            assert_eq!(
                chooses,
                ["server", "lambda", "sim", "bench", "xtask"].contains(user),
                "{user}"
            );
        }
    }

    #[test]
    fn what_is_for_tests_stays_out_of_builds() {
        for (user, allowed) in MAY_USE {
            let uses = allowed.contains(&"testing") || allowed.contains(&"sim");
            assert_eq!(uses, ["sim", "xtask"].contains(user), "{user}");
        }
    }

    #[test]
    fn the_table_has_no_cycle_and_no_unknown_name() {
        for (user, allowed) in MAY_USE {
            for used in *allowed {
                let (_, back) =
                    MAY_USE.iter().find(|(name, _)| name == used).expect("every name has a row");
                assert!(!back.contains(user), "{user} and {used} may use each other");
            }
        }
    }

    #[test]
    fn aws_and_http_are_kept_where_they_belong() {
        let said = outside_problem("lanes", "aws-sdk-dynamodb").expect("no AWS client in lanes");
        assert!(said.contains("`lanes` depends on `aws-sdk-dynamodb`"), "{said}");
        assert_eq!(outside_problem("dynamodb", "aws-sdk-dynamodb"), None);
        assert!(outside_problem("queue", "hyper").is_some());
        assert!(outside_problem("store", "anyhow").is_some());
        assert_eq!(outside_problem("store", "bytes"), None);
    }
}
