//! What can go wrong with a function.

use millpond_consumer::BuildError;
use millpond_log::LogError;
use millpond_queue::QueueError;
use millpond_sequencer::SequencerError;
use millpond_store::StoreError;

use crate::failure::AwsError;
use crate::settings::SettingError;

/// Why a function could not start, or ended.
#[derive(Debug, thiserror::Error)]
pub enum FunctionError {
    /// An environment variable is missing or makes no sense. Set it as the text says.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The consumer's settings contradict each other. Correct those that are named.
    #[error("the consumer cannot be made: {0}")]
    Consumer(#[from] BuildError),
    /// The store could not be opened. Do what its text says.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A queue could not be opened, or is set up in another way.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// A topic could not be opened.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The sequencer's settings make no sense.
    #[error(transparent)]
    Sequencer(#[from] SequencerError),
    /// An AWS client could not be made.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// The process was not started by Lambda, or by something that stands in for it.
    #[error(
        "{variable} is not set: this program runs in AWS Lambda, or locally under `cargo lambda watch`"
    )]
    NotInLambda {
        /// The variable that Lambda sets.
        variable: &'static str,
    },
    /// The connection to Lambda's Runtime API ended. Lambda starts the function anew.
    #[error("the Runtime API cannot be reached: {0}")]
    Runtime(String),
}

/// Why one invocation failed. Lambda counts it as an error, and tries again as the function's trigger says.
#[derive(Debug, thiserror::Error)]
pub enum InvokeError {
    /// The event is none that this function takes.
    #[error("the event is not one for this function: {0}")]
    Event(String),
    /// A batch is not finished, and its consumer answers with errors.
    #[error("{0}")]
    Unfinished(String),
    /// It did not end in time. What was done is kept.
    #[error("the work did not end before the deadline")]
    Deadline,
    /// The queue failed.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The log failed.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The sequencer failed.
    #[error(transparent)]
    Sequencer(#[from] SequencerError),
    /// The function could not invoke itself for what is left. Its schedule, or the next wake-up, goes on with it.
    #[error("work is left, and the function could not be invoked for it: {0}")]
    Continuation(#[source] AwsError),
    /// Another function could not be invoked.
    #[error(transparent)]
    Aws(#[from] AwsError),
    /// A handler failed with an error of its own.
    #[error("{0}")]
    Handler(String),
}

impl InvokeError {
    /// A short name for logs and for Lambda's `errorType`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Event(_) => "Millpond.Event",
            Self::Unfinished(_) => "Millpond.Unfinished",
            Self::Deadline => "Millpond.Deadline",
            Self::Queue(_) => "Millpond.Queue",
            Self::Log(_) => "Millpond.Log",
            Self::Sequencer(_) => "Millpond.Sequencer",
            Self::Continuation(_) => "Millpond.Continuation",
            Self::Aws(_) => "Millpond.Aws",
            Self::Handler(_) => "Millpond.Handler",
        }
    }
}
