//! Choosing a setting's value, and remembering where it came from.

use std::fmt::Display;
use std::path::{Path, PathBuf};

use clap::ArgMatches;
use clap::parser::ValueSource;

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    Default,
    File(PathBuf),
    Variable(String),
    Flag(String),
}

impl Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => f.write_str(name),
            Self::Flag(name) => f.write_str(name),
        }
    }
}

/// A setting as it is in force.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The table of the file that it stands in.
    pub table: Option<&'static str>,
    pub name: &'static str,
    /// Nothing when it is not set and has no default.
    pub value: Option<String>,
    pub source: Source,
}

/// Chooses among what was said on the command line (which holds the environment too), in the file, and nowhere.
pub struct Picker<'a> {
    matches: &'a ArgMatches,
    file: Option<&'a Path>,
    table: Option<&'static str>,
    pub shown: Vec<Shown>,
}

impl Shown {
    /// What it is called in the file: a table's name is not repeated in its settings.
    pub fn key(&self) -> &'static str {
        let Some(table) = self.table else { return self.name };
        let rest = self.name.strip_prefix(table).and_then(|rest| rest.strip_prefix('_'));
        rest.unwrap_or(self.name)
    }
}

impl<'a> Picker<'a> {
    pub fn new(matches: &'a ArgMatches, file: Option<&'a Path>) -> Self {
        Self { matches, file, table: None, shown: Vec::new() }
    }

    /// The settings from here on stand in this table of the file.
    pub fn enter(&mut self, table: &'static str) {
        self.table = Some(table);
    }

    /// The value, or its default.
    pub fn pick<T: Display>(
        &mut self,
        name: &'static str,
        said: Option<T>,
        in_file: Option<T>,
        default: T,
    ) -> T {
        let (value, source) = self.first(name, said, in_file);
        let value = value.unwrap_or(default);
        self.shown.push(Shown { table: self.table, name, value: Some(value.to_string()), source });
        value
    }

    /// The value, if there is one.
    pub fn pick_optional<T>(
        &mut self,
        name: &'static str,
        said: Option<T>,
        in_file: Option<T>,
        show: impl Fn(&T) -> String,
    ) -> Option<T> {
        let (value, source) = self.first(name, said, in_file);
        self.shown.push(Shown { table: self.table, name, value: value.as_ref().map(show), source });
        value
    }

    /// The value, if there is one, which may also come from elsewhere.
    pub fn pick_or_else(
        &mut self,
        name: &'static str,
        said: Option<String>,
        in_file: Option<String>,
        elsewhere: impl FnOnce() -> Option<(String, Source)>,
    ) -> Option<String> {
        let (mut value, mut source) = self.first(name, said, in_file);
        if value.is_none()
            && let Some((found, from)) = elsewhere()
        {
            (value, source) = (Some(found), from);
        }
        self.shown.push(Shown { table: self.table, name, value: value.clone(), source });
        value
    }

    /// The file, as where a value came from.
    pub fn file(&self) -> Source {
        self.file.map_or(Source::Default, |file| Source::File(file.to_owned()))
    }

    /// Where the setting's value came from.
    pub fn source(&self, name: &str) -> Source {
        let shown = self.shown.iter().find(|shown| shown.name == name);
        shown.map_or(Source::Default, |shown| shown.source.clone())
    }

    fn first<T>(
        &self,
        name: &'static str,
        said: Option<T>,
        in_file: Option<T>,
    ) -> (Option<T>, Source) {
        let dashed = name.replace('_', "-");
        match (said, in_file, self.file) {
            (Some(value), _, _) => {
                let source = match self.matches.value_source(name) {
                    Some(ValueSource::EnvVariable) => {
                        Source::Variable(format!("MILLPOND_{}", name.to_uppercase()))
                    }
                    _ => Source::Flag(format!("--{dashed}")),
                };
                (Some(value), source)
            }
            (None, Some(value), Some(file)) => (Some(value), Source::File(file.to_owned())),
            (None, value, _) => (value, Source::Default),
        }
    }
}
