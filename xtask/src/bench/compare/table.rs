//! What was measured, as a table and as JSON.

use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::contenders::{Client, Contender, MILLPOND};
use super::loads::{Figure, Load};
use crate::workspace::Workspace;

/// A server that could not be measured.
pub(super) struct Missing {
    pub(super) name: &'static str,
    pub(super) reason: String,
}

/// A figure of each server, load and round, in the order of rounds.
pub(super) struct Figures(Vec<(&'static Contender, &'static str, Figure)>);

impl Figures {
    pub(super) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(super) fn add(
        &mut self,
        contender: &'static Contender,
        load: &'static Load,
        figure: Figure,
    ) {
        self.0.push((contender, load.name, figure));
    }

    fn contenders(&self) -> Vec<&'static Contender> {
        let mut all: Vec<&'static Contender> = Vec::new();
        for (contender, ..) in &self.0 {
            if all.iter().all(|one| one.name != contender.name) {
                all.push(contender);
            }
        }
        all
    }

    fn of(&self, name: &str, load: &str) -> Vec<&Figure> {
        let these = self.0.iter().filter(|(one, its, _)| one.name == name && *its == load);
        these.map(|(.., figure)| figure).collect()
    }

    fn rate(&self, name: &str, load: &str) -> Option<f64> {
        median(self.of(name, load).iter().map(|figure| figure.rate).collect())
    }

    /// The median of the ratios to Millpond in the same round.
    fn ratio(&self, name: &str, load: &str) -> Option<f64> {
        let (theirs, ours) = (self.of(name, load), self.of(MILLPOND, load));
        median(theirs.iter().zip(ours).map(|(theirs, ours)| theirs.rate / ours.rate).collect())
    }

    /// The median of a figure that the client has said of itself or of the server, for each message.
    fn each(&self, name: &str, load: &str, pointer: &str) -> Option<f64> {
        let figures = self.of(name, load);
        median(figures.iter().filter_map(|one| one.said.pointer(pointer)?.as_f64()).collect())
    }

    pub(super) fn print(&self, loads: &[&'static Load]) {
        println!(
            "\nmessages/s (ratio to Millpond: below 1 is slower); processor time of server + client, µs a message"
        );
        print!("{:16}", "");
        for load in loads {
            print!(" {:>28}", load.name);
        }
        println!();
        for contender in self.contenders() {
            let name = contender.name;
            print!("{name:16}");
            for load in loads {
                let (rate, ratio) = (self.rate(name, load.name), self.ratio(name, load.name));
                let cpu = |who| self.each(name, load.name, who).unwrap_or_default();
                let cell = match (rate, ratio) {
                    (Some(rate), Some(ratio)) => format!(
                        "{rate:.0} ({ratio:.2}) {:>3.0}+{:<3.0}",
                        cpu("/server/cpu_micros_each"),
                        cpu("/client/cpu_micros_each")
                    ),
                    _ => "-".to_owned(),
                };
                print!(" {cell:>28}");
            }
            println!();
        }
        println!();
        for contender in self.contenders() {
            let durable = if contender.durable { "on disk" } else { "NOT on disk" };
            println!("{:16} {durable}: {}", contender.name, contender.answer);
        }
        println!();
    }

    /// Where Millpond is not ahead.
    pub(super) fn behind(&self, loads: &[&'static Load]) -> Vec<String> {
        let others = self.contenders().into_iter().filter(|one| one.name != MILLPOND);
        let pairs = others.flat_map(|one| loads.iter().map(move |load| (one, load.name)));
        pairs
            .filter_map(|(one, load)| {
                let ratio = self.ratio(one.name, load)?;
                (ratio > 1.0).then(|| format!("{load}: {} is {ratio:.2} times as fast", one.name))
            })
            .collect()
    }

    pub(super) fn write(
        &self,
        workspace: &Workspace,
        rounds: u64,
        missing: &[Missing],
    ) -> Result<()> {
        let rows: Vec<Value> = self
            .0
            .iter()
            .map(|(one, load, figure)| {
                json!({
                    "server": one.name,
                    "protocol": if one.client == Client::Sqs { "SQS" } else { "its own" },
                    "durable": one.durable,
                    "answer": one.answer,
                    "load": load,
                    "median_messages_per_second": self.rate(one.name, load),
                    "median_ratio_to_millpond": self.ratio(one.name, load),
                    "measured": figure.said,
                })
            })
            .collect();
        let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
        let missing: Vec<Value> =
            missing.iter().map(|one| json!({ "server": one.name, "reason": one.reason })).collect();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let all = json!({
            "unix_seconds": now,
            "cores": std::thread::available_parallelism().map_or(0, usize::from),
            "load_average": load.trim(),
            "rounds": rounds,
            "figures": rows,
            "missing": missing,
        });
        fs::create_dir_all(workspace.path("target/bench"))?;
        fs::write(workspace.path("target/bench/compare.json"), serde_json::to_vec_pretty(&all)?)
            .context("write the figures")
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::contenders::CONTENDERS;
    use super::super::loads::LOADS;
    use super::{Figure, Figures, MILLPOND};

    #[test]
    fn a_ratio_is_the_median_of_those_within_rounds() {
        let load = LOADS.first().expect("there are loads");
        let of = |name| CONTENDERS.iter().find(|one| one.name == name).expect("it is there");
        let mut figures = Figures::new();
        // The machine is busy in the second round, and slows both.
        for (ours, theirs) in [(100.0, 50.0), (10.0, 6.0), (100.0, 200.0)] {
            figures.add(of(MILLPOND), load, Figure { rate: ours, said: Value::Null });
            figures.add(of("redis"), load, Figure { rate: theirs, said: Value::Null });
        }
        assert_eq!(figures.rate("redis", load.name), Some(50.0));
        assert_eq!(figures.ratio("redis", load.name), Some(0.6));
        assert!(figures.behind(&[load]).is_empty());
        figures.add(of(MILLPOND), load, Figure { rate: 1.0, said: Value::Null });
        figures.add(of("redis"), load, Figure { rate: 2.0, said: Value::Null });
        assert_eq!(figures.behind(&[load]), ["send 1, 64 callers: redis is 2.00 times as fast"]);
    }
}
