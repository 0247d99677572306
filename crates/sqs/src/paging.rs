//! Pages of lists: a token says behind which name the next one begins.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::error::{Failure, Result};
use crate::limits::PAGE_RESULTS_MAX;
use crate::place::check_name;
use crate::wire::Whole;

/// Which part of a list is asked for.
#[derive(Debug, PartialEq, Eq)]
pub struct Page {
    /// What comes behind this name.
    pub after: Option<String>,
    /// No more than this; nothing when the whole list is asked for.
    pub most: Option<u64>,
}

pub fn page(token: Option<&str>, most: Option<&Whole>) -> Result<Page> {
    let invalid = || Failure::parameter("Invalid or expired next token.");
    let after = match token {
        None => None,
        Some(token) => {
            let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| invalid())?;
            let name = String::from_utf8(bytes).map_err(|_| invalid())?;
            check_name(&name).map_err(|_| invalid())?;
            Some(name)
        }
    };
    let reason = "MaxResults must be an integer between 1 and 1000.";
    let most =
        most.map(|most| most.within("MaxResults", 1, PAGE_RESULTS_MAX, reason)).transpose()?;
    Ok(Page { after, most })
}

/// The token of the page behind a name.
pub fn token(name: &str) -> String {
    URL_SAFE_NO_PAD.encode(name)
}
