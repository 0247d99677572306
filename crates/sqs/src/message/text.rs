//! Texts that are part of messages: what they may hold, and how numbers and names are written.

use millpond_store::hex;
use sha2::{Digest as _, Sha256};

use crate::error::{Code, Failure, Result};
use crate::limits::ID_CHARS_MAX;

/// Whether a character can be part of a message: what XML can say.
pub const fn is_allowed(c: char) -> bool {
    matches!(c, '\u{9}' | '\u{a}' | '\u{d}' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// Checks the characters of a body or an attribute.
pub fn check_text(text: &str) -> Result<()> {
    if is_plain(text.as_bytes()) {
        return Ok(());
    }
    match text.chars().find(|c| !is_allowed(*c)) {
        None => Ok(()),
        Some(c) => {
            let text = format!(
                "Invalid binary character '#x{:X}' was found in the message body, the set of \
                 allowed characters is #x9 | #xA | #xD | [#x20 to #xD7FF] | [#xE000 to #xFFFD] | \
                 [#x10000 to #x10FFFF]",
                u32::from(c)
            );
            Err(Failure::new(Code::InvalidMessageContents, text))
        }
    }
}

/// Whether it is ASCII without control characters, as most text is. Blocks are looked at whole, which a processor does
/// many bytes at a time.
fn is_plain(bytes: &[u8]) -> bool {
    let is_plain = |byte: &u8| matches!(byte, b'\t' | b'\n' | b'\r' | 0x20..=0x7f);
    bytes.chunks(128).all(|block| block.iter().fold(true, |plain, byte| plain & is_plain(byte)))
}

/// Checks a group, deduplication or attempt id.
pub fn check_id(parameter: &str, id: &str) -> Result<()> {
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || b.is_ascii_punctuation();
    if (1..=ID_CHARS_MAX).contains(&id.len()) && id.bytes().all(is_allowed) {
        return Ok(());
    }
    let shown: String = id.chars().take(ID_CHARS_MAX).collect();
    let reason = format!(
        "{parameter} can only include alphanumeric and punctuation characters. 1 to 128 in length."
    );
    Err(Failure::value(parameter, shown, &reason))
}

/// The id of a message, from the name that it keeps wherever it is moved. It has the form of a random UUID.
pub fn uuid(identity: &str) -> String {
    let digest = Sha256::digest(identity.as_bytes());
    uuid_of(digest.first_chunk::<16>().map_or(0, |first| u128::from_be_bytes(*first)))
}

/// A UUID of these bits, as far as its form leaves them free.
pub fn uuid_of(bits: u128) -> String {
    // Version 4, variant 1.
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let mut text = String::with_capacity(36);
    for (at, byte) in bits.to_be_bytes().into_iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        hex::push(&mut text, &[byte]);
    }
    text
}

/// The number of a message in a FIFO queue, from 1: always as long, so that texts compare as numbers do.
pub fn sequence(number: u64) -> String {
    format!("{:020}", number.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emoji_are_allowed_and_control_characters_are_not() {
        assert!(check_text("a\t\r\n🎈 \u{10ffff} \u{fffd}").is_ok());
        let long = "x".repeat(300);
        assert!(check_text(&long).is_ok() && check_text(&format!("{long}\u{b}")).is_err());
        for bad in ['\0', '\u{1}', '\u{b}', '\u{1f}', '\u{fffe}', '\u{ffff}'] {
            assert_eq!(
                check_text(&bad.to_string()).unwrap_err().code,
                Code::InvalidMessageContents
            );
        }
    }

    #[test]
    fn ids_have_the_form_of_a_random_uuid() {
        let id = uuid("q/orders~1/0");
        assert_eq!(id.len(), 36);
        assert_eq!(id.get(14..15), Some("4"));
        assert!(matches!(id.get(19..20), Some("8" | "9" | "a" | "b")), "{id}");
        assert_eq!(id, uuid("q/orders~1/0"));
        assert_ne!(id, uuid("q/orders~1/1"));
        assert_eq!(uuid_of(u128::MAX), "ffffffff-ffff-4fff-bfff-ffffffffffff");
    }

    #[test]
    fn group_ids_are_letters_digits_and_punctuation() {
        assert!(check_id("MessageGroupId", "a!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~Z9").is_ok());
        for bad in ["", "a b", "ä", "\n", &"x".repeat(129)] {
            assert!(check_id("MessageGroupId", bad).is_err(), "{bad}");
        }
    }
}
