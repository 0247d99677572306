//! Access keys, and what each of them may do.

use std::fmt;

use serde::Deserialize;

use crate::options::AccountId;

/// The keys that requests may be signed with. In TOML:
///
/// ```toml
/// [[keys]]
/// id = "orders-service"
/// secret = "something long and random"
/// actions = ["SendMessage", "Get*"]
/// queues = ["orders-*"]
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessKeys {
    /// The keys. No two have the same id.
    #[serde(default)]
    pub keys: Vec<AccessKey>,
}

/// One key.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessKey {
    /// Its id, which requests name.
    pub id: String,
    /// Its secret, which requests are signed with. Never logged.
    pub secret: String,
    /// The account that it belongs to: it reaches no other's queues. Default: its id when that has twelve digits,
    /// else the server's.
    #[serde(default)]
    pub account: Option<AccountId>,
    /// The actions that it may use, as patterns in which `*` stands for any characters. Who may use an action may use
    /// its batch form. Default: all.
    #[serde(default = "any")]
    pub actions: Vec<String>,
    /// The queues that it may use, as patterns of their names. Default: all.
    #[serde(default = "any")]
    pub queues: Vec<String>,
}

fn any() -> Vec<String> {
    vec!["*".to_owned()]
}

impl fmt::Debug for AccessKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AccessKey")
            .field("id", &self.id)
            .field("account", &self.account)
            .field("actions", &self.actions)
            .field("queues", &self.queues)
            .finish_non_exhaustive()
    }
}

impl AccessKey {
    /// A key that may do everything.
    #[must_use]
    pub fn new(id: impl Into<String>, secret: impl Into<String>) -> Self {
        Self { id: id.into(), secret: secret.into(), account: None, actions: any(), queues: any() }
    }

    /// Whether it may use an action.
    #[must_use]
    pub fn may(&self, action: &str) -> bool {
        let base = action.strip_suffix("Batch").unwrap_or(action);
        self.actions.iter().any(|pattern| matches(pattern, action) || matches(pattern, base))
    }

    /// Whether it may use a queue.
    #[must_use]
    pub fn may_use(&self, queue: &str) -> bool {
        self.queues.iter().any(|pattern| matches(pattern, queue))
    }
}

impl AccessKeys {
    /// The key of this id.
    #[must_use]
    pub fn find(&self, id: &str) -> Option<&AccessKey> {
        self.keys.iter().find(|key| key.id == id)
    }
}

/// Whether a text is of a pattern in which `*` stands for any characters, also none.
fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    let mut rest = rest;
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, text) in
            [("*", ""), ("*", "a"), ("a*", "a"), ("a*c", "abc"), ("a*b*c", "aXbYbc"), ("a", "a")]
        {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in
            [("a", "ab"), ("a*", "ba"), ("a*c", "ac "), ("ab*ba", "aba"), ("", "a"), ("*a*", "b")]
        {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn keys_are_read_from_toml_and_hide_their_secrets() {
        let text = "[[keys]]\nid = \"a\"\nsecret = \"hush\"\nactions = [\"SendMessage\"]\n";
        let keys: AccessKeys = toml::from_str(text).unwrap();
        let key = keys.find("a").unwrap();
        assert!(key.may("SendMessage") && key.may("SendMessageBatch"));
        assert!(!key.may("ReceiveMessage") && key.may_use("anything"));
        assert!(!format!("{keys:?}").contains("hush"));
        assert!(toml::from_str::<AccessKeys>("[[keys]]\nid = \"a\"\n").is_err());
        assert!(toml::from_str::<AccessKeys>(&format!("{text}colour = 1\n")).is_err());
    }
}
