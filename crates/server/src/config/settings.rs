//! Every setting once: its flag, its variable and its key.

use std::path::PathBuf;

use clap::Args;
use millpond_sqs::{AccountId, Region};
use serde::Deserialize;

use super::effective::{LogFormat, MetricsFor};
use super::file::from_text;
use super::listen::Listen;
use super::queues::DeclaredQueue;
use super::span::Span;
use super::traces::TraceSettings;
use crate::cli::DurabilityChoice;
use crate::place::StorePlace;

/// What `serve` and `config check` can be told on the command line.
#[derive(Debug, Clone, Args)]
pub struct ServeFlags {
    /// A file with settings (TOML). Flags come before variables, and both before the file.
    #[arg(long, env = "MILLPOND_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,

    #[command(flatten)]
    pub settings: Settings,
}

/// The settings, each as far as somebody gave it.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Settings {
    /// The address to listen on, or a name, such as localhost:9324, for all its addresses; port 0 takes a free one
    /// [default: 127.0.0.1:9324].
    #[arg(long, env = "MILLPOND_LISTEN", value_name = "ADDRESS")]
    #[serde(deserialize_with = "from_text")]
    pub listen: Option<Listen>,

    /// Where the data is: a directory, which is made if it is not there, or dynamodb:TABLE, found in the AWS SDK's
    /// usual ways (AWS_REGION, AWS_ENDPOINT_URL and so on) [default: ./millpond-data].
    #[arg(long, env = "MILLPOND_STORE", value_name = "DIR | dynamodb:TABLE")]
    #[serde(deserialize_with = "from_text")]
    pub store: Option<StorePlace>,

    /// When a message in a directory counts as sent [default: durable].
    #[arg(long, env = "MILLPOND_DURABILITY", value_enum)]
    pub durability: Option<DurabilityChoice>,

    /// Where large payload goes with a table: s3://bucket/prefix or file:///directory.
    #[arg(long, env = "MILLPOND_OBJECTS", value_name = "URL")]
    pub objects: Option<String>,

    /// Make the table if it is not there [default: false].
    #[arg(long, env = "MILLPOND_CREATE_TABLE", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub create_table: Option<bool>,

    /// The account of queues, where a request names none [default: 000000000000].
    #[arg(long, env = "MILLPOND_ACCOUNT_ID", value_name = "12 DIGITS")]
    pub account_id: Option<AccountId>,

    /// The region of queues, where a request's signature names none [default: us-east-1].
    #[arg(long, env = "MILLPOND_REGION")]
    pub region: Option<Region>,

    /// What queue URLs begin with. Otherwise they begin with what the client called the server.
    #[arg(long, env = "MILLPOND_PUBLIC_URL", value_name = "URL")]
    pub public_url: Option<String>,

    /// Whether a queue can be purged, or made again after its deletion, only once in 60 seconds, as the service has
    /// it; tests may want to switch it off [default: true].
    #[arg(long, env = "MILLPOND_QUIET_PERIODS", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub quiet_periods: Option<bool>,

    /// A file with access keys (TOML). With keys, every request must be signed by one of them. A single key for
    /// everything can also be given as MILLPOND_ACCESS_KEY_ID and MILLPOND_SECRET_ACCESS_KEY.
    #[arg(long, env = "MILLPOND_ACCESS_KEYS", value_name = "FILE")]
    pub access_keys: Option<PathBuf>,

    /// DANGER: let anyone who can reach the address read, change and delete everything. Without it, and without
    /// access keys, only loopback addresses are listened on [default: false].
    #[arg(long, env = "MILLPOND_INSECURE_ALLOW_ANONYMOUS", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub insecure_allow_anonymous: Option<bool>,

    /// The certificate chain (PEM) for TLS. It is read again when the file changes.
    #[arg(long, env = "MILLPOND_TLS_CERT", value_name = "FILE")]
    pub tls_cert: Option<PathBuf>,

    /// The certificate's private key (PEM).
    #[arg(long, env = "MILLPOND_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,

    /// Let clients move the server's clock: POST /test-clock/advance {"seconds": 30}. For tests of visibility, delay
    /// and deduplication that need not wait. Loopback only, without access keys [default: false].
    #[arg(long, env = "MILLPOND_TEST_CLOCK", num_args = 0..=1, default_missing_value = "true", require_equals = true)]
    pub test_clock: Option<bool>,

    /// How logs are written, on standard error [default: human].
    #[arg(long, env = "MILLPOND_LOG_FORMAT", value_enum)]
    pub log_format: Option<LogFormat>,

    /// What is logged: off, error, warn, info, debug or trace, or by module, as in info,millpond=debug
    /// [default: info].
    #[arg(long, env = "MILLPOND_LOG_LEVEL", value_name = "LEVEL")]
    pub log_level: Option<String>,

    /// Who may read /metrics [default: everyone].
    #[arg(long, env = "MILLPOND_METRICS", value_enum, value_name = "WHO")]
    pub metrics: Option<MetricsFor>,

    #[command(flatten)]
    #[serde(default)]
    pub limits: LimitSettings,

    #[command(flatten)]
    #[serde(default)]
    pub traces: TraceSettings,

    /// Queues that are made at the start, or set to these attributes.
    #[arg(skip)]
    #[serde(rename = "queue")]
    pub queues: Vec<DeclaredQueue>,
}

/// The bounds, as far as somebody gave them: the table `[limits]` of the file.
#[derive(Debug, Clone, Default, Args, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[command(next_help_heading = "Limits")]
pub struct LimitSettings {
    /// Connections at a time; also bounded by the process's limit of open files [default: 10000].
    #[arg(long, env = "MILLPOND_CONNECTIONS_MAX", value_name = "COUNT", hide_short_help = true)]
    pub connections_max: Option<usize>,

    /// Requests in work at a time; others wait a second, then get 503 [default: 512].
    #[arg(long, env = "MILLPOND_REQUESTS_MAX", value_name = "COUNT", hide_short_help = true)]
    pub requests_max: Option<usize>,

    /// Receives that wait for messages at a time, counted apart; others get 429 [default: 5000].
    #[arg(long, env = "MILLPOND_WAITS_MAX", value_name = "COUNT", hide_short_help = true)]
    pub waits_max: Option<usize>,

    /// Bytes of one request's body; larger ones get 413 [default: 8388608].
    #[arg(long, env = "MILLPOND_BODY_BYTES_MAX", value_name = "BYTES", hide_short_help = true)]
    pub body_bytes_max: Option<usize>,

    /// Bytes of all bodies in memory, of requests and answers; over it requests get 503 [default: 268435456].
    #[arg(long, env = "MILLPOND_BODIES_BYTES_MAX", value_name = "BYTES", hide_short_help = true)]
    pub bodies_bytes_max: Option<usize>,

    /// How long a request's head may take [default: 10s].
    #[arg(long, env = "MILLPOND_HEADER_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[serde(deserialize_with = "from_text")]
    pub header_timeout: Option<Span>,

    /// How long a request's body may take [default: 30s].
    #[arg(long, env = "MILLPOND_BODY_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[serde(deserialize_with = "from_text")]
    pub body_timeout: Option<Span>,

    /// How long a connection may be without a request [default: 2m].
    #[arg(long, env = "MILLPOND_IDLE_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[serde(deserialize_with = "from_text")]
    pub idle_timeout: Option<Span>,

    /// How long a client may take to take an answer [default: 30s].
    #[arg(long, env = "MILLPOND_WRITE_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[serde(deserialize_with = "from_text")]
    pub write_timeout: Option<Span>,

    /// How long requests may take to finish when the server is told to stop [default: 30s].
    #[arg(long, env = "MILLPOND_SHUTDOWN_TIMEOUT", value_name = "TIME", hide_short_help = true)]
    #[serde(deserialize_with = "from_text")]
    pub shutdown_timeout: Option<Span>,
}
