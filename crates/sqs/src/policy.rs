//! Policies that permissions are added to and removed from. What is in them already stays as it is, byte for byte.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::error::{Code, Failure, Result};
use crate::limits::STATEMENTS_MAX;
use crate::place::Place;

/// A policy, as far as it is looked at.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Policy {
    version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    statement: Option<Box<RawValue>>,
}

impl Policy {
    fn read(place: &Place, text: Option<&str>) -> Result<Self> {
        let Some(text) = text else {
            return Ok(Self {
                version: "2008-10-17".to_owned(),
                id: Some(format!("{}/SQSDefaultPolicy", place.arn())),
                statement: None,
            });
        };
        serde_json::from_str(text).map_err(|_| Failure::attribute_value("Policy"))
    }

    /// Its statements. A policy with one may have it without a list.
    fn statements(&self) -> Result<Vec<Box<RawValue>>> {
        let Some(raw) = &self.statement else { return Ok(Vec::new()) };
        if raw.get().starts_with('[') {
            return serde_json::from_str(raw.get()).map_err(|_| Failure::attribute_value("Policy"));
        }
        Ok(vec![raw.clone()])
    }

    fn text(self, statements: &[Box<RawValue>]) -> Result<String> {
        let broken = |_| Failure::attribute_value("Policy");
        let statement = Some(serde_json::value::to_raw_value(statements).map_err(broken)?);
        serde_json::to_string(&Self { statement, ..self }).map_err(broken)
    }
}

/// The label of a statement.
fn label_of(statement: &RawValue) -> Option<String> {
    let statement: Value = serde_json::from_str(statement.get()).ok()?;
    Some(statement.get("Sid")?.as_str()?.to_owned())
}

/// The policy with a statement that lets accounts use actions.
pub fn add(
    place: &Place,
    text: Option<&str>,
    label: &str,
    accounts: &[String],
    actions: &[String],
) -> Result<String> {
    let policy = Policy::read(place, text)?;
    let mut statements = policy.statements()?;
    if statements.iter().any(|statement| label_of(statement).as_deref() == Some(label)) {
        return Err(Failure::value("Label", label, "Already exists."));
    }
    if statements.len() >= STATEMENTS_MAX {
        let text = format!(
            "{} statements were found, maximum allowed is {STATEMENTS_MAX}.",
            statements.len() + 1
        );
        return Err(Failure::new(Code::OverLimit, text));
    }
    let accounts: Vec<String> =
        accounts.iter().map(|account| format!("arn:aws:iam::{account}:root")).collect();
    let actions: Vec<String> = actions.iter().map(|action| format!("SQS:{action}")).collect();
    let statement = Statement {
        sid: label,
        effect: "Allow",
        principal: json!({"AWS": one_or_many(accounts)}),
        action: one_or_many(actions),
        resource: place.arn(),
    };
    let statement = serde_json::value::to_raw_value(&statement);
    statements.push(statement.map_err(|_| Failure::attribute_value("Policy"))?);
    policy.text(&statements)
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Statement<'a> {
    sid: &'a str,
    effect: &'a str,
    principal: Value,
    action: Value,
    resource: String,
}

/// One is written as such, and not as a list of one.
fn one_or_many(mut all: Vec<String>) -> Value {
    if all.len() == 1 { all.remove(0).into() } else { all.into() }
}

/// The policy without a statement; nothing when that was its last.
pub fn remove(place: &Place, text: Option<&str>, label: &str) -> Result<Option<String>> {
    let policy = Policy::read(place, text)?;
    let mut statements = policy.statements()?;
    let before = statements.len();
    statements.retain(|statement| label_of(statement).as_deref() != Some(label));
    if statements.len() == before {
        return Err(Failure::value("Label", label, "can't find label."));
    }
    if statements.is_empty() {
        return Ok(None);
    }
    policy.text(&statements).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(all: &[&str]) -> Vec<String> {
        all.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn permissions_become_statements() {
        let place = Place::of_stored("q").unwrap();
        let one =
            add(&place, None, "a", &names(&["111111111111"]), &names(&["ReceiveMessage"])).unwrap();
        assert_eq!(
            one,
            r#"{"Version":"2008-10-17","Id":"arn:aws:sqs:us-east-1:000000000000:q/SQSDefaultPolicy","Statement":[{"Sid":"a","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},"Action":"SQS:ReceiveMessage","Resource":"arn:aws:sqs:us-east-1:000000000000:q"}]}"#
        );
        let again = add(&place, Some(&one), "a", &[], &[]).unwrap_err();
        assert_eq!(again.text, "Value a for parameter Label is invalid. Reason: Already exists.");
        let accounts = names(&["111111111111", "222222222222"]);
        let two = add(&place, Some(&one), "b", &accounts, &names(&["SendMessage", "*"])).unwrap();
        assert!(two.contains(r#""Action":["SQS:SendMessage","SQS:*"]"#), "{two}");
        assert_eq!(remove(&place, Some(&two), "b").unwrap().as_deref(), Some(one.as_str()));
        assert_eq!(remove(&place, Some(&one), "a").unwrap(), None);
        let unknown = remove(&place, Some(&one), "x").unwrap_err();
        assert_eq!(
            unknown.text,
            "Value x for parameter Label is invalid. Reason: can't find label."
        );
    }

    #[test]
    fn what_others_wrote_stays_byte_for_byte() {
        let place = Place::of_stored("q").unwrap();
        let theirs = r#"{ "Sid" : "own",  "Effect":"Deny", "Zeta": [1 , 2], "Alpha": {} }"#;
        let policy = format!(r#"{{"Version":"2012-10-17","Statement":{theirs}}}"#);
        let more = add(&place, Some(&policy), "a", &names(&["1"]), &names(&["*"])).unwrap();
        assert!(more.contains(theirs), "{more}");
    }
}
