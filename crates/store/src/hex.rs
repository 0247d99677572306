//! Bytes as text in lower-case hexadecimal.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes as text.
#[must_use]
pub fn of(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    push(&mut text, bytes);
    text
}

/// Adds bytes to a text.
pub fn push(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(byte & 0xf));
    }
}

fn digit(half: u8) -> char {
    char::from(DIGITS.get(usize::from(half)).copied().unwrap_or(b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(of(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
