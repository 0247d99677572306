//! The world of one seed: processes that share a store, and what happens to them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{bail, ensure};
use millpond_lanes::Ground;
use millpond_store::{
    Environment, FaultPlan, FaultRates, Faulty, MemoryStore, Rng, SeededRng, Store, Timestamp,
    VirtualClock,
};

use super::clock::OwnClock;
use super::gate::{Gate, Gated};

/// How often everything gets a turn before it counts as at rest. A chain of tasks that wake each other is shorter.
const TURNS: usize = 24;

/// Requests for one operation, on average and with all retries; more is taken for a standstill.
const STEPS_PER_OPERATION: u64 = 2_000;

/// How far a wall clock is set wrong at most, in milliseconds.
pub(crate) const JUMP_MILLIS: u64 = 5_000;

/// Faults that happen by chance, each time a request is made.
const RATES: FaultRates = FaultRates {
    conflict: 0.02,
    definite: 0.03,
    unknown_before: 0.03,
    unknown_after: 0.05,
    throttle: 0.02,
    delay: 0.01,
    delay_max: Duration::from_secs(2),
};

/// What runs in the processes of a world, and what must be true of it.
pub(crate) trait Scenario: Clone + Send + Sync + 'static {
    /// What one process does, without end; it may be killed at any request.
    fn work(self, process: Process) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// What must be true when all processes are dead and the store is well.
    fn finish(self, process: Process) -> impl Future<Output = anyhow::Result<()>> + Send;

    /// What was found to be wrong so far.
    fn wrong(&self) -> Option<String>;
}

/// A process as it sees the world.
#[derive(Debug, Clone)]
pub(crate) struct Process {
    /// Which of the world's places it has: whoever is started after a crash has the same.
    pub slot: u32,
    pub environment: Environment,
    pub ground: Ground,
    pub gate: Arc<Gate>,
    /// The time that all share.
    pub world: VirtualClock,
    pub operations: Arc<AtomicU64>,
}

impl Process {
    /// Milliseconds of the world's own time.
    pub(crate) fn now(&self) -> u64 {
        use millpond_store::Clock as _;
        self.world.now().as_millis()
    }

    /// An operation has ended, this way.
    pub(crate) fn ended(&self, what: std::fmt::Arguments<'_>) {
        self.operations.fetch_add(1, Ordering::Relaxed);
        self.gate.note(format_args!("{} at {}: {what}", self.slot, self.now()));
    }
}

pub(crate) struct World {
    gate: Arc<Gate>,
    clock: VirtualClock,
    store: Arc<Faulty<MemoryStore>>,
    rng: SeededRng,
    operations: Arc<AtomicU64>,
    running: Vec<Running>,
    processes_made: u32,
}

struct Running {
    id: u32,
    clock: Arc<OwnClock>,
    work: tokio::task::JoinHandle<anyhow::Result<()>>,
}

impl World {
    pub(crate) fn new(seed: u64) -> Self {
        let clock = VirtualClock::new(Timestamp::from_millis(1_700_000_000_000));
        let environment = Environment::simulated(clock.clone(), seed);
        let store = Faulty::new(MemoryStore::new(&environment), &environment);
        Self {
            gate: Arc::default(),
            clock,
            store: Arc::new(store),
            rng: SeededRng::new(seed ^ 0x5eed),
            operations: Arc::default(),
            running: Vec::new(),
            processes_made: 0,
        }
    }

    fn process(&mut self, slot: u32) -> (u32, Arc<OwnClock>, Process) {
        let id = self.processes_made;
        self.processes_made += 1;
        let clock = Arc::new(OwnClock::new(self.clock.clone()));
        let rng = Arc::new(SeededRng::new(self.rng.next_u64()));
        let environment = Environment { clock: Arc::clone(&clock) as _, rng };
        let inner = Arc::clone(&self.store) as Arc<dyn Store>;
        let store = Gated { inner, gate: Arc::clone(&self.gate), process: id };
        let ground = Ground::new(Arc::new(store), &environment);
        let (gate, world) = (Arc::clone(&self.gate), self.clock.clone());
        let operations = Arc::clone(&self.operations);
        (id, clock, Process { slot, environment, ground, gate, world, operations })
    }

    fn start(&mut self, slot: u32, scenario: &impl Scenario) -> Running {
        let (id, clock, process) = self.process(slot);
        self.gate.note(format_args!("process {id} starts in place {slot}"));
        Running { id, clock, work: tokio::spawn(scenario.clone().work(process)) }
    }

    /// Lets the processes run until they have made so many operations, and then looks at what they left.
    /// Returns how many there were.
    pub(crate) async fn run(
        &mut self,
        scenario: &impl Scenario,
        operations: u64,
    ) -> anyhow::Result<u64> {
        let places = 2 + u32::try_from(self.rng.below(4))?;
        self.running = (0..places).map(|slot| self.start(slot, scenario)).collect();
        self.store.follow(FaultPlan::Chance(RATES));
        let mut steps = 0;
        while self.operations.load(Ordering::Relaxed) < operations {
            steps += 1;
            ensure!(steps < operations * STEPS_PER_OPERATION, "nothing goes on");
            self.step().await?;
            self.strike(scenario)?;
            if let Some(wrong) = scenario.wrong() {
                bail!(wrong);
            }
        }
        for running in std::mem::take(&mut self.running) {
            self.gate.kill(running.id);
            running.work.abort();
        }
        self.store.follow(FaultPlan::None);
        let (.., process) = self.process(places);
        let mut finish = tokio::spawn(scenario.clone().finish(process));
        for _ in 0..operations * STEPS_PER_OPERATION {
            self.step().await?;
            if finish.is_finished() {
                (&mut finish).await??;
                return scenario.wrong().map_or_else(
                    || Ok(self.operations.load(Ordering::Relaxed)),
                    |wrong| bail!(wrong),
                );
            }
        }
        bail!("the end does not come")
    }

    /// Lets one request through; when none waits, time passes until somebody wakes.
    async fn step(&mut self) -> anyhow::Result<()> {
        for _ in 0..TURNS {
            tokio::task::yield_now().await;
        }
        if self.gate.let_one_through(&self.rng) {
            return Ok(());
        }
        self.gate.resume_all();
        let wake = self.clock.next_wake().unwrap_or(Duration::from_millis(1));
        self.clock.advance(wake.max(Duration::from_millis(1)));
        Ok(())
    }

    /// Now and then something befalls a process, or all.
    fn strike(&mut self, scenario: &impl Scenario) -> anyhow::Result<()> {
        let place = usize::try_from(self.rng.below(self.running.len() as u64))?;
        let Some(running) = self.running.get(place) else { return Ok(()) };
        if running.work.is_finished() {
            bail!("process {} has given up", running.id);
        }
        match self.rng.below(2_000) {
            0..6 => {
                self.gate.note(format_args!("process {} is killed", running.id));
                self.gate.kill(running.id);
                running.work.abort();
                let next = self.start(u32::try_from(place)?, scenario);
                if let Some(running) = self.running.get_mut(place) {
                    *running = next;
                }
            }
            6..12 => {
                self.gate.note(format_args!("process {} pauses", running.id));
                self.gate.pause(running.id);
            }
            12..16 => {
                let ahead = i64::try_from(self.rng.below(2 * JUMP_MILLIS))?;
                running.clock.set_ahead(ahead - i64::try_from(JUMP_MILLIS)?);
                self.gate.note(format_args!("the clock of process {} jumps", running.id));
            }
            16..24 => {
                // All requests under way are slow.
                let passes = self.rng.below(20_000);
                self.clock.advance(Duration::from_millis(passes));
                self.gate.note(format_args!("{passes} ms pass"));
            }
            24..32 => self.gate.resume_all(),
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn trace(&self) -> String {
        self.gate.trace()
    }
}
