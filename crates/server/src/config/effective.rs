//! The configuration in force: every setting with its value.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgMatches, ValueEnum};
use millpond_sqs::{AccessKeys, AccountId, Region};
use serde::Deserialize;

use super::error::ConfigError;
use super::file;
use super::keys;
use super::listen::{self, Listen};
use super::pick::{Picker, Shown};
use super::queues::{self, DeclaredQueue};
use super::settings::{LimitSettings, ServeFlags, Settings};
use super::span::Span;
use super::traces::TraceConfig;
use crate::cli::DurabilityChoice;
use crate::http::limits as bounds;
use crate::place::StorePlace;

/// How logs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// Lines for people.
    Human,
    /// One JSON object a line.
    Json,
}

/// Who may read the metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MetricsFor {
    /// Whoever can reach the server.
    Everyone,
    /// Clients on this machine.
    Loopback,
    /// Nobody.
    Nobody,
}

/// TLS files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    pub cert: PathBuf,
    pub key: PathBuf,
}

/// Everything that `serve` needs to know.
#[derive(Debug)]
pub struct Config {
    pub listen: Listen,
    /// What that stands for, at least one.
    pub addresses: Vec<SocketAddr>,
    pub store: StorePlace,
    pub durability: DurabilityChoice,
    pub objects: Option<String>,
    pub create_table: bool,
    pub account_id: AccountId,
    pub region: Region,
    pub public_url: Option<String>,
    pub quiet_periods: bool,
    pub keys: Option<AccessKeys>,
    pub insecure_allow_anonymous: bool,
    pub tls: Option<TlsFiles>,
    pub test_clock: bool,
    pub log_format: LogFormat,
    pub log_level: String,
    pub metrics: MetricsFor,
    pub limits: Limits,
    /// Nothing when there are to be none.
    pub traces: Option<TraceConfig>,
    pub queues: Vec<DeclaredQueue>,
    /// Each setting and where it came from, for people.
    pub shown: Vec<Shown>,
}

/// The bounds in force.
#[derive(Debug, Clone)]
pub struct Limits {
    pub connections_max: usize,
    pub requests_max: usize,
    pub waits_max: usize,
    pub body_bytes_max: usize,
    pub bodies_bytes_max: usize,
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    pub idle_timeout: Duration,
    pub write_timeout: Duration,
    pub shutdown_timeout: Duration,
}

impl Config {
    /// What flags, environment and file say together.
    pub fn resolve(flags: ServeFlags, matches: &ArgMatches) -> Result<Self, ConfigError> {
        let ServeFlags { config: path, settings: said } = flags;
        let filed = path.as_deref().map(file::read).transpose()?.unwrap_or_default();
        let mut picker = Picker::new(matches, path.as_deref());
        let config = Self::choose(&mut picker, said, filed)?;
        config.check(&picker)?;
        Ok(Self { shown: picker.shown, ..config })
    }

    fn choose(
        picker: &mut Picker<'_>,
        said: Settings,
        filed: Settings,
    ) -> Result<Self, ConfigError> {
        let path = |path: &PathBuf| path.display().to_string();
        let home = StorePlace::Directory("./millpond-data".into());
        let listen = picker.pick("listen", said.listen, filed.listen, bounds::LISTEN.into());
        let store = picker.pick("store", said.store, filed.store, home);
        let durable = DurabilityChoice::Durable;
        let durability = picker.pick("durability", said.durability, filed.durability, durable);
        let objects = picker.pick_optional("objects", said.objects, filed.objects, String::clone);
        let create_table =
            picker.pick("create_table", said.create_table, filed.create_table, false);
        let account = AccountId::default();
        let account_id = picker.pick("account_id", said.account_id, filed.account_id, account);
        let region = picker.pick("region", said.region, filed.region, Region::default());
        let public_url =
            picker.pick_optional("public_url", said.public_url, filed.public_url, String::clone);
        let quiet_periods =
            picker.pick("quiet_periods", said.quiet_periods, filed.quiet_periods, true);
        let access_keys =
            picker.pick_optional("access_keys", said.access_keys, filed.access_keys, path);
        let insecure_allow_anonymous = picker.pick(
            "insecure_allow_anonymous",
            said.insecure_allow_anonymous,
            filed.insecure_allow_anonymous,
            false,
        );
        let cert = picker.pick_optional("tls_cert", said.tls_cert, filed.tls_cert, path);
        let key = picker.pick_optional("tls_key", said.tls_key, filed.tls_key, path);
        let test_clock = picker.pick("test_clock", said.test_clock, filed.test_clock, false);
        let human = LogFormat::Human;
        let log_format = picker.pick("log_format", said.log_format, filed.log_format, human);
        let info = "info".to_owned();
        let log_level = picker.pick("log_level", said.log_level, filed.log_level, info);
        let metrics = picker.pick("metrics", said.metrics, filed.metrics, MetricsFor::Everyone);
        Ok(Self {
            addresses: addresses(&listen, picker)?,
            listen,
            store,
            durability,
            objects,
            create_table,
            account_id,
            region,
            public_url,
            quiet_periods,
            keys: keys::load(access_keys.as_deref())?,
            insecure_allow_anonymous,
            tls: tls_files(cert, key)?,
            test_clock,
            log_format,
            log_level,
            metrics,
            limits: Limits::choose(picker, said.limits, filed.limits),
            traces: TraceConfig::choose(picker, said.traces, filed.traces)?,
            queues: filed.queues,
            shown: Vec::new(),
        })
    }

    /// What makes no sense, alone or together.
    fn check(&self, picker: &Picker<'_>) -> Result<(), ConfigError> {
        let invalid = |name: &'static str, problem: String| {
            let given_by = picker.source(name).to_string();
            Err(ConfigError::Invalid { name, problem, given_by })
        };
        let exposed = listen::exposed(&self.addresses);
        if let Some(address) = exposed
            && self.keys.is_none()
            && !self.insecure_allow_anonymous
        {
            let (said, is) = (self.listen.to_string(), address.to_string());
            let listen = if said == is { said } else { format!("{said} ({is})") };
            return Err(ConfigError::Anonymous { listen });
        }
        if self.test_clock && exposed.is_some() {
            let problem = "do not go together: the clock can be moved on loopback only";
            return Err(ConfigError::Conflict { first: "test_clock", second: "listen", problem });
        }
        if self.test_clock && self.keys.is_some() {
            let problem =
                "do not go together: signatures have a time, and a moved clock refuses them";
            return Err(ConfigError::Conflict {
                first: "test_clock",
                second: "access_keys",
                problem,
            });
        }
        if self.objects.is_some() && matches!(self.store, StorePlace::Directory(_)) {
            let problem = "do not go together: a directory keeps large payload itself";
            return Err(ConfigError::Conflict { first: "objects", second: "store", problem });
        }
        if let Some(url) = &self.public_url
            && !(url.starts_with("http://") || url.starts_with("https://"))
        {
            return invalid(
                "public_url",
                format!("{url:?} does not begin with http:// or https://"),
            );
        }
        if let Err(problem) = crate::telemetry::log_filter(&self.log_level) {
            return invalid("log_level", problem);
        }
        self.limits.check().or_else(|(name, problem)| invalid(name, problem))?;
        queues::check(&self.queues)
    }
}

/// What is listened on. A name is looked up once, so that what is checked is what is bound.
fn addresses(listen: &Listen, picker: &Picker<'_>) -> Result<Vec<SocketAddr>, ConfigError> {
    listen.resolve().map_err(|problem| ConfigError::Invalid {
        name: "listen",
        problem,
        given_by: picker.source("listen").to_string(),
    })
}

fn tls_files(cert: Option<PathBuf>, key: Option<PathBuf>) -> Result<Option<TlsFiles>, ConfigError> {
    match (cert, key) {
        (Some(cert), Some(key)) => Ok(Some(TlsFiles { cert, key })),
        (None, None) => Ok(None),
        _ => Err(ConfigError::Conflict {
            first: "tls_cert",
            second: "tls_key",
            problem: "go together: give both, or neither",
        }),
    }
}

impl Limits {
    /// Small ones, for tests.
    #[cfg(test)]
    pub fn example() -> Self {
        Self {
            connections_max: 9,
            requests_max: 1,
            waits_max: 1,
            body_bytes_max: 4 * 1_024,
            bodies_bytes_max: 4 * 1_024,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            write_timeout: Duration::from_secs(10),
            shutdown_timeout: Duration::from_secs(10),
        }
    }

    fn choose(picker: &mut Picker<'_>, said: LimitSettings, filed: LimitSettings) -> Self {
        picker.enter("limits");
        macro_rules! pick {
            ($name:ident, $default:expr) => {
                picker.pick(stringify!($name), said.$name, filed.$name, $default)
            };
        }
        Self {
            connections_max: pick!(connections_max, bounds::CONNECTIONS_MAX),
            requests_max: pick!(requests_max, bounds::REQUESTS_MAX),
            waits_max: pick!(waits_max, bounds::WAITS_MAX),
            body_bytes_max: pick!(body_bytes_max, bounds::BODY_BYTES_MAX),
            bodies_bytes_max: pick!(bodies_bytes_max, bounds::BODIES_BYTES_MAX),
            header_timeout: pick!(header_timeout, Span(bounds::HEADER_TIMEOUT)).0,
            body_timeout: pick!(body_timeout, Span(bounds::BODY_TIMEOUT)).0,
            idle_timeout: pick!(idle_timeout, Span(bounds::IDLE_TIMEOUT)).0,
            write_timeout: pick!(write_timeout, Span(bounds::WRITE_TIMEOUT)).0,
            shutdown_timeout: pick!(shutdown_timeout, Span(bounds::SHUTDOWN_TIMEOUT)).0,
        }
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        let counts = [
            ("connections_max", self.connections_max, 1_000_000),
            ("requests_max", self.requests_max, 1_000_000),
            ("waits_max", self.waits_max, 1_000_000),
            ("body_bytes_max", self.body_bytes_max, 1 << 30),
            ("bodies_bytes_max", self.bodies_bytes_max, 1 << 40),
        ];
        for (name, value, most) in counts {
            if value == 0 || value > most {
                return Err((name, format!("{value} is not between 1 and {most}")));
            }
        }
        if self.waits_max >= self.connections_max {
            let problem = format!(
                "{} waiting receives could take all {} connections (connections_max); give fewer",
                self.waits_max, self.connections_max
            );
            return Err(("waits_max", problem));
        }
        if self.bodies_bytes_max < self.body_bytes_max {
            let problem = format!(
                "{} bytes for all bodies are less than for one (body_bytes_max, {})",
                self.bodies_bytes_max, self.body_bytes_max
            );
            return Err(("bodies_bytes_max", problem));
        }
        Ok(())
    }
}

macro_rules! display_as_value {
    ($($type:ty),*) => {$(
        impl std::fmt::Display for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let value = self.to_possible_value();
                f.write_str(value.as_ref().map_or("", |value| value.get_name()))
            }
        }
    )*};
}
display_as_value!(LogFormat, MetricsFor, DurabilityChoice);
