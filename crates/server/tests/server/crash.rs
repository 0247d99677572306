//! `kill -9` of the server under load from a real client: nothing acknowledged is lost.

use std::sync::Arc;

use crate::support::Server;
use crate::support::load::Load;

/// How often to kill; `cargo xtask crash` says more.
const CYCLES: usize = 3;
const CYCLES_VARIABLE: &str = "MILLPOND_CRASH_CYCLES";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_server_is_killed_under_load() {
    let cycles = std::env::var(CYCLES_VARIABLE).ok().map_or(CYCLES, |text| text.parse().unwrap());
    let load = Load::default();
    let mut directory = Arc::new(tempfile::tempdir().unwrap());
    for cycle in 0..cycles {
        let server = Server::start_in(directory, &["--log-level", "warn"]);
        let running = load.start(&[&server]).await;
        // Deaths at many different moments: after 20 to 99 sends.
        load.until_sent(20 + cycle * 37 % 80).await;
        directory = server.kill();
        running.stop().await;
    }
    let server = Server::start_in(directory, &["--log-level", "warn"]);
    let sent = load.check(&server).await;
    println!("{cycles} kills, {sent} sends acknowledged, none lost");
}
