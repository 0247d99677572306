//! What each row of a sequenced lane takes over from the one before it, so that the last row alone says it all.
//!
//! | attribute | type | meaning |
//! |---|---|---|
//! | `f` | number | the greatest fence token so far; missing while there is none |
//! | `b` | number | stored cargo bytes of the lane, from its beginning up to and with this row |
//! | `at` | number | the row's time, which never goes back (rows with delayed messages keep their writer's time) |

use millpond_store::{Attributes, Result, StoreError, Timestamp, Value};

/// What the last row of a sequenced lane says of everything before it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carry {
    /// The greatest fence token that an append came with; 0 while none did.
    pub fence: u64,
    /// Bytes of stored cargo since the lane's beginning.
    pub bytes: u64,
    /// The time of the last row.
    pub at: Timestamp,
}

impl Carry {
    pub(crate) fn add_to(self, attributes: &mut Attributes) {
        let number = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        if self.fence > 0 {
            attributes.set("f", number(self.fence));
        }
        attributes.set("b", number(self.bytes));
        attributes.set("at", number(self.at.as_millis()));
    }

    pub(crate) fn read(attributes: &Attributes) -> Result<Self> {
        let number = |name: &'static str| match attributes.get(name) {
            None => Ok(0),
            Some(Value::Number(n)) => u64::try_from(*n)
                .map_err(|_| StoreError::corrupt("row", format!("its {name} is negative"))),
            Some(_) => Err(StoreError::corrupt("row", format!("its {name} is not a number"))),
        };
        let at = Timestamp::from_millis(number("at")?);
        Ok(Self { fence: number("f")?, bytes: number("b")?, at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::{prop_assert_eq, proptest};

    proptest! {
        #[test]
        fn round_trips(fence in 0..i64::MAX as u64, bytes in 0..i64::MAX as u64, at in 0..1_u64 << 48) {
            let carry = Carry { fence, bytes, at: Timestamp::from_millis(at) };
            let mut attributes = Attributes::new();
            carry.add_to(&mut attributes);
            prop_assert_eq!(Carry::read(&attributes).unwrap(), carry);
        }
    }

    #[test]
    fn nonsense_is_refused() {
        assert!(Carry::read(&Attributes::new().with("f", -1)).is_err());
        assert!(Carry::read(&Attributes::new().with("b", "x")).is_err());
    }
}
