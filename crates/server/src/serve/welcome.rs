//! What a person sees at the start: where the server is, where the data is, and what to try.

use std::net::SocketAddr;

use millpond_embedded::Durability;

use crate::config::{Config, exposed};
use crate::place::StorePlace;

/// Lines for standard output. The first word of each is what programs may look for.
pub fn welcome(config: &Config, address: SocketAddr) -> String {
    let scheme = if config.tls.is_some() { "https" } else { "http" };
    let endpoint = format!("{scheme}://{}", config.listen.reached_at(address));
    let durability = match (&config.store, config.durability.into()) {
        (StorePlace::Directory(_), Durability::Durable) => " (durable)",
        (StorePlace::Directory(_), Durability::UnsafeNoSync) => " (UNSAFE: not synced)",
        (StorePlace::Table(_), _) => "",
    };
    let mut lines =
        vec![format!("endpoint   {endpoint}"), format!("data       {}{durability}", config.store)];
    if config.keys.is_none() && exposed(&config.addresses).is_some() {
        lines.push(
            "DANGER     anyone who can reach this address can read and delete everything"
                .to_owned(),
        );
    }
    if config.test_clock {
        lines
            .push("clock      can be moved: POST /test-clock/advance {\"seconds\": 30}".to_owned());
    }
    let reached = config.public_url.clone().unwrap_or(endpoint);
    lines.push(format!(
        "try        aws --endpoint-url {reached} sqs create-queue --queue-name hello"
    ));
    lines.push("stop       Ctrl-C".to_owned());
    lines.join("\n")
}
