//! What a worker reports as acknowledged, a line each.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};

/// One acknowledged write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acknowledged {
    /// Lane `lane` put its item number `number`.
    Put { lane: u32, number: u64 },
    /// Lane `lane` removed its item number `number`.
    Deleted { lane: u32, number: u64 },
    /// The counter was raised by compare-and-swap to `value`.
    Counted { value: u64 },
    /// The group of lane `lane` was written whole with `number` in each item.
    Grouped { lane: u32, number: u64 },
}

impl fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { lane, number } => write!(f, "put {lane} {number}"),
            Self::Deleted { lane, number } => write!(f, "deleted {lane} {number}"),
            Self::Counted { value } => write!(f, "counted 0 {value}"),
            Self::Grouped { lane, number } => write!(f, "grouped {lane} {number}"),
        }
    }
}

impl FromStr for Acknowledged {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next().with_context(|| format!("too short: {line:?}"));
        let what = word()?;
        let (lane, number) = (word()?.parse()?, word()?.parse()?);
        Ok(match what {
            "put" => Self::Put { lane, number },
            "deleted" => Self::Deleted { lane, number },
            "counted" => Self::Counted { value: number },
            "grouped" => Self::Grouped { lane, number },
            _ => bail!("no such report: {line:?}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_round_trip() {
        for report in [
            Acknowledged::Put { lane: 3, number: 9 },
            Acknowledged::Deleted { lane: 0, number: u64::MAX },
            Acknowledged::Counted { value: 4 },
            Acknowledged::Grouped { lane: 1, number: 0 },
        ] {
            assert_eq!(report.to_string().parse::<Acknowledged>().unwrap(), report);
        }
        for broken in ["", "put", "put 1", "put x 1", "lost 1 2"] {
            assert!(broken.parse::<Acknowledged>().is_err(), "{broken:?}");
        }
    }
}
