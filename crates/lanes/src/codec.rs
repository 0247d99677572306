//! Bytes in and out, with no trust in what comes in: for products that keep small records of their own.

/// Appends a number, seven bits a byte, least first; the last byte has its high bit clear.
pub fn put_varint(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push(low_bits(number) | 0x80);
        number >>= 7;
    }
    out.push(low_bits(number));
}

const fn low_bits(number: u64) -> u8 {
    (number & 0x7f) as u8
}

/// Reads from the front of a slice; every step says when there is not enough.
#[derive(Debug, Clone, Copy)]
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// Reads from these bytes.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all was read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// The next bytes, as many as asked for.
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number in its shortest form only, so that equal values have equal bytes.
    pub fn varint(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for place in 0..10_u32 {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            number |= bits.checked_shl(7 * place).filter(|n| n >> (7 * place) == bits)?;
            if byte & 0x80 == 0 {
                return (place == 0 || bits != 0).then_some(number);
            }
        }
        None
    }

    /// What [`put_bytes`] wrote.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.length()?;
        self.slice(len)
    }

    /// So many bytes, as they are.
    pub fn slice(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(first)
    }

    /// A number that fits memory.
    pub fn length(&mut self) -> Option<usize> {
        usize::try_from(self.varint()?).ok()
    }
}

/// Appends bytes behind their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{any, prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn numbers_round_trip(number in any::<u64>(), shift in 0..64_u32) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            put_varint(&mut bytes, number);
            let mut reader = Reader::new(&bytes);
            prop_assert_eq!(reader.varint(), Some(number));
            prop_assert_eq!(reader.is_empty(), true);
        }

        #[test]
        fn hostile_numbers_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..16)) {
            let mut reader = Reader::new(&bytes);
            if let Some(number) = reader.varint() {
                let mut again = Vec::new();
                put_varint(&mut again, number);
                prop_assert_eq!(&bytes[..again.len()], &again[..]);
            }
        }
    }

    #[test]
    fn overlong_numbers_are_refused() {
        assert_eq!(Reader::new(&[0x80, 0x00]).varint(), None);
        assert_eq!(Reader::new(&[0xff; 11]).varint(), None);
        assert_eq!(Reader::new(&[0x80]).varint(), None);
    }
}
