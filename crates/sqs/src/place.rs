//! Where a queue is: its region, account and name, and how these are written.
//!
//! Regions and accounts are name spaces. This is the one place that says which queue of the store a queue of SQS is:
//! `orders` of account 000000000000 in us-east-1 is the queue `orders`; any other is `REGION.ACCOUNT.NAME`. Names of SQS
//! have no dot but that of `.fifo`, so that no two of them meet.

use std::fmt;

use percent_encoding::percent_decode_str;

use crate::error::{Code, Failure, Result};
use crate::limits::QUEUE_NAME_CHARS_MAX;
use crate::options::{AccountId, Region};

/// The name that a queue of SQS has in the store, for those who look at it there.
#[must_use]
pub fn queue_name(region: &Region, account: &AccountId, name: &str) -> String {
    let (region, account, name) = (region.clone(), account.clone(), name.to_owned());
    Place { region, account, name }.stored_name()
}

/// Where a queue is.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    pub region: Region,
    pub account: AccountId,
    pub name: String,
}

impl Place {
    /// The name of the queue in the store.
    pub fn stored_name(&self) -> String {
        if self.region == Region::default() && self.account == AccountId::default() {
            return self.name.clone();
        }
        format!("{}.{}.{}", self.region, self.account, self.name)
    }

    /// The place of a queue by its name in the store, if it can be one of SQS.
    pub fn of_stored(stored: &str) -> Option<Self> {
        let plain = |name: &str| {
            let name = name.to_owned();
            Self { region: Region::default(), account: AccountId::default(), name }
        };
        if check_name(stored).is_ok() {
            return Some(plain(stored));
        }
        let mut parts = stored.splitn(3, '.');
        let region = Region::new(parts.next()?).ok()?;
        let account = AccountId::new(parts.next()?).ok()?;
        let name = parts.next().filter(|name| check_name(name).is_ok())?.to_owned();
        Some(Self { region, account, name })
    }

    pub fn arn(&self) -> String {
        format!("arn:aws:sqs:{}:{}:{}", self.region, self.account, self.name)
    }

    /// The place that an ARN names.
    pub fn of_arn(arn: &str) -> Option<Self> {
        let mut parts = arn.splitn(6, ':');
        let is = |part: Option<&str>, all: &[&str]| part.is_some_and(|part| all.contains(&part));
        if !is(parts.next(), &["arn"])
            || !is(parts.next(), &["aws", "aws-cn", "aws-us-gov"])
            || !is(parts.next(), &["sqs"])
        {
            return None;
        }
        let region = Region::new(parts.next()?).ok()?;
        let account = AccountId::new(parts.next()?).ok()?;
        let name = parts.next().filter(|name| check_name(name).is_ok())?.to_owned();
        Some(Self { region, account, name })
    }

    pub fn is_fifo(&self) -> bool {
        self.name.ends_with(FIFO)
    }

    pub fn url(&self, base: &str) -> String {
        format!("{base}/{}/{}", self.account, self.name)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.arn())
    }
}

/// The end of a FIFO queue's name.
pub const FIFO: &str = ".fifo";

/// Checks the name of a queue.
pub fn check_name(name: &str) -> Result<()> {
    let base = name.strip_suffix(FIFO).unwrap_or(name);
    let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    if !base.is_empty() && name.len() <= QUEUE_NAME_CHARS_MAX && base.bytes().all(is_allowed) {
        return Ok(());
    }
    Err(Failure::parameter(
        "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length",
    ))
}

/// What a queue's URL, or the path of a request, names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The account, unless it is left out.
    pub account: Option<AccountId>,
    pub name: String,
    /// The client, where a queue is divided among clients.
    pub client: String,
}

impl Address {
    /// The address in a queue's URL, whose host does not matter.
    pub fn of_url(url: &str) -> Result<Self> {
        let path = match url.split_once("://") {
            Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
            None => url.strip_prefix('/').unwrap_or(url),
        };
        Self::of_path(path).ok_or_else(|| {
            let text = format!("The address {url} is not valid for this endpoint.");
            Failure::new(Code::InvalidAddress, text)
        })
    }

    /// The address in a path: `ACCOUNT/NAME`, `queue/NAME`, either with a client behind it.
    pub fn of_path(path: &str) -> Option<Self> {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let path = path.strip_prefix('/').unwrap_or(path);
        let mut parts = path.split('/');
        let account = match parts.next()? {
            "queue" => None,
            account => Some(AccountId::new(account).ok()?),
        };
        let name = parts.next().filter(|name| !name.is_empty())?.to_owned();
        let client = parts.next().unwrap_or_default();
        let client = percent_decode_str(client).decode_utf8().ok()?.into_owned();
        parts.next().is_none().then_some(Self { account, name, client })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(region: &str, account: &str, name: &str) -> Place {
        Place {
            region: Region::new(region).unwrap(),
            account: AccountId::new(account).unwrap(),
            name: name.to_owned(),
        }
    }

    #[test]
    fn places_are_written_and_read_again() {
        let home = place("us-east-1", "000000000000", "orders");
        assert_eq!(home.stored_name(), "orders");
        let name = queue_name(&Region::new("eu-west-1").unwrap(), &AccountId::default(), "a");
        assert_eq!(name, "eu-west-1.000000000000.a");
        let longest = "x".repeat(75) + FIFO;
        let far = place(&"r".repeat(32), "123456789012", &longest);
        assert!(millpond_queue::QueueName::new(&far.stored_name()).is_ok());
        for place in [home, far, place("eu-west-1", "000000000000", "a.fifo")] {
            assert_eq!(Place::of_stored(&place.stored_name()), Some(place.clone()));
            assert_eq!(Place::of_arn(&place.arn()), Some(place));
        }
        for bad in ["", "arn:aws:sns:us-east-1:000000000000:q", "arn:aws:sqs:us-east-1:1:q"] {
            assert_eq!(Place::of_arn(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_of_one_region_and_account_never_meet_those_of_another() {
        // The only dots in a name are those of its ending.
        assert!(check_name("us-east-1.000000000000.q").is_err());
        assert!(check_name("a.b.fifo").is_err());
        assert!(check_name(".fifo").is_err());
        assert!(check_name(&"x".repeat(81)).is_err());
    }

    #[test]
    fn urls_name_a_queue_whatever_their_host() {
        let read = |url: &str| Address::of_url(url).map(|at| (at.account, at.name, at.client));
        let account = AccountId::new("123456789012").ok();
        let is = |name: &str, client: &str| (name.to_owned(), client.to_owned());
        for (url, expected) in [
            ("http://localhost:9324/123456789012/q", (account.clone(), is("q", ""))),
            (
                "https://sqs.eu-west-1.amazonaws.com/123456789012/q.fifo",
                (account.clone(), is("q.fifo", "")),
            ),
            ("http://x/queue/q", (None, is("q", ""))),
            ("/123456789012/q", (account.clone(), is("q", ""))),
            ("http://x/123456789012/q/shop%2F7", (account, is("q", "shop/7"))),
        ] {
            let (account, (name, client)) = expected;
            assert_eq!(read(url).unwrap(), (account, name, client), "{url}");
        }
        for bad in [
            "",
            "http://x/",
            "http://x/q",
            "http://x/12/q",
            "http://x/queue/",
            "http://x/queue/a/b/c",
        ] {
            assert_eq!(read(bad).unwrap_err().code, Code::InvalidAddress, "{bad}");
        }
    }
}
