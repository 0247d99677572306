//! What commands print: JSON for programs, tables for people.

use std::io::{Write as _, stdout};

use comfy_table::{Cell, CellAlignment, Table};
use serde_json::Value;

use super::Failure;
use super::values::{duration_text, time_text};

/// How a column is shown.
#[derive(Debug, Clone, Copy)]
pub enum Show {
    /// As it is.
    Plain,
    /// Milliseconds since 1970, as a time.
    Time,
    /// Milliseconds, as a duration.
    Duration,
    /// Text, or base64 in the field of the same name with `_base64` behind it; cut when it is long.
    Content,
    /// A number, to the right.
    Number,
    /// Attributes or headers, as `name=value`.
    Pairs,
}

/// A column: its title, the field that it shows, and how.
pub type Column = (&'static str, &'static str, Show);

/// Longest content that a table shows, in characters.
const CONTENT_CHARS_MAX: usize = 60;

/// Prints what a command found.
#[derive(Debug, Clone, Copy)]
pub struct Output {
    json: bool,
}

impl Output {
    /// JSON or tables.
    pub const fn new(json: bool) -> Self {
        Self { json }
    }

    /// Whether it is JSON.
    pub const fn is_json(self) -> bool {
        self.json
    }

    /// A list: one object a line, or a table.
    pub fn list(self, columns: &[Column], rows: &[Value]) -> Result<(), Failure> {
        let mut text = String::new();
        if self.json {
            for row in rows {
                text.push_str(&row.to_string());
                text.push('\n');
            }
        } else if !rows.is_empty() {
            let mut table = plain_table();
            table.set_header(columns.iter().map(|(title, ..)| Cell::new(title)));
            for row in rows {
                table.add_row(columns.iter().map(|column| cell(row, *column)));
            }
            text = lines(&table);
        }
        print_text(&text)
    }

    /// The same without titles, for lists that come piece by piece.
    pub fn more(self, columns: &[Column], rows: &[Value], first: bool) -> Result<(), Failure> {
        if self.json || first {
            return self.list(columns, rows);
        }
        let mut table = plain_table();
        for row in rows {
            table.add_row(columns.iter().map(|column| cell(row, *column)));
        }
        print_text(&lines(&table))
    }

    /// One thing: an object, or its fields one below the other.
    pub fn one(self, columns: &[Column], value: &Value) -> Result<(), Failure> {
        if self.json {
            return print_text(&format!("{value}\n"));
        }
        let mut table = plain_table();
        for (title, field, show) in columns {
            if !text_of(value, field, *show).is_empty() {
                let show = if matches!(show, Show::Number) { Show::Plain } else { *show };
                table.add_row([Cell::new(title), cell(value, (title, field, show))]);
            }
        }
        print_text(&lines(&table))
    }

    /// One thing: an object, or a sentence.
    pub fn said(self, value: &Value, sentence: &str) -> Result<(), Failure> {
        if self.json {
            print_text(&format!("{value}\n"))
        } else {
            print_text(&format!("{sentence}\n"))
        }
    }

    /// An object, indented for people.
    pub fn document(self, value: &Value) -> Result<(), Failure> {
        if self.json {
            return print_text(&format!("{value}\n"));
        }
        print_text(&format!("{}\n", serde_json::to_string_pretty(value).unwrap_or_default()))
    }
}

fn plain_table() -> Table {
    let mut table = Table::new();
    table.load_preset(comfy_table::presets::NOTHING);
    table
}

/// The lines of a table, without the space around it.
fn lines(table: &Table) -> String {
    let mut text = String::new();
    for line in table.lines() {
        text.push_str(line.strip_prefix(' ').unwrap_or(&line).trim_end());
        text.push('\n');
    }
    text
}

fn cell(row: &Value, (_, field, show): Column) -> Cell {
    let cell = Cell::new(text_of(row, field, show));
    match show {
        Show::Number => cell.set_alignment(CellAlignment::Right),
        _ => cell,
    }
}

fn text_of(row: &Value, field: &str, show: Show) -> String {
    let value = field.split('.').try_fold(row, |value, name| value.get(name));
    let value = value.unwrap_or(&Value::Null);
    match (show, value) {
        (Show::Content, value) => content(
            value.as_str().or_else(|| row.get(format!("{field}_base64")).and_then(Value::as_str)),
        ),
        (Show::Time, Value::Number(number)) => number.as_u64().map(time_text).unwrap_or_default(),
        (Show::Duration, Value::Number(number)) => {
            number.as_u64().map(duration_text).unwrap_or_default()
        }
        (Show::Pairs, value) => pairs(value),
        (_, Value::Null) => String::new(),
        (_, Value::String(text)) => one_line(text),
        (_, Value::Array(list)) if list.iter().all(Value::is_string) => {
            list.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
        }
        (_, other) => other.to_string(),
    }
}

fn content(text: Option<&str>) -> String {
    let text = one_line(text.unwrap_or_default());
    if text.chars().count() <= CONTENT_CHARS_MAX {
        return text;
    }
    let cut: String = text.chars().take(CONTENT_CHARS_MAX).collect();
    format!("{cut}…")
}

/// Text that stays in its line, and cannot steer the terminal.
fn one_line(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] })
        .collect()
}

/// Attributes by name, or headers in order.
fn pairs(value: &Value) -> String {
    let text = |value: &Value| match value {
        Value::String(text) => one_line(text),
        other => {
            let value = other.get("value").or_else(|| other.get("value_base64"));
            one_line(value.and_then(Value::as_str).unwrap_or_default())
        }
    };
    match value {
        Value::Object(object) => {
            let pairs =
                object.iter().map(|(name, value)| format!("{}={}", one_line(name), text(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Value::Array(list) => {
            let name = |value: &Value| {
                one_line(value.get("name").and_then(Value::as_str).unwrap_or_default())
            };
            list.iter().map(|h| format!("{}={}", name(h), text(h))).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}

/// Prints text as it is.
pub fn print_text(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn bodies_cannot_steer_a_terminal() {
        let row = json!({ "body": "a\u{1b}[2Jb\nc" });
        assert_eq!(text_of(&row, "body", Show::Content), "a\\u{1b}[2Jb\\nc");
    }

    #[test]
    fn content_falls_back_to_base64_and_is_cut() {
        let row = json!({ "body_base64": "/wA=" });
        assert_eq!(text_of(&row, "body", Show::Content), "/wA=");
        let long = json!({ "body": "x".repeat(100) });
        assert_eq!(text_of(&long, "body", Show::Content).chars().count(), 61);
    }

    #[test]
    fn attributes_and_headers_are_pairs() {
        let row = json!({ "a": { "size": { "type": "number", "value": "3" } }, "h": [{ "name": "via", "value": "web" }] });
        assert_eq!(text_of(&row, "a", Show::Pairs), "size=3");
        assert_eq!(text_of(&row, "h", Show::Pairs), "via=web");
    }
}
