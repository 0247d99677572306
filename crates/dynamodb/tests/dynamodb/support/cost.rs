//! Counting what operations cost, and holding it against what they may cost.

use bytes::Bytes;
use millpond_store::{Meter, Operation, Rng as _, SeededRng};

/// Write units, read units, object puts and object gets, for each message.
#[derive(Debug, Clone, Copy, Default)]
pub struct Cost {
    pub wcu: f64,
    pub rcu: f64,
    pub puts: f64,
    pub gets: f64,
}

impl Cost {
    pub fn plus(self, other: Self) -> Self {
        Self {
            wcu: self.wcu + other.wcu,
            rcu: self.rcu + other.rcu,
            puts: self.puts + other.puts,
            gets: self.gets + other.gets,
        }
    }
}

pub struct Costs {
    pub meter: Meter,
    pub objects: Meter,
    pub messages: f64,
}

impl Costs {
    /// What was used since the last call, for each message, printed under `step`.
    pub fn of(&self, step: &str) -> Cost {
        let (store, objects) = (self.meter.take().total(), self.objects.take());
        let requests = |operation| objects.of(operation).requests as f64 / self.messages;
        let cost = Cost {
            wcu: store.write_units / self.messages,
            rcu: store.read_units / self.messages,
            puts: requests(Operation::ObjectPut),
            gets: requests(Operation::ObjectGet),
        };
        print_row(step, cost);
        cost
    }
}

pub fn print_row(step: &str, cost: Cost) {
    let Cost { wcu, rcu, puts, gets } = cost;
    println!("  {step:10} {wcu:>8.3} WCU {rcu:>8.3} RCU {puts:>7.3} PUT {gets:>7.3} GET");
}

/// Bytes that do not compress.
pub fn body(bytes: usize) -> Bytes {
    let rng = SeededRng::new(bytes as u64);
    (0..bytes).map(|_| rng.next_u64().to_le_bytes()[0]).collect()
}

pub fn judge(name: &str, cost: Cost, most: Cost) {
    print_row("total", cost);
    print_row("at most", most);
    let within = |value: f64, most: f64| value <= most + 1e-9;
    assert!(within(cost.wcu, most.wcu), "{name}: {} WCU, at most {}", cost.wcu, most.wcu);
    assert!(within(cost.rcu, most.rcu), "{name}: {} RCU, at most {}", cost.rcu, most.rcu);
    assert!(within(cost.puts, most.puts), "{name}: {} PUT, at most {}", cost.puts, most.puts);
    assert!(within(cost.gets, most.gets), "{name}: {} GET, at most {}", cost.gets, most.gets);
}

pub const fn most(wcu: f64, rcu: f64, puts: f64, gets: f64) -> Cost {
    Cost { wcu, rcu, puts, gets }
}
