//! The loop of a function: an event in, an answer out, before the deadline.

use std::time::Duration;

use bytes::Bytes;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use millpond_store::{Environment, Timestamp};
use serde_json::value::RawValue;

use crate::current;
use crate::error::{FunctionError, InvokeError};
use crate::limits::{ANSWER_MAX, ANSWER_MIN, ANSWER_SHARE};

/// What Lambda sets for every function, and its runtime needs.
const NEEDED: [&str; 4] = [
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
    "AWS_LAMBDA_FUNCTION_VERSION",
];

/// One invocation.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// The event, as it came: JSON.
    pub event: Bytes,
    /// When Lambda ends the function, whatever it does.
    pub deadline: Timestamp,
    /// Lambda's id of the request. The same when it is tried again.
    pub request_id: String,
    /// The ARN that was invoked, with its alias or version.
    pub function_arn: String,
}

impl Invocation {
    /// When the answer must be on its way.
    #[must_use]
    pub fn answer_by(&self, now: Timestamp) -> Timestamp {
        self.deadline.minus(reserve(self.deadline.since(now)))
    }

    /// How long there is until the answer must be on its way.
    #[must_use]
    pub fn remaining(&self, now: Timestamp) -> Duration {
        self.answer_by(now).since(now)
    }
}

/// Of the time that is left, what is kept for the answer.
fn reserve(left: Duration) -> Duration {
    (left / ANSWER_SHARE).clamp(ANSWER_MIN, ANSWER_MAX).min(left / 2)
}

/// Handles invocations, one after the other, until Lambda ends the process. The answer is JSON; an error is reported to
/// Lambda as one. Whatever has no answer shortly before the deadline is given up, with an error.
///
/// # Errors
/// When the process is not a function's, or its Runtime API goes away.
pub async fn serve<F, R>(environment: &Environment, handler: F) -> Result<(), FunctionError>
where
    F: Fn(Invocation) -> R,
    R: Future<Output = Result<Bytes, InvokeError>>,
{
    for variable in NEEDED {
        if std::env::var_os(variable).is_none() {
            return Err(FunctionError::NotInLambda { variable });
        }
    }
    let handler = &handler;
    let service = service_fn(move |event: LambdaEvent<Box<RawValue>>| async move {
        let LambdaEvent { payload, context } = event;
        current::invoked_as(&context.invoked_function_arn);
        let invocation = Invocation {
            event: Bytes::from(Box::<str>::from(payload).into_string()),
            deadline: Timestamp::from_millis(context.deadline),
            request_id: context.request_id,
            function_arn: context.invoked_function_arn,
        };
        let request_id = invocation.request_id.clone();
        let left = invocation.remaining(environment.now());
        let answer = tokio::select! {
            biased;
            answer = handler(invocation) => answer,
            () = environment.clock.sleep(left) => Err(InvokeError::Deadline),
        };
        answer.and_then(as_json).map_err(|error| {
            tracing::error!(request_id, %error, "an invocation failed");
            let (error_type, error_message) = (error.name().to_owned(), error.to_string());
            Diagnostic { error_type, error_message }
        })
    });
    let ended = lambda_runtime::Runtime::new(service).run().await;
    ended.map_err(|error| FunctionError::Runtime(error.to_string()))
}

fn as_json(answer: Bytes) -> Result<Box<RawValue>, InvokeError> {
    let text = String::from_utf8(answer.into())
        .map_err(|_| InvokeError::Handler("the answer is not text".into()))?;
    RawValue::from_string(text)
        .map_err(|error| InvokeError::Handler(format!("the answer is not JSON: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation(deadline: u64) -> Invocation {
        let (request_id, function_arn) = (String::new(), String::new());
        let deadline = Timestamp::from_millis(deadline);
        Invocation { event: Bytes::new(), deadline, request_id, function_arn }
    }

    #[test]
    fn time_is_kept_for_the_answer_but_never_all_of_it() {
        let now = Timestamp::from_millis(1_000_000);
        let left = |ms: u64| invocation(1_000_000 + ms).remaining(now);
        assert_eq!(left(10_000), Duration::from_millis(9_800));
        assert_eq!(left(900_000), Duration::from_millis(898_000));
        assert_eq!(left(3_000), Duration::from_millis(2_900));
        assert_eq!(left(100), Duration::from_millis(50));
        assert_eq!(invocation(0).remaining(now), Duration::ZERO);
    }
}
