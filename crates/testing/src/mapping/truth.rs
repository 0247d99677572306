//! What really happened, as nobody but the simulator knows it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::{Arc, Mutex};

use millpond_store::Timestamp;

/// What really happened: kept outside of the processes that are killed.
#[derive(Debug, Clone, Default)]
pub struct Truth(Arc<Mutex<Happened>>);

#[derive(Debug, Default)]
struct Happened {
    calls: Vec<(u64, String)>,
    done: BTreeMap<(u64, String), u32>,
    /// What was done by which process.
    done_by: BTreeMap<usize, Vec<(u64, String)>>,
    /// What was done by a process whose answer was heard, and how many answers had been heard by then.
    settled: BTreeMap<(u64, String), usize>,
    answers: usize,
    /// What was called though it was settled.
    repeated: Vec<String>,
    /// What the mapping took from the ends of windows, by lane and window; nothing where it gave the end up.
    windows: BTreeMap<(u64, u64), Vec<Option<Vec<u64>>>>,
    /// What handlers were given and should not have been.
    wrong: Vec<String>,
    trace: String,
    processes: Vec<Process>,
    steps: Vec<Step>,
    /// Calls that came to their end, by process.
    ended: BTreeSet<(usize, u64, String)>,
}

/// One invocation.
#[derive(Debug, Clone)]
pub struct Process {
    /// What it was invoked with.
    pub label: String,
    /// When it was killed, if it was.
    pub killed: Option<Timestamp>,
    /// How many answers had been heard when it started.
    answers: usize,
}

/// The work of a step that was done.
#[derive(Debug, Clone)]
pub struct Step {
    pub n: u64,
    pub task: String,
    pub step: u64,
    pub process: usize,
    pub at: Timestamp,
}

impl Truth {
    /// Notes a call, and says which one it is, from 0.
    pub fn called(&self, process: usize, n: u64, task: &str) -> u32 {
        let mut happened = self.0.lock().unwrap();
        let call = (n, task.to_owned());
        let started = happened.processes[process].answers;
        if happened.settled.get(&call).is_some_and(|answers| *answers <= started) {
            happened.repeated.push(format!("{task} {n} was called again by process {process}"));
        }
        let before = happened.calls.iter().filter(|known| **known == call).count();
        happened.calls.push(call);
        before as u32
    }

    pub fn done(&self, process: usize, n: u64, task: &str) {
        let mut happened = self.0.lock().unwrap();
        *happened.done.entry((n, task.to_owned())).or_default() += 1;
        happened.done_by.entry(process).or_default().push((n, task.to_owned()));
    }

    /// The mapping has heard a process: what that has done is known, and is not to be done by those that start later.
    pub fn heard(&self, process: usize) {
        let mut happened = self.0.lock().unwrap();
        happened.answers += 1;
        let answers = happened.answers;
        for done in happened.done_by.remove(&process).unwrap_or_default() {
            happened.settled.entry(done).or_insert(answers);
        }
    }

    pub fn repeated(&self) -> Vec<String> {
        self.0.lock().unwrap().repeated.clone()
    }

    /// A process starts, and gets its number.
    pub fn starts(&self, label: &str) -> usize {
        let mut happened = self.0.lock().unwrap();
        let process = Process { label: label.to_owned(), killed: None, answers: happened.answers };
        happened.processes.push(process);
        happened.processes.len() - 1
    }

    pub fn killed(&self, process: usize, at: Timestamp) {
        self.0.lock().unwrap().processes[process].killed = Some(at);
    }

    pub fn processes(&self) -> Vec<Process> {
        self.0.lock().unwrap().processes.clone()
    }

    /// The work of a step is done. Those before it must have been done once.
    pub fn stepped(&self, step: Step) {
        let mut happened = self.0.lock().unwrap();
        let of = |known: &&Step| known.n == step.n && known.task == step.task;
        let done: BTreeSet<u64> =
            happened.steps.iter().filter(of).map(|known| known.step).collect();
        if let Some(left_out) = (0..step.step).find(|before| !done.contains(before)) {
            happened.wrong.push(format!("step {left_out} was left out before {step:?}"));
        }
        happened.steps.push(step);
    }

    pub fn steps(&self) -> Vec<Step> {
        self.0.lock().unwrap().steps.clone()
    }

    pub fn call_ended(&self, process: usize, n: u64, task: &str) {
        self.0.lock().unwrap().ended.insert((process, n, task.to_owned()));
    }

    pub fn has_ended(&self, process: usize, n: u64, task: &str) -> bool {
        self.0.lock().unwrap().ended.contains(&(process, n, task.to_owned()))
    }

    pub fn closed(&self, lane: u64, window: u64, gathered: Option<Vec<u64>>) {
        self.0.lock().unwrap().windows.entry((lane, window)).or_default().push(gathered);
    }

    pub fn windows(&self) -> BTreeMap<(u64, u64), Vec<Option<Vec<u64>>>> {
        self.0.lock().unwrap().windows.clone()
    }

    pub fn wrong(&self, what: String) {
        self.0.lock().unwrap().wrong.push(what);
    }

    pub fn all_wrong(&self) -> Vec<String> {
        self.0.lock().unwrap().wrong.clone()
    }

    pub fn note(&self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0.lock().unwrap().trace, "{line}").unwrap();
    }

    pub fn trace(&self) -> String {
        self.0.lock().unwrap().trace.clone()
    }

    /// All calls, in order.
    pub fn calls(&self) -> Vec<(u64, String)> {
        self.0.lock().unwrap().calls.clone()
    }

    pub fn times_done(&self, n: u64, task: &str) -> u32 {
        self.0.lock().unwrap().done.get(&(n, task.to_owned())).copied().unwrap_or(0)
    }
}
