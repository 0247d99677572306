//! Each role's policy names exactly the actions that the code asks for when it does the role's work.

use std::collections::BTreeSet;

use crate::support::{Setup, key};
use millpond_dynamodb::{Role, TableOptions, policy};
use millpond_store::{Expect, Query, Store as _, Write};
use serde_json::Value;

/// Everything that only reads and puts.
async fn produce(setup: &Setup) {
    let store = &setup.store;
    store.get(&key("a")).await.unwrap();
    store.query(Query::new(key("a").partition)).await.unwrap();
    store.write(setup.put(&key("a"), 1, Expect::Any)).await.unwrap();
    for expect in [Expect::Absent, Expect::Any] {
        let puts = |names: [&str; 3]| names.map(|sort| setup.put(&key(sort), 1, expect)).to_vec();
        let round = if expect == Expect::Any { "x" } else { "y" };
        let name = |n: &str| format!("{round}{n}");
        store.write_all(puts([&name("a"), &name("b"), &name("c")])).await.unwrap();
        store.write_each(puts([&name("d"), &name("e"), &name("f")])).await.unwrap();
    }
    let _ = store.write(setup.put(&key("a"), 1, Expect::Absent)).await;
}

/// Everything that removes.
async fn consume(setup: &Setup) {
    let deletes = |expect| ["a", "xa", "xb"].map(|sort| Write::delete(key(sort), expect)).to_vec();
    setup.store.write(Write::delete(key("a"), Expect::Any)).await.unwrap();
    setup.store.write_all(deletes(Expect::Any)).await.unwrap();
    setup.store.write_each(deletes(Expect::Any)).await.unwrap();
    setup.store.write_each(deletes(Expect::Absent)).await.unwrap();
}

/// The permissions that requests need: a transaction needs those of its parts.
fn needed(requests: Vec<(String, Value)>) -> BTreeSet<String> {
    let mut actions = BTreeSet::new();
    for (action, body) in requests {
        if action != "TransactWriteItems" {
            actions.insert(action);
            continue;
        }
        for item in body["TransactItems"].as_array().unwrap() {
            let parts = item.as_object().unwrap().keys();
            actions.extend(parts.map(|part| format!("{part}Item")));
        }
    }
    actions
}

fn granted(role: Role) -> BTreeSet<String> {
    let arn = "arn:aws:dynamodb:eu-central-1:111122223333:table/things";
    let policy: Value = serde_json::from_str(&policy(role, arn, None)).unwrap();
    let actions = policy["Statement"][0]["Action"].as_array().unwrap();
    actions.iter().map(|action| action.as_str().unwrap().replace("dynamodb:", "")).collect()
}

#[tokio::test]
async fn a_policy_names_exactly_what_its_role_uses() {
    for role in [Role::Producer, Role::Consumer, Role::Admin] {
        let setup = match role {
            Role::Admin => Setup::without_table(|config| config).await,
            _ => Setup::new().await,
        };
        let admin = setup.store.admin();
        if role == Role::Admin {
            admin.create_table(TableOptions::default()).await.unwrap();
        }
        let mut used = needed(setup.proxy.requests());
        admin.verify(role, TableOptions::default()).await.unwrap().require().unwrap();
        // Verifying tries every action of the policy, so only what it does besides counts as use.
        let verifying = needed(setup.proxy.requests());
        assert!(verifying.is_subset(&granted(role)), "{role:?} cannot verify: {verifying:?}");
        used.extend(verifying.into_iter().filter(|action| action.starts_with("Describe")));
        produce(&setup).await;
        if role != Role::Producer {
            consume(&setup).await;
        }
        if role == Role::Admin {
            admin.delete_table("things").await.unwrap();
        }
        used.extend(needed(setup.proxy.requests()));
        assert_eq!(used, granted(role), "{role:?}");
    }
}
