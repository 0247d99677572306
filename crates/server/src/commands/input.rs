//! What commands read: one body, or many as lines.

use std::io::{BufRead as _, BufReader, Read, stdin};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use clap::Args;
use serde_json::{Map, Value, json};

use super::Failure;

/// Longest line, and largest file that is one body: no message is larger.
const BODY_BYTES_MAX: u64 = 64 * 1_024 * 1_024;

/// A request ends with the entry that brings it to this many bytes, so that a server takes it.
const BATCH_BYTES: usize = 512 * 1_024;

/// Where content comes from.
#[derive(Debug, Clone, Args)]
#[group(required = true, multiple = false)]
pub struct Source {
    /// The content itself.
    #[arg(value_name = "CONTENT")]
    pub content: Option<String>,

    /// A file that is the content, whole; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub file: Option<PathBuf>,

    /// A file with one JSON object a line, as this command's --json prints them; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub jsonl: Option<PathBuf>,

    /// A file of which each line is the content of one entry; `-` is standard input.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub lines: Option<PathBuf>,
}

/// What entries look like.
#[derive(Debug, Clone)]
pub struct Shape {
    /// The field that the content goes to.
    pub content: &'static str,
    /// Fields that what is printed has, and what is read has not: they are left out.
    pub output_only: &'static [&'static str],
    /// What each entry has unless it says otherwise.
    pub defaults: Map<String, Value>,
}

impl Source {
    /// The entries, one by one.
    pub fn entries(&self, shape: Shape) -> Result<Entries, Failure> {
        let kind = match (&self.content, &self.file, &self.jsonl, &self.lines) {
            (Some(content), ..) => Kind::One(Some(content.clone().into_bytes())),
            (_, Some(file), ..) => Kind::One(Some(whole(file)?)),
            (_, _, Some(file), _) => Kind::Json(BufReader::new(open(file)?)),
            (_, _, _, Some(file)) => Kind::Lines(BufReader::new(open(file)?)),
            _ => Kind::One(None),
        };
        Ok(Entries { kind, shape, line: 0, lines: Vec::new() })
    }
}

type Reader = BufReader<Box<dyn Read>>;

enum Kind {
    One(Option<Vec<u8>>),
    Json(Reader),
    Lines(Reader),
}

/// Entries that are read as they are asked for.
pub struct Entries {
    kind: Kind,
    shape: Shape,
    line: u64,
    /// The line of each entry of the last batch; none when there are no lines.
    lines: Vec<u64>,
}

impl Entries {
    /// The next entries, up to `max` and not many more bytes than a request should have; none at the end.
    pub fn batch(&mut self, max: usize) -> Result<Vec<Value>, Failure> {
        let (mut batch, mut bytes) = (Vec::new(), 0);
        self.lines.clear();
        while batch.len() < max && bytes < BATCH_BYTES {
            let Some(entry) = self.next()? else { break };
            let texts = entry.as_object().into_iter().flat_map(|fields| fields.values());
            bytes += texts.filter_map(Value::as_str).map(str::len).sum::<usize>();
            batch.push(entry);
            if !matches!(self.kind, Kind::One(_)) {
                self.lines.push(self.line);
            }
        }
        Ok(batch)
    }

    /// The same failure with the line that it is about: whoever refused the last batch counts its entries.
    pub fn in_line(&self, failure: Failure) -> Failure {
        let Failure::Refused(mut error) = failure else { return failure };
        let index = error
            .field
            .as_deref()
            .and_then(|field| field.split_once('[')?.1.split_once(']')?.0.parse::<usize>().ok());
        let line = index.and_then(|index| self.lines.get(index));
        if let (Some(line), Some(first)) = (line, self.lines.first()) {
            let message = &error.message;
            error.message =
                format!("line {line}: {message}; nothing from line {first} on was taken");
        }
        Failure::Refused(error)
    }

    fn next(&mut self) -> Result<Option<Value>, Failure> {
        let entry = match &mut self.kind {
            Kind::One(content) => content.take().map(|content| entry(&self.shape, &content)),
            Kind::Lines(reader) => {
                read_line(reader, &mut self.line)?.map(|line| entry(&self.shape, &line))
            }
            Kind::Json(reader) => loop {
                let Some(line) = read_line(reader, &mut self.line)? else { break None };
                if !line.trim_ascii().is_empty() {
                    break Some(parse(&self.shape, &line, self.line)?);
                }
            },
        };
        Ok(entry.map(|mut entry| {
            for (name, value) in &self.shape.defaults {
                entry.entry(name.clone()).or_insert_with(|| value.clone());
            }
            Value::Object(entry)
        }))
    }
}

fn read_line(reader: &mut Reader, line: &mut u64) -> Result<Option<Vec<u8>>, Failure> {
    let mut bytes = Vec::new();
    *line += 1;
    let read = reader.take(BODY_BYTES_MAX + 1).read_until(b'\n', &mut bytes)?;
    if read as u64 > BODY_BYTES_MAX {
        return Err(Failure::Usage(format!("line {line} has more than {BODY_BYTES_MAX} bytes")));
    }
    if bytes.last() == Some(&b'\n') {
        bytes.pop();
        if bytes.last() == Some(&b'\r') {
            bytes.pop();
        }
    }
    Ok((read > 0).then_some(bytes))
}

fn entry(shape: &Shape, content: &[u8]) -> Map<String, Value> {
    let mut entry = Map::new();
    match std::str::from_utf8(content) {
        Ok(text) => entry.insert(shape.content.to_owned(), json!(text)),
        Err(_) => {
            let base64 = base64::engine::general_purpose::STANDARD.encode(content);
            entry.insert(format!("{}_base64", shape.content), json!(base64))
        }
    };
    entry
}

fn parse(shape: &Shape, line: &[u8], number: u64) -> Result<Map<String, Value>, Failure> {
    let parsed: Result<Map<String, Value>, _> = serde_json::from_slice(line);
    let mut entry = parsed.map_err(|error| {
        Failure::Usage(format!(
            "line {number} is not a JSON object: {error}; nothing of it was taken"
        ))
    })?;
    entry.retain(|name, _| !shape.output_only.contains(&name.as_str()));
    Ok(entry)
}

fn open(file: &Path) -> Result<Box<dyn Read>, Failure> {
    if file.as_os_str() == "-" {
        return Ok(Box::new(stdin()));
    }
    let opened = std::fs::File::open(file);
    let opened = opened
        .map_err(|error| Failure::Usage(format!("{} cannot be read: {error}", file.display())))?;
    Ok(Box::new(opened))
}

/// A whole file.
pub fn whole(file: &Path) -> Result<Vec<u8>, Failure> {
    let mut bytes = Vec::new();
    open(file)?.take(BODY_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > BODY_BYTES_MAX {
        let file = file.display();
        return Err(Failure::Usage(format!("{file} has more than {BODY_BYTES_MAX} bytes")));
    }
    Ok(bytes)
}

/// Values that are given as arguments, or as lines of standard input when the only one is `-`. A line that is a JSON
/// object stands for its field of this name.
pub fn arguments_or_lines(given: Vec<String>, field: &str) -> Result<Vec<String>, Failure> {
    if given != ["-"] {
        return Ok(given);
    }
    let mut values = Vec::new();
    for line in BufReader::new(stdin()).lines() {
        let line = line?;
        let parsed: Option<Map<String, Value>> = serde_json::from_str(&line).ok();
        match parsed.map(|object| object.get(field).and_then(Value::as_str).map(str::to_owned)) {
            Some(Some(value)) => values.push(value),
            Some(None) => {
                return Err(Failure::Usage(format!("a line has no field {field:?}: {line}")));
            }
            None if line.trim().is_empty() => {}
            None => values.push(line.trim().to_owned()),
        }
    }
    Ok(values)
}
