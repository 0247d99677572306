//! The digests that clients check.

use md5::{Digest as _, Md5};
use millpond_queue::{Attribute, AttributeValue};
use millpond_store::hex;

use super::attributes::data_type;

/// The MD5 of some bytes, as text.
pub fn digest(bytes: &[u8]) -> String {
    hex::of(&Md5::digest(bytes))
}

/// The MD5 of attributes, which come in the order of their names; nothing when there are none.
///
/// For each: the name, the type with its label, and the value, each behind its length (4 bytes, big-endian), and before
/// the value a byte that says how it travels: 1 as text, 2 as bytes.
pub fn digest_attributes<'a>(
    attributes: impl IntoIterator<Item = (&'a String, &'a Attribute)>,
) -> Option<String> {
    let mut hasher = Md5::new();
    let mut any = false;
    for (name, attribute) in attributes {
        any = true;
        sized(&mut hasher, name.as_bytes());
        sized(&mut hasher, data_type(attribute).as_bytes());
        hasher.update(match attribute.value {
            AttributeValue::String(_) | AttributeValue::Number(_) => [1],
            AttributeValue::Binary(_) => [2],
        });
        sized(&mut hasher, attribute.value.as_bytes());
    }
    any.then(|| hex::of(&hasher.finalize()))
}

fn sized(hasher: &mut Md5, bytes: &[u8]) {
    // A message is far smaller than what 32 bits can say.
    let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    hasher.update(len.to_be_bytes());
    hasher.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn bodies_have_their_md5() {
        assert_eq!(digest(b""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(digest(b"hello"), "5d41402abc4b2a76b9719d911017c592");
    }

    #[test]
    fn attributes_have_the_md5_that_clients_reckon() {
        // As botocore, the Java and the PHP client reckon it.
        let text = |value: &str| Attribute::from(AttributeValue::String(value.to_owned()));
        let one = BTreeMap::from([(
            "timestamp".to_owned(),
            Attribute {
                value: AttributeValue::Number("1493147359900".to_owned()),
                label: String::new(),
            },
        )]);
        assert_eq!(digest_attributes(&one).as_deref(), Some("235c5c510d26fb653d073faed50ae77c"));
        assert_eq!(digest_attributes(&BTreeMap::new()), None);
        // A label is part of the type.
        let plain = BTreeMap::from([("a".to_owned(), text("x"))]);
        let labelled =
            BTreeMap::from([("a".to_owned(), Attribute { label: "l".into(), ..text("x") })]);
        assert_ne!(digest_attributes(&plain), digest_attributes(&labelled));
    }
}
