//! The server over HTTP: its start, its size, its rates, and how soon a waiting receive has what was sent.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use super::wire::Connection;
use crate::binary::build;
use crate::server::Server;
use crate::workspace::Workspace;

/// How often the server is started; the median counts.
const STARTS: usize = 5;

/// Messages of each load, and how often a receive is woken.
const MESSAGES: u64 = 40_000;
const WAKES: u64 = 400;

/// Loads: workload, messages in a request, callers.
const LOADS: [(&str, u64, u64); 5] =
    [("send", 1, 64), ("send", 10, 16), ("receive", 10, 16), ("cycle", 10, 16), ("drain", 10, 16)];

/// One figure, and the most that it should be if it has a target.
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
    most: Option<f64>,
}

/// Measures, prints a table and writes it as JSON; `false` when a target is missed.
pub(super) fn run(workspace: &Workspace, percent: u64) -> Result<bool> {
    let binary = build(workspace, "millpond", &["--release"])?;
    let mut figures = Vec::new();
    let mut add = |name: &str, value: f64, unit, most| {
        figures.push(Figure { name: name.to_owned(), value, unit, most });
    };
    add("binary", megabytes(std::fs::metadata(&binary)?.len()), "MB", Some(40.0));
    let start = start(workspace, &binary)?;
    add("start to first answer, empty directory", start, "ms", Some(100.0));
    let server = Server::start(workspace, &binary, &[])?;
    Connection::open(server.endpoint())?.page("/health/ready")?;
    add("idle memory", memory(server.id())?, "MB", Some(30.0));
    let wakes = wakes(server.endpoint(), (WAKES * percent / 100).max(10))?;
    add("send to received by a waiting receive, p50", percentile(&wakes, 50), "ms", Some(2.0));
    add("send to received by a waiting receive, p99", percentile(&wakes, 99), "ms", Some(10.0));
    for (workload, batch, callers) in LOADS {
        let messages = MESSAGES * percent / 100;
        let rate = load(workspace, &binary, &server, (workload, batch, callers), messages)?;
        add(&format!("{workload}, {batch} a request, {callers} callers"), rate, "msgs/s", None);
    }
    print(&figures);
    let path = workspace.path("target/bench/http.json");
    std::fs::create_dir_all(workspace.path("target/bench"))?;
    let rows: Vec<Value> = figures.iter().map(Figure::json).collect();
    std::fs::write(&path, serde_json::to_vec_pretty(&rows)?).context("write the figures")?;
    Ok(figures.iter().all(Figure::is_reached))
}

impl Figure {
    fn is_reached(&self) -> bool {
        self.most.is_none_or(|most| self.value <= most)
    }

    fn json(&self) -> Value {
        let Self { name, value, unit, most } = self;
        json!({ "name": format!("http: {name}"), "value": value, "unit": unit, "at_most": most })
    }
}

fn print(figures: &[Figure]) {
    for figure in figures {
        let target = figure.most.map_or_else(String::new, |most| {
            let verdict = if figure.is_reached() { "reached" } else { "MISSED" };
            format!("<= {most} {verdict}")
        });
        let Figure { name, value, unit, .. } = figure;
        println!("http: {name:44} {value:>12.2} {unit:8} {target}");
    }
}

/// From the start of the process to its first answer, in milliseconds.
fn start(workspace: &Workspace, binary: &Path) -> Result<f64> {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let began = Instant::now();
        let server = Server::start(workspace, binary, &[])?;
        Connection::open(server.endpoint())?.page("/health/ready")?;
        times.push(began.elapsed());
    }
    times.sort_unstable();
    Ok(percentile(&times, 50))
}

/// What the process has in memory.
fn memory(id: u32) -> Result<f64> {
    let status =
        std::fs::read_to_string(format!("/proc/{id}/status")).context("the server's memory")?;
    let resident = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes = resident.and_then(|line| line.split_whitespace().next()).context("no VmRSS")?;
    Ok(megabytes(kilobytes.parse::<u64>()? * 1_024))
}

/// How long after a send was begun a receive that waits has the message, one at a time.
fn wakes(endpoint: &str, rounds: u64) -> Result<Vec<Duration>> {
    let mut sender = Connection::open(endpoint)?;
    let queue = json!({ "QueueName": "wakes" });
    sender.call("CreateQueue", &queue)?;
    let url = format!("{endpoint}/000000000000/wakes");
    let mut times = Vec::new();
    for round in 0..rounds {
        let mut receiver = Connection::open(endpoint)?;
        let ask = json!({ "QueueUrl": url, "WaitTimeSeconds": 20 });
        let waits = thread::spawn(move || -> Result<(Instant, String, Connection)> {
            let answer = receiver.call("ReceiveMessage", &ask)?;
            Ok((Instant::now(), answer, receiver))
        });
        // By then the receive waits.
        thread::sleep(Duration::from_millis(20));
        let body = format!("wake {round}");
        let began = Instant::now();
        sender.call("SendMessage", &json!({ "QueueUrl": url, "MessageBody": body }))?;
        let (received, answer, mut receiver) =
            waits.join().expect("the receiver does not panic")?;
        ensure!(answer.contains(&body), "not the message that was sent: {answer}");
        times.push(received.saturating_duration_since(began));
        let answer: Value = serde_json::from_str(&answer)?;
        let receipt = answer.pointer("/Messages/0/ReceiptHandle").context("a receipt handle")?;
        receiver.call("DeleteMessage", &json!({ "QueueUrl": url, "ReceiptHandle": receipt }))?;
    }
    times.sort_unstable();
    Ok(times)
}

/// Messages a second of one load, by `millpond bench`.
fn load(
    workspace: &Workspace,
    binary: &Path,
    server: &Server,
    (workload, batch, callers): (&str, u64, u64),
    messages: u64,
) -> Result<f64> {
    let output = workspace
        .command(binary)
        .args(["bench", "--json", "--endpoint", server.endpoint(), "--workload", workload])
        .args(["--messages", &messages.to_string(), "--batch", &batch.to_string()])
        .args(["--concurrency", &callers.to_string()])
        .output()
        .context("cannot run the bench")?;
    let said = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let answer: Value = serde_json::from_str(&said).with_context(|| said.to_string())?;
    answer.get("messages_per_second").and_then(Value::as_f64).context("no rate")
}

/// Of sorted times, in milliseconds.
fn percentile(times: &[Duration], percent: usize) -> f64 {
    let at = (times.len() * percent / 100).min(times.len().saturating_sub(1));
    times.get(at).map_or(f64::INFINITY, |time| time.as_secs_f64() * 1_000.0)
}

#[expect(clippy::cast_precision_loss, reason = "a size for people to read")]
fn megabytes(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}
