//! Event source mappings that a breaker has disabled.

use clap::{ArgGroup, Args};
use millpond_lambda::{Mapping, Mappings};
use serde_json::json;

use super::super::Failure;
use super::super::output::{Column, Output, Show};
use super::aws;
use crate::api::ErrorBody;

/// Which mapping.
#[derive(Debug, Args)]
#[command(group(ArgGroup::new("which").required(true).args(["mapping", "function"])))]
pub struct EnableArgs {
    /// The mapping's id, which the breaker has logged.
    #[arg(long, value_name = "UUID")]
    mapping: Option<String>,
    /// Or the function's full ARN, with alias or version where the mapping has one.
    #[arg(long, value_name = "ARN", requires = "source")]
    function: Option<String>,
    /// And the source's full ARN: of a DynamoDB table, that of its stream.
    #[arg(long, value_name = "ARN", requires = "function")]
    source: Option<String>,
}

const MAPPINGS: &[Column] = &[
    ("MAPPING", "mapping", Show::Plain),
    ("STATE", "state", Show::Plain),
    ("SOURCE", "source", Show::Plain),
    ("FUNCTION", "function", Show::Plain),
];

/// Enables mappings again.
pub async fn enable(out: Output, args: EnableArgs) -> Result<(), Failure> {
    let mappings = Mappings::new(&aws::load().await?);
    let found: Vec<Mapping> = match (&args.mapping, &args.function, &args.source) {
        (Some(uuid), ..) => vec![mappings.get(uuid).await?],
        (None, Some(function), Some(source)) => mappings.find(function, source).await?,
        _ => Vec::new(),
    };
    if found.is_empty() {
        let message =
            "no event source mapping leads from exactly that source to exactly that function";
        let (code, message) = ("not_found".to_owned(), message.to_owned());
        return Err(Failure::Refused(ErrorBody { code, message, field: None }));
    }
    let mut rows = Vec::new();
    for mapping in &found {
        mappings.enable(mapping).await?;
        let Mapping { uuid, source, function, state } = mappings.get(&mapping.uuid).await?;
        rows.push(
            json!({ "mapping": uuid, "state": state, "source": source, "function": function }),
        );
    }
    out.list(MAPPINGS, &rows)
}
