//! What each role may do: the least that its work needs, as an IAM policy.

use serde_json::{Value, json};

/// Who works with the table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Appends: reads and puts, removes nothing. (Puts go in batches too, and IAM does not tell apart what a
    /// batch holds: a producer that is not to be trusted could remove by batch.)
    Producer,
    /// Takes, acknowledges and removes: reads, puts and deletes.
    Consumer,
    /// Does all of that, and makes, sets up and deletes the table.
    Admin,
}

/// What every role does to verify its table.
const LOOK: [&str; 2] = ["DescribeTable", "DescribeTimeToLive"];

/// What an administrator does to the table itself.
const MANAGE: [&str; 3] = ["CreateTable", "DeleteTable", "UpdateTimeToLive"];

impl Role {
    /// The actions on items that the role uses. A transaction needs no action of its own: it is allowed where its
    /// puts and deletes are.
    #[must_use]
    pub const fn data_actions(self) -> &'static [&'static str] {
        match self {
            Self::Producer => &["BatchWriteItem", "GetItem", "PutItem", "Query"],
            Self::Consumer | Self::Admin => {
                &["BatchWriteItem", "DeleteItem", "GetItem", "PutItem", "Query"]
            }
        }
    }

    /// All of DynamoDB's actions that the role uses, sorted.
    #[must_use]
    pub fn actions(self) -> Vec<&'static str> {
        let manage = if self == Self::Admin { MANAGE.as_slice() } else { &[] };
        let mut actions: Vec<_> = [self.data_actions(), LOOK.as_slice(), manage].concat();
        actions.sort_unstable();
        actions
    }

    /// The actions on objects that the role uses, when large payload is kept in a bucket. A producer that fails
    /// between object and row leaves an orphan, which the sweep (an administrator's work) finds.
    #[must_use]
    pub const fn object_actions(self) -> &'static [&'static str] {
        match self {
            Self::Producer => &["GetObject", "PutObject"],
            Self::Consumer | Self::Admin => &["DeleteObject", "GetObject", "PutObject"],
        }
    }
}

/// The IAM policy for `role`, as JSON: on this table, and on the objects of this bucket if one is given.
///
/// A bucket may have a prefix (`bucket/some/prefix`); then the policy covers only what lies under it.
#[must_use]
pub fn policy(role: Role, table_arn: &str, bucket: Option<&str>) -> String {
    let table: Vec<String> =
        role.actions().iter().map(|action| format!("dynamodb:{action}")).collect();
    let mut statements = vec![json!({
        "Sid": "MillpondTable",
        "Effect": "Allow",
        "Action": table,
        "Resource": table_arn,
    })];
    if let Some(bucket) = bucket {
        statements.extend(object_statements(role, bucket));
    }
    let policy = json!({ "Version": "2012-10-17", "Statement": statements });
    format!("{policy:#}")
}

fn object_statements(role: Role, bucket: &str) -> Vec<Value> {
    let (name, prefix) = bucket.split_once('/').unwrap_or((bucket, ""));
    let prefix = prefix.trim_end_matches('/');
    let under = if prefix.is_empty() { "*".to_owned() } else { format!("{prefix}/*") };
    let actions: Vec<String> =
        role.object_actions().iter().map(|action| format!("s3:{action}")).collect();
    let mut statements = vec![json!({
        "Sid": "MillpondCargo",
        "Effect": "Allow",
        "Action": actions,
        "Resource": format!("arn:aws:s3:::{name}/{under}"),
    })];
    if role == Role::Admin {
        let mut list = json!({
            "Sid": "MillpondCargoSweep",
            "Effect": "Allow",
            "Action": ["s3:ListBucket"],
            "Resource": format!("arn:aws:s3:::{name}"),
        });
        if let (false, Some(statement)) = (prefix.is_empty(), list.as_object_mut()) {
            statement.insert("Condition".into(), json!({ "StringLike": { "s3:prefix": [under] } }));
        }
        statements.push(list);
    }
    statements
}

#[cfg(test)]
mod tests {
    use super::*;

    const ARN: &str = "arn:aws:dynamodb:eu-central-1:111122223333:table/things";

    fn parsed(role: Role, bucket: Option<&str>) -> Value {
        serde_json::from_str(&policy(role, ARN, bucket)).unwrap()
    }

    #[test]
    fn a_policy_names_its_table_and_no_wildcard() {
        for role in [Role::Producer, Role::Consumer, Role::Admin] {
            let policy = parsed(role, None);
            assert_eq!(policy["Statement"].as_array().unwrap().len(), 1);
            assert_eq!(policy["Statement"][0]["Resource"], ARN);
            assert!(!policy.to_string().contains('*'), "{policy}");
        }
    }

    #[test]
    fn a_producer_cannot_delete_and_only_an_admin_manages() {
        assert!(!Role::Producer.actions().contains(&"DeleteItem"));
        assert!(!Role::Consumer.actions().contains(&"DeleteTable"));
        assert!(Role::Admin.actions().contains(&"DeleteTable"));
        assert!(Role::Admin.actions().is_sorted());
    }

    #[test]
    fn objects_are_confined_to_their_prefix() {
        let policy = parsed(Role::Admin, Some("bucket/deep/prefix/"));
        let statements = policy["Statement"].as_array().unwrap();
        assert_eq!(statements[1]["Resource"], "arn:aws:s3:::bucket/deep/prefix/*");
        assert_eq!(statements[2]["Condition"]["StringLike"]["s3:prefix"][0], "deep/prefix/*");
        let whole = parsed(Role::Producer, Some("bucket"));
        assert_eq!(whole["Statement"][1]["Resource"], "arn:aws:s3:::bucket/*");
        assert_eq!(whole["Statement"].as_array().unwrap().len(), 2);
    }
}
