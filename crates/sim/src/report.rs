//! What a worker reports as acknowledged, a line each.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, bail};

/// One acknowledged write.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acknowledged {
    /// Stripe `stripe` put its item number `number`.
    Put { stripe: u32, number: u64 },
    /// Stripe `stripe` removed its item number `number`.
    Deleted { stripe: u32, number: u64 },
    /// The counter was raised by compare-and-swap to `value`.
    Counted { value: u64 },
    /// The group of stripe `stripe` was written whole with `number` in each item.
    Grouped { stripe: u32, number: u64 },
    /// Sender `sender` appended a message to the sequenced lane, which got `number`.
    Appended { sender: u32, number: u64 },
    /// The messages of the sequenced lane below `number` were finished.
    Finished { number: u64 },
    /// A sender sent its message `serial` to a queue.
    Sent { stripe: u32, serial: u64 },
    /// A receiver acknowledged a sender's message `serial`.
    Acked { stripe: u32, serial: u64 },
    /// A number was put into the sequencer.
    Sequenced { putter: u32, number: u64 },
    /// The sequencer's cursor passed the numbers from `first` up to and without `next`.
    Passed { first: u32, next: u64 },
    /// A sender's record was appended to the log.
    Logged { sender: u32, offset: u64 },
}

impl fmt::Display for Acknowledged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Put { stripe, number } => write!(f, "put {stripe} {number}"),
            Self::Deleted { stripe, number } => write!(f, "deleted {stripe} {number}"),
            Self::Counted { value } => write!(f, "counted 0 {value}"),
            Self::Grouped { stripe, number } => write!(f, "grouped {stripe} {number}"),
            Self::Appended { sender, number } => write!(f, "appended {sender} {number}"),
            Self::Finished { number } => write!(f, "finished 0 {number}"),
            Self::Sent { stripe, serial } => write!(f, "sent {stripe} {serial}"),
            Self::Acked { stripe, serial } => write!(f, "acked {stripe} {serial}"),
            Self::Sequenced { putter, number } => write!(f, "sequenced {putter} {number}"),
            Self::Passed { first, next } => write!(f, "passed {first} {next}"),
            Self::Logged { sender, offset } => write!(f, "logged {sender} {offset}"),
        }
    }
}

impl FromStr for Acknowledged {
    type Err = anyhow::Error;

    fn from_str(line: &str) -> anyhow::Result<Self> {
        let mut words = line.split(' ');
        let mut word = || words.next().with_context(|| format!("too short: {line:?}"));
        let what = word()?;
        let (stripe, number) = (word()?.parse()?, word()?.parse()?);
        Ok(match what {
            "put" => Self::Put { stripe, number },
            "deleted" => Self::Deleted { stripe, number },
            "counted" => Self::Counted { value: number },
            "grouped" => Self::Grouped { stripe, number },
            "appended" => Self::Appended { sender: stripe, number },
            "finished" => Self::Finished { number },
            "sent" => Self::Sent { stripe, serial: number },
            "acked" => Self::Acked { stripe, serial: number },
            "sequenced" => Self::Sequenced { putter: stripe, number },
            "passed" => Self::Passed { first: stripe, next: number },
            "logged" => Self::Logged { sender: stripe, offset: number },
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
            Acknowledged::Put { stripe: 3, number: 9 },
            Acknowledged::Deleted { stripe: 0, number: u64::MAX },
            Acknowledged::Counted { value: 4 },
            Acknowledged::Grouped { stripe: 1, number: 0 },
            Acknowledged::Appended { sender: 7, number: 11 },
            Acknowledged::Finished { number: 12 },
            Acknowledged::Sent { stripe: 2, serial: 13 },
            Acknowledged::Acked { stripe: 2, serial: 14 },
        ] {
            assert_eq!(report.to_string().parse::<Acknowledged>().unwrap(), report);
        }
        for broken in ["", "put", "put 1", "put x 1", "lost 1 2"] {
            assert!(broken.parse::<Acknowledged>().is_err(), "{broken:?}");
        }
    }
}
