//! Where to listen: an address, or a name that stands for some.

use std::fmt;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::str::FromStr;

/// More addresses than a name of one machine has.
const ADDRESSES_MAX: usize = 16;

/// An address, or a name with a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen(Host, u16);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Host {
    Address(SocketAddr),
    Name(String),
}

impl Listen {
    /// All addresses that it stands for, at least one.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>, String> {
        let (name, port) = match self {
            Self(Host::Address(address), _) => return Ok(vec![*address]),
            Self(Host::Name(name), port) => (name, *port),
        };
        let found = (name.as_str(), port)
            .to_socket_addrs()
            .map_err(|error| format!("the name {name:?} has no address: {error}"))?;
        let mut addresses: Vec<SocketAddr> = Vec::new();
        for address in found {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() || addresses.len() > ADDRESSES_MAX {
            let count = addresses.len();
            return Err(format!(
                "the name {name:?} has {count} addresses, not 1 to {ADDRESSES_MAX}"
            ));
        }
        Ok(addresses)
    }

    /// What clients on this machine can call a server that listens here, on this port.
    pub fn reached_at(&self, bound: SocketAddr) -> String {
        match &self.0 {
            Host::Address(_) => bound.to_string(),
            Host::Name(name) => format!("{name}:{}", bound.port()),
        }
    }
}

/// An address that others than this machine may reach, if there is one among these.
pub fn exposed(addresses: &[SocketAddr]) -> Option<SocketAddr> {
    addresses.iter().copied().find(|address| !address.ip().is_loopback())
}

impl From<SocketAddr> for Listen {
    fn from(address: SocketAddr) -> Self {
        Self(Host::Address(address), address.port())
    }
}

impl FromStr for Listen {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let wrong = || {
            format!(
                "{text:?} is no address with a port; give one such as 127.0.0.1:9324, [::1]:9324 or localhost:9324"
            )
        };
        let (name, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let is_allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_');
        // An address of IPv6 without its brackets is not a name.
        if name.is_empty() || !name.bytes().all(is_allowed) || name.parse::<IpAddr>().is_ok() {
            return Err(wrong());
        }
        Ok(Self(Host::Name(name.to_owned()), port.parse().map_err(|_| wrong())?))
    }
}

impl fmt::Display for Listen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(Host::Address(address), _) => address.fmt(f),
            Self(Host::Name(name), port) => write!(f, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_names_are_told_from_nonsense() {
        for text in ["127.0.0.1:0", "[::1]:9324", "localhost:9324", "queue-1.test:80"] {
            assert_eq!(text.parse::<Listen>().unwrap().to_string(), text);
        }
        for text in ["", "9324", ":9324", "localhost", "localhost:", "localhost:x", "a:70000"] {
            let error = text.parse::<Listen>().unwrap_err();
            assert!(error.contains("localhost:9324"), "{error}");
        }
        for text in ["::1:9324", "a b:1", "http://a:1", "a/b:1"] {
            assert!(text.parse::<Listen>().is_err(), "{text}");
        }
    }

    #[test]
    fn one_address_among_many_that_others_can_reach_is_enough() {
        let of = |texts: &[&str]| -> Vec<SocketAddr> {
            texts.iter().map(|text| text.parse().unwrap()).collect()
        };
        assert_eq!(exposed(&of(&["127.0.0.1:1", "[::1]:1", "127.9.9.9:1"])), None);
        for open in ["10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[fe80::1]:1"] {
            let addresses = of(&["127.0.0.1:1", open, "[::1]:1"]);
            assert_eq!(exposed(&addresses), open.parse().ok(), "{open}");
        }
    }

    #[test]
    fn a_name_stands_for_all_its_addresses() {
        let addresses = "localhost:80".parse::<Listen>().unwrap().resolve().unwrap();
        assert!(!addresses.is_empty() && exposed(&addresses).is_none(), "{addresses:?}");
        assert!(addresses.iter().all(|address| address.port() == 80));
        let listen: Listen = "localhost:0".parse().unwrap();
        assert_eq!(listen.reached_at("127.0.0.1:77".parse().unwrap()), "localhost:77");
    }
}
