//! How a sequencer treats its queues, kept in the store, since every process must say the same.
//!
//! An item in the partition `sequencers`, sort key the sequencer's name: `settings`, text, JSON as in the API.

use std::time::Duration;

use millpond_lanes::Ground;
use millpond_sequencer::{
    Config, ConflictRule, GapPolicy, LatePolicy, Retention, Sequencer, Start, Window,
};
use millpond_store::{Attributes, Expect, Item, Key, Partition, Query, StoreError, Write, collect};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::Api;
use super::super::error::ApiError;
use super::super::limits::LISTED_MAX;

const PARTITION: &str = "sequencers";

/// Names that begin partitions of other products.
const RESERVED: [&str; 6] = ["log", "q", "queues", "sequencers", "t", "topics"];

/// How a sequencer treats its queues; what is not given is as usual.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SequencerSettings {
    /// The number with which a queue begins. Default: 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start: Option<StartSetting>,
    /// The most numbers that one step of the cursor passes. Default: 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// How many numbers ahead of the awaited one are accepted. Default: 1,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_span: Option<u64>,
    /// How many messages may wait. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_count: Option<u64>,
    /// How many bytes of payload may wait. Default: no bound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u64>,
    /// A second message with the same number and other content: refused (default), or taken for a duplicate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conflicts: Option<ConflictsSetting>,
    /// What happens when a number does not come. Default: wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps: Option<GapsSetting>,
    /// With `skip_after` and `park_after`: after how long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gaps_after_ms: Option<u64>,
    /// What happens to a message whose number was skipped. Default: reject.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late: Option<LateSetting>,
    /// Delivered messages: the last so many numbers stay at least. Default: all stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_last: Option<u64>,
    /// Delivered messages: what was put within this time stays at least. Default: all stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retain_ms: Option<u64>,
}

/// The number with which a queue begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum StartSetting {
    /// This one.
    Number(u64),
    /// Another way.
    Named(StartName),
}

/// How a queue begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StartName {
    /// With the number of the message that is put first.
    FirstSeen,
    /// With what a reset stored; a queue that was never reset is refused.
    Stored,
}

/// What a second message with the same number means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConflictsSetting {
    /// Other content is refused.
    Refuse,
    /// It is a duplicate, whatever it says.
    KeepFirst,
}

/// What happens when a number does not come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GapsSetting {
    /// The queue waits.
    Wait,
    /// It goes on where a producer declares a gap.
    WhenDeclared,
    /// The sweeper skips what is missing for so long.
    SkipAfter,
    /// The sweeper parks a queue in which something is missing for so long.
    ParkAfter,
}

/// What happens to late arrivals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum LateSetting {
    /// Refused.
    Reject,
    /// Kept aside.
    SideQueue,
    /// Kept aside, and subscribers are told.
    Deliver,
}

impl SequencerSettings {
    /// The configuration that they are.
    pub fn config(&self) -> Result<Config, ApiError> {
        let usual = Config::default();
        let after = || {
            let millis = self.gaps_after_ms.ok_or_else(|| {
                ApiError::invalid("gaps_after_ms", "is needed with skip_after and park_after")
            })?;
            Ok::<_, ApiError>(Duration::from_millis(millis))
        };
        let timed = matches!(self.gaps, Some(GapsSetting::SkipAfter | GapsSetting::ParkAfter));
        if self.gaps_after_ms.is_some() && !timed {
            return Err(ApiError::invalid("gaps_after_ms", "goes with skip_after or park_after"));
        }
        Ok(Config {
            start: match self.start {
                None => usual.start,
                Some(StartSetting::Number(first)) => Start::At(first),
                Some(StartSetting::Named(StartName::FirstSeen)) => Start::FirstSeen,
                Some(StartSetting::Named(StartName::Stored)) => Start::Stored,
            },
            batch: self.batch.unwrap_or(usual.batch),
            window: Window {
                span: self.window_span.unwrap_or(usual.window.span),
                count: self.window_count,
                bytes: self.window_bytes,
            },
            conflicts: match self.conflicts {
                Some(ConflictsSetting::KeepFirst) => ConflictRule::KeepFirst,
                Some(ConflictsSetting::Refuse) | None => ConflictRule::Refuse,
            },
            gaps: match self.gaps {
                Some(GapsSetting::WhenDeclared) => GapPolicy::WhenDeclared,
                Some(GapsSetting::SkipAfter) => GapPolicy::SkipAfter(after()?),
                Some(GapsSetting::ParkAfter) => GapPolicy::ParkAfter(after()?),
                Some(GapsSetting::Wait) | None => GapPolicy::Wait,
            },
            late: match self.late {
                Some(LateSetting::SideQueue) => LatePolicy::SideQueue,
                Some(LateSetting::Deliver) => LatePolicy::Deliver,
                Some(LateSetting::Reject) | None => LatePolicy::Reject,
            },
            retention: match (self.retain_last, self.retain_ms) {
                (None, None) => Retention::Forever,
                (Some(count), None) => Retention::Last(count),
                (None, Some(millis)) => Retention::For(Duration::from_millis(millis)),
                (Some(_), Some(_)) => {
                    return Err(ApiError::invalid("retain_last", "and retain_ms exclude another"));
                }
            },
        })
    }
}

fn key(name: &str) -> Result<Key, ApiError> {
    if RESERVED.contains(&name) {
        let problem = format!("{name:?} is used by Millpond itself; choose another");
        return Err(ApiError::invalid("sequencer", problem));
    }
    Ok(Key::new(PARTITION, name.as_bytes().to_vec())?)
}

/// What is stored for a sequencer.
pub async fn load(ground: &Ground, name: &str) -> Result<Option<SequencerSettings>, ApiError> {
    let Some(item) = ground.store.get(&key(name)?).await? else { return Ok(None) };
    let settings = serde_json::from_str(item.attributes.text("settings")?);
    let settings = settings.map_err(|error| {
        StoreError::corrupt(format!("sequencer {}", item.key), error.to_string())
    })?;
    Ok(Some(settings))
}

/// Nothing to ask.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoInput {}

/// Names of sequencers.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SequencerNames {
    /// The names, in order.
    pub sequencers: Vec<String>,
}

/// The names of sequencers with settings.
pub async fn list(api: Api, _: NoInput) -> Result<SequencerNames, ApiError> {
    let query = Query::new(Partition::new(PARTITION)?);
    let items = collect(api.ground().store.as_ref(), query, LISTED_MAX).await?;
    let name = |item: &Item| String::from_utf8_lossy(item.key.sort.as_bytes()).into_owned();
    Ok(SequencerNames { sequencers: items.iter().map(name).collect() })
}

/// A sequencer's settings to be.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureInput {
    sequencer: String,
    /// How it treats its queues.
    settings: SequencerSettings,
}

/// A sequencer.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Sequencer")]
pub struct SequencerOutput {
    /// Its name.
    pub name: String,
    /// How it treats its queues.
    pub settings: SequencerSettings,
    /// Whether settings are stored for it; else the usual ones hold.
    pub stored: bool,
}

/// Stores settings.
pub async fn configure(api: Api, input: ConfigureInput) -> Result<SequencerOutput, ApiError> {
    let ConfigureInput { sequencer: name, settings } = input;
    // Opening it checks name and settings.
    let (ground, environment) = (api.ground(), api.environment());
    Sequencer::open(ground.store.clone(), environment, &name, settings.config()?)?;
    let text = serde_json::to_string(&settings).unwrap_or_default();
    let attributes = Attributes::new().with("settings", text.as_str());
    let put = Write::put(key(&name)?, attributes, Expect::Any, environment.version());
    ground.store.write(put).await?;
    api.handles().forget_sequencer(&name);
    Ok(SequencerOutput { name, settings, stored: true })
}

/// Which sequencer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SequencerInput {
    sequencer: String,
}

impl SequencerInput {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.sequencer
    }
}

/// A sequencer's settings.
pub async fn describe(api: Api, input: SequencerInput) -> Result<SequencerOutput, ApiError> {
    let stored = load(api.ground(), &input.sequencer).await?;
    let (is_stored, settings) = (stored.is_some(), stored.unwrap_or_default());
    Ok(SequencerOutput { name: input.sequencer, settings, stored: is_stored })
}
