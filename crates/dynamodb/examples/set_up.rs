//! Makes a table, checks it, and prints the policies for who works with it.
//!
//! ```sh
//! cargo run -p millpond-dynamodb --example set_up -- create TABLE
//! cargo run -p millpond-dynamodb --example set_up -- verify TABLE
//! cargo run -p millpond-dynamodb --example set_up -- policies TABLE-ARN [BUCKET/PREFIX]
//! ```
//! Region, credentials and endpoint are found in the SDK's usual ways: `AWS_REGION`, `AWS_PROFILE`,
//! `AWS_ENDPOINT_URL` and their like. `policies` asks nobody.

use std::process::ExitCode;

use millpond_dynamodb::{DynamoDbConfig, DynamoDbStore, Role, TableOptions, policy};
use millpond_store::{Environment, StoreError};

const USAGE: &str =
    "usage: set_up create TABLE | verify TABLE | policies TABLE-ARN [BUCKET/PREFIX]";
const ROLES: [Role; 3] = [Role::Producer, Role::Consumer, Role::Admin];

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        ["create", table] => create(table).await,
        ["verify", table] => verify(table).await,
        ["policies", arn] => print_policies(arn, None),
        ["policies", arn, bucket] => print_policies(arn, Some(bucket)),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::FAILURE;
        }
    };
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

async fn open(table: &str) -> Result<DynamoDbStore, StoreError> {
    DynamoDbStore::open(DynamoDbConfig::new(table)?, &Environment::system()).await
}

async fn create(table: &str) -> Result<bool, StoreError> {
    let creation = open(table).await?.admin().create_table(TableOptions::default()).await?;
    println!("{table}: {creation:?}");
    Ok(true)
}

async fn verify(table: &str) -> Result<bool, StoreError> {
    let admin = open(table).await?.admin();
    let mut good = true;
    for role in ROLES {
        let report = admin.verify(role, TableOptions::default()).await?;
        println!("as {role:?}\n{report}");
        good &= report.is_good();
    }
    Ok(good)
}

fn print_policies(arn: &str, bucket: Option<&str>) -> Result<bool, StoreError> {
    for role in ROLES {
        println!("{role:?}\n{}\n", policy(role, arn, bucket));
    }
    Ok(true)
}
