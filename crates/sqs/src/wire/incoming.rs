//! A request, as far as its encoding goes: which action, with which parameters.

use std::borrow::Cow;

use bytes::Bytes;
use http::{Method, Request};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::form;
use crate::actions::Action;
use crate::error::{Code, Failure, Result};
use crate::limits::PARAMETERS_MAX;

/// How a request is encoded, and so its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// AWS JSON 1.0.
    Json,
    /// The Query protocol.
    Query,
}

/// The parameters of an action.
#[derive(Debug, Clone)]
pub enum Params {
    /// As JSON text.
    Json(Bytes),
    /// As they were in a form, in the shape that JSON has.
    Query(Value),
}

/// A request.
#[derive(Debug, Clone)]
pub struct Incoming {
    pub action: Action,
    pub params: Params,
}

impl Encoding {
    /// The encoding of a request.
    pub fn of<B>(request: &Request<B>) -> Self {
        if request.headers().contains_key(TARGET) { Self::Json } else { Self::Query }
    }
}

const TARGET: &str = "x-amz-target";

impl Incoming {
    /// Reads a request.
    pub fn read(request: &Request<Bytes>) -> Result<Self> {
        match request.headers().get(TARGET) {
            Some(target) => {
                let named = target.to_str().ok().and_then(|text| text.strip_prefix("AmazonSQS."));
                let action = named.and_then(Action::of_name).ok_or_else(|| {
                    Failure::new(Code::UnknownOperation, "The requested operation is not known.")
                })?;
                Ok(Self { action, params: Params::Json(request.body().clone()) })
            }
            None => Self::read_form(request),
        }
    }

    fn read_form(request: &Request<Bytes>) -> Result<Self> {
        let query = request.uri().query().unwrap_or_default();
        let mut pairs = Vec::new();
        read_pairs(query.as_bytes(), &mut pairs)?;
        if request.method() != Method::GET {
            read_pairs(request.body(), &mut pairs)?;
        }
        let named = pairs.iter().rev().find(|(name, _)| name == "Action").map(|(_, value)| value);
        let Some(named) = named else { return Err(Failure::missing("Action")) };
        let action = Action::of_name(named).ok_or_else(|| {
            let shown: String = named.chars().take(64).collect();
            let text = format!("The action {shown} is not valid for this endpoint.");
            Failure::new(Code::UnknownOperation, text)
        })?;
        Ok(Self { action, params: Params::Query(form::shape(&pairs)?) })
    }
}

/// Reads the parameters of a form.
fn read_pairs<'a>(bytes: &'a [u8], pairs: &mut Vec<(Cow<'a, str>, Cow<'a, str>)>) -> Result<()> {
    for pair in form_urlencoded::parse(bytes) {
        if pairs.len() >= PARAMETERS_MAX {
            let text = format!("The request has more than {PARAMETERS_MAX} parameters.");
            return Err(Failure::new(Code::Serialization, text));
        }
        pairs.push(pair);
    }
    Ok(())
}

impl Params {
    /// The parameters as an action's own type.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T> {
        let malformed = |error: serde_json::Error| {
            // What serde says names fields and kinds, not values.
            Failure::new(Code::Serialization, format!("The request cannot be read: {error}"))
        };
        match self {
            // An action without parameters may come without a body.
            Self::Json(text) if text.is_empty() => serde_json::from_str("{}").map_err(malformed),
            Self::Json(text) => serde_json::from_slice(text).map_err(malformed),
            Self::Query(shaped) => T::deserialize(shaped).map_err(malformed),
        }
    }
}
