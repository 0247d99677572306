//! By what name the function was invoked last.
//!
//! A process is one function, but it may be invoked through several aliases; each has event source mappings of its own.
//! The breaker must stop the one through which the event at hand came.

use std::sync::{Mutex, PoisonError};

static INVOKED: Mutex<Option<String>> = Mutex::new(None);

/// Remembers the ARN of the function as it was invoked, with its alias or version.
pub(crate) fn invoked_as(arn: &str) {
    let mut invoked = INVOKED.lock().unwrap_or_else(PoisonError::into_inner);
    if invoked.as_deref() != Some(arn) {
        *invoked = Some(arn.to_owned());
    }
}

/// The ARN of the function as it was invoked last.
pub(crate) fn invoked() -> Option<String> {
    INVOKED.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|arn| !arn.is_empty())
}
