//! Which store or server a command works with, and how it prints.

use clap::Args;

use crate::place::StorePlace;

/// Which store or server, and how to print.
#[derive(Debug, Clone, Args)]
pub struct Target {
    /// The store: a directory, or `dynamodb:TABLE`. It must not be in use by a server: then use --server.
    #[arg(
        long,
        global = true,
        value_name = "DIR | dynamodb:TABLE",
        env = "MILLPOND_STORE",
        default_value = "./millpond-data",
        help_heading = "Where"
    )]
    pub store: StorePlace,

    /// An object store for large payload: `s3://bucket/prefix` or `file:///directory`.
    #[arg(
        long,
        global = true,
        value_name = "URL",
        env = "MILLPOND_OBJECTS",
        help_heading = "Where"
    )]
    pub objects: Option<String>,

    /// A running server, such as http://127.0.0.1:9324; instead of --store. One with access keys is given
    /// MILLPOND_ACCESS_KEY_ID and MILLPOND_SECRET_ACCESS_KEY.
    #[arg(long, global = true, value_name = "URL", help_heading = "Where")]
    pub server: Option<String>,

    /// A file with certificates (PEM) that the server's may be signed by; without it, those that the machine trusts.
    #[arg(
        long,
        global = true,
        value_name = "FILE",
        env = "MILLPOND_CA_FILE",
        value_hint = clap::ValueHint::FilePath,
        help_heading = "Where"
    )]
    pub ca_file: Option<std::path::PathBuf>,

    /// Prints JSON: lists as one object a line, anything else as one object.
    #[arg(long, global = true, help_heading = "Output")]
    pub json: bool,
}

/// The variables that an access key for a server is taken from; flags can be seen by other users of a machine.
const KEY_VARIABLES: [&str; 2] = ["MILLPOND_ACCESS_KEY_ID", "MILLPOND_SECRET_ACCESS_KEY"];

/// The access key, if there is one.
pub fn access_key() -> Option<(String, String)> {
    let [id, secret] = KEY_VARIABLES.map(|name| std::env::var(name).ok());
    id.zip(secret)
}
