//! The model: what each task does with each message, call by call, and so what must become of it. A sequential reader of
//! the plan needs no batches, state or deliveries to know the end.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_consumer::{Builder, Message, Order, Outcome, Reason, Responses, Window};
use millpond_store::{Environment, Rng as _, SeededRng};

use super::invoke::Function;
use super::settings::{Settings, Source};

/// The tasks: two for each message, one for batches.
pub const ONES: [&str; 2] = ["index", "notify"];
pub const ALL: &str = "bulk";

/// What a task does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// Fails so often in this way, then succeeds.
    Fails(u32, Way),
    /// Always fails.
    Never,
    /// Always kills the process.
    Kills,
    /// Rejects the message.
    Rejects,
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Retry,
    Panic,
    Hang,
    Kill,
}

/// What must become of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Done,
    Dead(Reason),
}

/// The whole plan.
#[derive(Debug, Clone)]
pub struct Plan {
    behaviours: BTreeMap<(u64, &'static str), Behaviour>,
    keys: Vec<u64>,
    attempts: u32,
    seed: u64,
    steps: bool,
}

impl Plan {
    pub fn new(settings: &Settings) -> Self {
        let rng = SeededRng::new(settings.seed.wrapping_mul(31) + 1);
        let mut behaviours = BTreeMap::new();
        let mut keys = Vec::new();
        for n in 0..settings.messages {
            keys.push(rng.below(settings.keys));
            for task in ONES {
                behaviours.insert((n, task), behaviour(&rng, settings, true));
            }
            // What one message does to a call for all would be counted for the others too.
            behaviours.insert((n, ALL), behaviour(&rng, settings, false));
        }
        Self {
            behaviours,
            keys,
            attempts: settings.attempts,
            seed: settings.seed,
            steps: settings.steps,
        }
    }

    pub fn of(&self, n: u64, task: &str) -> Behaviour {
        let task = ONES.into_iter().chain([ALL]).find(|known| *known == task).unwrap();
        self.behaviours[&(n, task)]
    }

    pub fn key(&self, n: u64) -> u64 {
        self.keys[n as usize]
    }

    pub fn messages(&self) -> u64 {
        self.keys.len() as u64
    }

    /// What must become of a message.
    pub fn fate(&self, n: u64) -> Fate {
        let of = |task| self.behaviours[&(n, task)];
        let tasks = ONES.into_iter().chain([ALL]);
        if ONES.into_iter().chain([ALL]).any(|task| of(task) == Behaviour::Rejects) {
            return Fate::Dead(Reason::Rejected);
        }
        let fails = |task| matches!(of(task), Behaviour::Never | Behaviour::Kills);
        if tasks.into_iter().any(fails) {
            return Fate::Dead(Reason::Exhausted);
        }
        Fate::Done
    }

    /// What the end of a window does.
    pub fn end(&self, window: u64, kills: bool) -> Behaviour {
        let rng = SeededRng::new(self.seed.wrapping_mul(37).wrapping_add(window));
        let way = match rng.below(8) {
            0 => Way::Retry,
            1 => Way::Panic,
            2 => Way::Hang,
            3 if kills => Way::Kill,
            4 => return Behaviour::Never,
            5 if kills && rng.chance(0.3) => return Behaviour::Kills,
            _ => return Behaviour::Fails(0, Way::Retry),
        };
        Behaviour::Fails(1 + rng.below(2) as u32, way)
    }

    /// How many steps a task has for a message.
    pub fn steps(&self, n: u64, task: &str) -> u64 {
        if self.steps { self.chance(n, task, 0).below(4) } else { 0 }
    }

    /// How many of them a call takes that is to fail, and how long it waits then, if it is to kill its process: for longer than
    /// it takes until steps are saved, or not.
    pub fn fails_at(&self, n: u64, task: &str, call: u32) -> (u64, Duration) {
        let rng = self.chance(n, task, u64::from(call) + 1);
        let taken = rng.below(self.steps(n, task) + 1);
        let wait = if self.steps { [0, 0, 3, 9][rng.below(4) as usize] } else { 0 };
        (taken, Duration::from_secs(wait))
    }

    fn chance(&self, n: u64, task: &str, call: u64) -> SeededRng {
        let task = task.bytes().fold(0, |sum: u64, byte| sum * 31 + u64::from(byte));
        SeededRng::new(self.seed.wrapping_mul(41).wrapping_add(n * 1_009 + task * 97 + call))
    }

    /// How often a task is called for a message when nothing else goes wrong; nothing when another's rejection decides.
    pub fn calls(&self, n: u64, task: &str) -> Option<u32> {
        if self.fate(n) == Fate::Dead(Reason::Rejected) {
            return None;
        }
        Some(match self.of(n, task) {
            Behaviour::Fails(times, _) => times + 1,
            Behaviour::Never | Behaviour::Kills => self.attempts,
            Behaviour::Rejects => 1,
        })
    }

    /// The consumer that does as planned.
    pub fn consumer(
        &self,
        builder: Builder,
        function: &Function,
        settings: &Settings,
        environment: &Environment,
    ) -> Builder {
        let order = if settings.source == Source::Queue { Order::None } else { Order::PerKey };
        let responses = if settings.partial { Responses::Partial } else { Responses::Error };
        let mut builder = builder
            .environment(environment)
            .attempts(settings.attempts)
            .order(order)
            .responses(responses)
            .concurrency(4);
        for task in ONES {
            let (plan, function) = (self.clone(), function.clone());
            builder = builder.one(task, move |message: Message| {
                let (plan, function) = (plan.clone(), function.clone());
                async move { function.call(&plan, task, &message).await }
            });
        }
        if settings.window().is_some() {
            let (plan, function, kills) = (self.clone(), function.clone(), settings.kills());
            builder =
                builder.window(super::window::fold).window_end(move |window: Window, state| {
                    let (plan, function) = (plan.clone(), function.clone());
                    async move { function.end(&plan, &window, &state, kills).await }
                });
        }
        let (plan, function) = (self.clone(), function.clone());
        builder.all(ALL, move |messages: Vec<Message>| {
            let (plan, function) = (plan.clone(), function.clone());
            async move {
                let mut outcomes = Vec::new();
                for message in &messages {
                    outcomes.push(function.call(&plan, ALL, message).await);
                }
                outcomes
            }
        })
    }
}

fn behaviour(rng: &SeededRng, settings: &Settings, one: bool) -> Behaviour {
    let times = 1 + rng.below(2) as u32;
    match rng.below(40) {
        0..=2 => Behaviour::Fails(times, Way::Retry),
        3 => Behaviour::Rejects,
        4 => Behaviour::Never,
        5 if one => Behaviour::Fails(times, Way::Panic),
        6 if one => Behaviour::Fails(1, Way::Hang),
        7 if one && settings.kills() => Behaviour::Fails(times, Way::Kill),
        8 if one && settings.kills() && rng.chance(0.3) => Behaviour::Kills,
        _ => Behaviour::Fails(0, Way::Retry),
    }
}

impl Behaviour {
    /// What the call with this number does.
    pub fn at(self, call: u32) -> Result<Outcome, Way> {
        match self {
            Self::Fails(times, way) if call < times => match way {
                Way::Retry => Ok(Outcome::retry("planned")),
                other => Err(other),
            },
            Self::Fails(..) => Ok(Outcome::Done),
            Self::Never => Ok(Outcome::retry("never")),
            Self::Kills => Err(Way::Kill),
            Self::Rejects => Ok(Outcome::reject("planned")),
        }
    }
}
