//! Attributes of queues: which there are, what they may be, and what they mean for the queue below.
//!
//! They are kept as they were set, as text; what is not set has its default. [`Settings`] is what they mean.

mod change;
mod own;
mod policies;
mod settings;
mod show;

pub use change::{apply, check_idempotent};
pub use policies::{Allow, Redrive};
pub use settings::Settings;
pub use show::{show, wants_counts};

/// The attributes of a queue that are set, by name.
pub type Texts = std::collections::BTreeMap<String, String>;

/// Attributes with a number: name, least, most, default.
pub const NUMBERS: &[(&str, u64, u64, u64)] = &[
    ("VisibilityTimeout", 0, 43_200, 30),
    ("MaximumMessageSize", 1_024, 1_048_576, 1_048_576),
    ("MessageRetentionPeriod", 60, 1_209_600, 345_600),
    ("DelaySeconds", 0, 900, 0),
    ("ReceiveMessageWaitTimeSeconds", 0, 20, 0),
    ("KmsDataKeyReusePeriodSeconds", 60, 86_400, 300),
];

/// Attributes that can be read and not set.
pub const READ_ONLY: &[&str] = &[
    "ApproximateNumberOfMessages",
    "ApproximateNumberOfMessagesNotVisible",
    "ApproximateNumberOfMessagesDelayed",
    "CreatedTimestamp",
    "LastModifiedTimestamp",
    "QueueArn",
];

/// Attributes that only FIFO queues have, beside `FifoQueue`, and their defaults.
pub const FIFO_ONLY: &[(&str, &str)] = &[
    ("ContentBasedDeduplication", "false"),
    ("DeduplicationScope", "queue"),
    ("FifoThroughputLimit", "perQueue"),
];

/// Attributes that are shown only when they are set.
pub const OPTIONAL: &[&str] = &["Policy", "RedrivePolicy", "RedriveAllowPolicy", "KmsMasterKeyId"];

/// A number as it is set, or its default.
fn number(texts: &Texts, name: &str) -> u64 {
    let default = NUMBERS.iter().find(|(known, ..)| *known == name).map_or(0, |known| known.3);
    texts.get(name).and_then(|text| text.parse().ok()).unwrap_or(default)
}
