//! A length of time as people write it: `500ms`, `30s`, `2m`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

/// The longest that makes sense for a timeout: a day.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A length of time with its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span(pub Duration);

impl FromStr for Span {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
        let unit = text.get(digits.len()..).unwrap_or_default();
        let millis_each = match unit {
            "ms" => 1,
            "s" => 1_000,
            "m" => 60_000,
            _ => return Err(format!("{text:?} is no length of time; write 500ms, 30s or 2m")),
        };
        let count: u64 = digits
            .parse()
            .map_err(|_| format!("{text:?} is no length of time; write 500ms, 30s or 2m"))?;
        let length = Duration::from_millis(count.saturating_mul(millis_each));
        if length.is_zero() || length > LONGEST {
            return Err(format!("{text:?} is not between 1ms and 1440m"));
        }
        Ok(Self(length))
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = self.0.as_millis();
        if millis.is_multiple_of(60_000) {
            write!(f, "{}m", millis / 60_000)
        } else if millis.is_multiple_of(1_000) {
            write!(f, "{}s", millis / 1_000)
        } else {
            write!(f, "{millis}ms")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_read_and_written_alike() {
        for text in ["1ms", "500ms", "30s", "90s", "2m", "1440m"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        for text in ["", "5", "s", "0s", "-1s", "1h", "1.5s", "1441m", "99999999999999999999s"] {
            let error = text.parse::<Span>().unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
