//! Redrive policies: where messages go that were received too often, and who may send them here.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::{Failure, Result};
use crate::limits::SOURCES_MAX;
use crate::place::Place;

/// Where messages go that were received too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redrive {
    pub to: Place,
    pub receives_max: u32,
}

impl Redrive {
    pub fn read(text: &str) -> Result<Self> {
        let invalid = |reason: &str| Failure::value("RedrivePolicy", text, reason);
        let policy = serde_json::from_str::<Value>(text);
        let Ok(Value::Object(policy)) = policy else {
            return Err(invalid("Redrive policy is not a valid JSON map."));
        };
        let field = |name: &str| {
            policy.get(name).ok_or_else(|| {
                let lacks = format!("Redrive policy does not contain mandatory attribute: {name}.");
                invalid(&lacks)
            })
        };
        let arn = field("deadLetterTargetArn")?;
        let count = field("maxReceiveCount")?;
        if let Some(name) = policy
            .keys()
            .find(|name| !matches!(name.as_str(), "deadLetterTargetArn" | "maxReceiveCount"))
        {
            return Err(invalid(&format!(
                "Only following attributes are supported: \
                [deadLetterTargetArn, maxReceiveCount], not {name}."
            )));
        }
        // Some clients write the number as text.
        let number = count.as_u64().or_else(|| count.as_str()?.parse().ok());
        let receives_max = number
            .and_then(|number| u32::try_from(number).ok())
            .filter(|number| (1..=1_000).contains(number))
            .ok_or_else(|| {
                let count = count.as_str().map_or_else(|| count.to_string(), str::to_owned);
                invalid(&format!(
                    "Invalid value for maxReceiveCount: {count}, valid values are from 1 to 1000 both inclusive."
                ))
            })?;
        let to = arn
            .as_str()
            .and_then(Place::of_arn)
            .ok_or_else(|| invalid("Invalid value for deadLetterTargetArn."))?;
        Ok(Self { to, receives_max })
    }

    /// The policy as it is shown: always in the same form.
    pub fn text(&self) -> String {
        let count = self.receives_max;
        json!({"deadLetterTargetArn": self.to.arn(), "maxReceiveCount": count}).to_string()
    }
}

/// Which queues may have this one for their dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Allow {
    /// All.
    #[default]
    All,
    /// None.
    None,
    /// These.
    By(Vec<Place>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct AllowText {
    redrive_permission: String,
    source_queue_arns: Option<Vec<String>>,
}

impl Allow {
    pub fn read(text: &str) -> Result<Self> {
        let invalid = |reason: &str| Failure::value("RedriveAllowPolicy", text, reason);
        let policy: AllowText = serde_json::from_str(text)
            .map_err(|error| invalid(&format!("Amazon SQS can't read it: {error}.")))?;
        match (policy.redrive_permission.as_str(), policy.source_queue_arns) {
            ("allowAll", None) => Ok(Self::All),
            ("denyAll", None) => Ok(Self::None),
            ("allowAll" | "denyAll", Some(_)) => {
                Err(invalid("sourceQueueArns can only be used with redrivePermission byQueue."))
            }
            ("byQueue", Some(arns)) if (1..=SOURCES_MAX).contains(&arns.len()) => {
                let places = arns.iter().map(|arn| Place::of_arn(arn)).collect::<Option<_>>();
                Ok(Self::By(places.ok_or_else(|| invalid("A source queue's ARN is not valid."))?))
            }
            ("byQueue", _) => Err(invalid("sourceQueueArns must have 1 to 10 ARNs.")),
            _ => Err(invalid("redrivePermission must be allowAll, denyAll or byQueue.")),
        }
    }

    pub fn permits(&self, source: &Place) -> bool {
        match self {
            Self::All => true,
            Self::None => false,
            Self::By(places) => places.contains(source),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:sqs:us-east-1:000000000000:dead";

    #[test]
    fn a_redrive_policy_is_always_shown_in_the_same_form() {
        let canonical = format!(r#"{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":3}}"#);
        for text in [
            canonical.clone(),
            format!(r#"{{ "maxReceiveCount" : "3", "deadLetterTargetArn": "{ARN}" }}"#),
        ] {
            assert_eq!(Redrive::read(&text).unwrap().text(), canonical);
        }
    }

    #[test]
    fn what_is_wrong_with_a_redrive_policy_is_named() {
        for (text, part) in [
            ("x", "not a valid JSON map"),
            (r#"{"maxReceiveCount":3}"#, "deadLetterTargetArn"),
            (
                &format!(r#"{{"deadLetterTargetArn":"{ARN}"}}"#),
                "mandatory attribute: maxReceiveCount",
            ),
            (
                &format!(r#"{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":0}}"#),
                "from 1 to 1000",
            ),
            (
                &format!(r#"{{"deadLetterTargetArn":"{ARN}","maxReceiveCount":1001}}"#),
                "from 1 to 1000",
            ),
            (r#"{"deadLetterTargetArn":"dead","maxReceiveCount":3}"#, "deadLetterTargetArn"),
        ] {
            let failure = Redrive::read(text).unwrap_err();
            assert!(failure.text.contains(part), "{text}: {}", failure.text);
        }
    }

    #[test]
    fn a_redrive_allow_policy_says_who_may() {
        let source = Place::of_arn(ARN).unwrap();
        let by = format!(r#"{{"redrivePermission":"byQueue","sourceQueueArns":["{ARN}"]}}"#);
        assert!(Allow::read(&by).unwrap().permits(&source));
        assert!(!Allow::read(r#"{"redrivePermission":"denyAll"}"#).unwrap().permits(&source));
        let many = format!(r#"["{ARN}"{}]"#, format!(r#","{ARN}""#).repeat(10));
        for bad in [
            r#"{"redrivePermission":"byQueue"}"#.to_owned(),
            r#"{"redrivePermission":"some"}"#.to_owned(),
            r#"{"redrivePermission":"allowAll","sourceQueueArns":[]}"#.to_owned(),
            format!(r#"{{"redrivePermission":"byQueue","sourceQueueArns":{many}}}"#),
        ] {
            assert!(Allow::read(&bad).is_err(), "{bad}");
        }
    }
}
