//! Files stay short enough to be read in one go.

use std::path::Path;

use anyhow::Result;

use crate::report::Outcome;
use crate::workspace::Workspace;

/// A file is split before it grows past this many lines; its unit tests do not count.
const LINES_MAX: usize = 600;

/// No Rust file outside the tests is longer than [`LINES_MAX`].
pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let mut problems = Vec::new();
    for file in workspace.rust_files()? {
        if is_test(&file) {
            continue;
        }
        problems.extend(problem(&file, &workspace.read(&file)?));
    }
    Ok(Outcome::from_problems(problems))
}

/// Files under `tests/`, and test modules that have a file of their own.
fn is_test(file: &Path) -> bool {
    file.components().any(|part| part.as_os_str() == "tests")
        || file.file_name().is_some_and(|name| name == "tests.rs")
}

fn problem(file: &Path, text: &str) -> Option<String> {
    let lines = lines_before_tests(text);
    (lines > LINES_MAX).then(|| {
        format!("{}: {lines} lines before its tests, at most {LINES_MAX}: split it", file.display())
    })
}

/// How many lines come before the module with the unit tests. A lone `#[cfg(test)]` on something
/// smaller than a module does not end the count.
fn lines_before_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let starts_tests = |index: usize| {
        lines.get(index) == Some(&"#[cfg(test)]")
            && lines
                .iter()
                .skip(index + 1)
                .find(|line| !line.starts_with("#["))
                .is_some_and(|line| line.starts_with("mod ") && line.ends_with('{'))
    };
    (0..lines.len()).find(|index| starts_tests(*index)).unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_file_is_named() {
        let file = Path::new("crates/store/src/long.rs");
        assert_eq!(problem(file, &"x\n".repeat(LINES_MAX)), None);
        let said = problem(file, &"x\n".repeat(LINES_MAX + 1)).expect("one line too many");
        assert!(said.contains("crates/store/src/long.rs: 601 lines"), "{said}");
    }

    #[test]
    fn unit_tests_do_not_count() {
        let text =
            format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "x\n".repeat(10), "y\n".repeat(900));
        assert_eq!(lines_before_tests(&text), 10);
        let with_reason = "a\n#[cfg(test)]\n#[allow(dead_code)]\nmod tests {\n}\n";
        assert_eq!(lines_before_tests(with_reason), 1);
    }

    #[test]
    fn a_test_only_import_does_not_end_the_count() {
        let text = format!("#[cfg(test)]\nuse std::fs;\n{}", "x\n".repeat(700));
        assert_eq!(lines_before_tests(&text), 702);
    }

    #[test]
    fn files_of_tests_are_left_alone() {
        assert!(is_test(Path::new("crates/store/tests/model.rs")));
        assert!(is_test(Path::new("crates/store/src/item/tests.rs")));
        assert!(!is_test(Path::new("crates/testing/src/lib.rs")));
    }
}
