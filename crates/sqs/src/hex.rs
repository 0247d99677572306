//! Bytes as text in lower-case hexadecimal.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// Bytes as text.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(DIGITS.get(usize::from(half & 0xf)).copied().unwrap_or(b'0'));
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        text.push(digit(byte >> 4));
        text.push(digit(*byte));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_byte_has_two_digits() {
        assert_eq!(hex(&[0, 0x0f, 0xa0, 0xff]), "000fa0ff");
    }
}
