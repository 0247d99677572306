//! State of the older libraries.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::super::Failure;
use super::super::door::{Ask, Door, field};
use super::super::input::whole;
use super::super::output::{Column, Output, Show};

/// A request ends with the item that brings it to this many bytes, so that a server takes it. An item may have 400 KB.
const BATCH_BYTES: usize = 256 * 1_024;

/// Whose state, and where it is.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The consumer that takes it over.
    consumer: String,
    /// The source's full ARN: of a DynamoDB table, that of its stream.
    #[arg(long)]
    arn: String,
    /// What the old function called its consumer: the last part of `streamConsumerId`. Other items are passed over.
    #[arg(long, value_name = "NAME")]
    former: String,
    /// What the old function called the stream, where that is not its name in the ARN.
    #[arg(long, value_name = "NAME")]
    stream: Option<String>,
    /// A file with items as `aws dynamodb scan` prints them, or one in each line; `-` is standard input. Up to 64 MiB.
    #[arg(value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    file: PathBuf,
}

const IMPORTED: &[Column] = &[
    ("items", "items", Show::Plain),
    ("messages", "messages", Show::Plain),
    ("without a name, and run anew", "unnamed", Show::Plain),
    ("passed over", "passed_over", Show::Plain),
];

/// Takes state over.
pub async fn import(door: &Door, out: Output, args: ImportArgs) -> Result<(), Failure> {
    let items = items(&whole(&args.file)?)?;
    let mut sums = [("items", 0), ("messages", 0), ("unnamed", 0), ("passed_over", 0)];
    let mut others = Vec::new();
    let mut rest = items.as_slice();
    while !rest.is_empty() {
        let mut bytes = 0;
        let count = rest.iter().take_while(|item| {
            let fits = bytes < BATCH_BYTES;
            bytes += item.to_string().len();
            fits
        });
        let (batch, behind) = rest.split_at(count.count());
        let body = json!({
            "arn": args.arn, "former": args.former, "stream": args.stream, "items": batch,
        });
        let answer = door.ask(Ask::post(&["consumers", &args.consumer, "import"], body)).await?;
        for (name, sum) in &mut sums {
            *sum += field(&answer, name).as_u64().unwrap_or(0);
        }
        for other in field(&answer, "others").as_array().into_iter().flatten() {
            if !others.contains(other) {
                others.push(other.clone());
            }
        }
        rest = behind;
    }
    let mut answer: serde_json::Map<String, Value> =
        sums.iter().map(|(name, sum)| ((*name).to_owned(), (*sum).into())).collect();
    answer.insert("others".to_owned(), others.clone().into());
    out.one(IMPORTED, &Value::Object(answer))?;
    if !out.is_json() && !others.is_empty() {
        let others: Vec<&str> = others.iter().filter_map(Value::as_str).collect();
        eprintln!("millpond: passed over what is of {}", others.join(", "));
    }
    Ok(())
}

/// All items, whether they are in lists or by themselves.
fn items(text: &[u8]) -> Result<Vec<Value>, Failure> {
    let mut items = Vec::new();
    for value in serde_json::Deserializer::from_slice(text).into_iter::<Value>() {
        let mut value =
            value.map_err(|error| Failure::Usage(format!("the items are not JSON: {error}")))?;
        match value.get_mut("Items").map(Value::take) {
            Some(Value::Array(list)) => items.extend(list),
            _ => items.push(value),
        }
    }
    Ok(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_in_lists_and_in_lines() {
        let text = br#"{"Items": [{"a": 1}, {"a": 2}], "Count": 2}
            {"a": 3}
            {"Item": {"a": 4}}"#;
        assert_eq!(items(text).unwrap().len(), 4);
        assert!(items(b"").unwrap().is_empty());
        assert!(items(b"{\"Items\": [").is_err());
    }
}
