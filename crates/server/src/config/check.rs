//! `millpond config check`: the configuration in force, as a file, with where each value came from.

use std::fmt::Write as _;

use millpond_sqs::AccessKey;

use super::effective::Config;
use super::pick::Shown;

/// Comments begin in this column, where there is room.
const COMMENT_COLUMN: usize = 44;

/// The configuration as text: valid TOML, with secrets left out.
pub fn check(config: &Config) -> String {
    let mut text = String::new();
    let mut table = None;
    for shown in &config.shown {
        if shown.table != table {
            table = shown.table;
            let _ = writeln!(text, "\n[{}]", table.unwrap_or_default());
        }
        line(&mut text, shown);
    }
    if let Some(traces) = &config.traces {
        for (name, _) in &traces.headers {
            let from = &traces.headers_from;
            let _ = writeln!(text, "# header {}: value not shown # {from}", quoted(name.as_str()));
        }
    }
    for queue in &config.queues {
        let _ = writeln!(text, "\n[[queue]]\nname = {}", quoted(&queue.name));
        for (table, values) in
            [("attributes", queue.wire_attributes()), ("tags", queue.tags.clone())]
        {
            let values: Vec<String> = values
                .iter()
                .map(|(name, value)| format!("{} = {}", quoted(name), quoted(value)))
                .collect();
            if !values.is_empty() {
                let _ = writeln!(text, "{table} = {{ {} }}", values.join(", "));
            }
        }
    }
    text.push('\n');
    text.push_str(&keys(config));
    text
}

fn line(text: &mut String, shown: &Shown) {
    let Shown { name, value, source, .. } = shown;
    let key = shown.key();
    let set = match (value, *name) {
        // They may be digits, and yet are text.
        (Some(value), "account_id" | "traces_service_name") => format!("{key} = {}", quoted(value)),
        // It has a point, and yet is a number.
        (Some(value), "traces_sample") => format!("{key} = {value}"),
        (Some(value), _) => format!("{key} = {}", literal(value)),
        (None, _) => format!("# {key} is not set"),
    };
    let _ = writeln!(text, "{set:COMMENT_COLUMN$} # {source}");
}

/// Numbers and booleans stand as they are, everything else in quotes.
fn literal(value: &str) -> String {
    let bare =
        value == "true" || value == "false" || value.bytes().all(|byte| byte.is_ascii_digit());
    if bare { value.to_owned() } else { quoted(value) }
}

/// A basic string of TOML is escaped as one of JSON is.
fn quoted(value: &str) -> String {
    serde_json::Value::from(value).to_string()
}

fn keys(config: &Config) -> String {
    let Some(keys) = &config.keys else {
        return "# no access keys: requests need no signature\n".to_owned();
    };
    let mut text = String::new();
    for AccessKey { id, actions, queues, .. } in &keys.keys {
        let (actions, queues) = (actions.join(", "), queues.join(", "));
        let _ = writeln!(
            text,
            "# access key {}: actions {actions}; queues {queues}; secret not shown",
            quoted(id)
        );
    }
    text
}
