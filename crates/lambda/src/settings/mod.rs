//! Settings of the ready functions, from environment variables.
//!
//! | variable | meaning | default |
//! |---|---|---|
//! | `MILLPOND_STORE` | the store: `dynamodb:TABLE` | none: it must be set |
//! | `MILLPOND_OBJECTS` | an object store for large payload and letters: `s3://BUCKET/PREFIX` | none |
//! | `MILLPOND_CONSUMER` | the consumer's name, a part of the key of its state | the function's name |
//! | `MILLPOND_DEAD_LETTERS` | where dead messages go: `queue:NAME`, `queue:NAME/CLIENT`, `log:TOPIC`, `kinesis:STREAM`, `sqs:URL`; of a worker `queue:NAME`, of a log `log:TOPIC` | `queue:dead-letters`; of a worker `queue:QUEUE-dead`; of a log none |
//! | `MILLPOND_DEAD_RECORDS` | where unusable records go, in the same forms | as `MILLPOND_DEAD_LETTERS` |
//! | `MILLPOND_ATTEMPTS` | how often a task is tried | 10 |
//! | `MILLPOND_CONCURRENCY` | how many handlers run at a time | 16 |
//! | `MILLPOND_TIMEOUT_SHARE` | the share of the time after which handlers are cut off | 0.8 |
//! | `MILLPOND_ORDER` | which messages wait for which: `none`, `shard` or `key` | `key` |
//! | `MILLPOND_RESPONSES` | how an unfinished batch is answered: `partial` or `error` | `partial` |
//! | `MILLPOND_BREAKER` | whether a wrong set-up disables the event source mapping: `on` or `off` | `off` |
//! | `MILLPOND_METRICS` | whether a line of metrics is written for each batch: `on` or `off` | `on` |
//! | `MILLPOND_FORWARD_QUEUE` | of the example handlers: the Millpond queue that messages are sent on to | none: they are only logged |
//! | `MILLPOND_SEQUENCER` | the sequencer's name | none: its functions need it |
//! | `MILLPOND_QUEUE_PROPERTY` | the property of a message that names its queue; with `/` in front, a JSON pointer | `queue` |
//! | `MILLPOND_SEQUENCE_PROPERTY` | the property of a message with its number | `seq` |
//! | `MILLPOND_QUEUE` | the worker's queue | none: the worker needs it |
//! | `MILLPOND_QUEUE_ORDER` | the order of the worker's queue, when the worker makes it: `fifo` or `lifo` | `fifo` |
//! | `MILLPOND_TOPIC` | the log's topic | none: its function needs it |
//! | `MILLPOND_GROUP` | the consumer group in that topic | the function's name |
//!
//! `RUST_LOG`, or else `AWS_LAMBDA_LOG_LEVEL`, sets the level of the log. Region, credentials and endpoints are found by the
//! SDK, in Lambda without any setting.

mod place;
mod variables;

pub use place::{SinkPlace, StorePlace};
pub use variables::{NAMES, SettingError, Variables};
