//! A failure before and after every single request of each sequencer operation.
//!
//! For each operation the number of its requests is counted once; then it is run again and again with a fault at each of
//! them in turn, alone or followed by more so that retries are used up. Afterwards the next put of any number, or the
//! sweeper, must bring the queue to where it would be, with nothing lost, stranded, repeated or set back.

use millpond_sequencer::{
    Advance, Config, Entry, GapPolicy, Output, Result, Sequencer, SequencerError,
};
use millpond_store::FaultPlan;

use crate::sequencer_suite::{World, message};
use crate::subject::Subject;
use crate::sweep::{is_remote, plans};

/// Requests at most for one operation: more would be a defect of its own.
const REQUESTS_MAX: u64 = 24;

/// More than the retries of all layers together.
const STORM: u64 = 500;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    PutFirst,
    PutInOrder,
    PutAhead,
    PutFills,
    PutDuplicate,
    PutBatch,
    Declare,
    Skip,
    Rewind,
    Trim,
    Reset,
    Sweep,
}

const OPERATIONS: [Operation; 12] = [
    Operation::PutFirst,
    Operation::PutInOrder,
    Operation::PutAhead,
    Operation::PutFills,
    Operation::PutDuplicate,
    Operation::PutBatch,
    Operation::Declare,
    Operation::Skip,
    Operation::Rewind,
    Operation::Trim,
    Operation::Reset,
    Operation::Sweep,
];

/// Who comes next after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    /// The same call again.
    Retry,
    /// A put of another number, from another process.
    OtherPut,
    /// The sweeper of the process that failed.
    Sweeper,
}

const CONFIG: Config = Config {
    start: millpond_sequencer::Start::At(0),
    batch: 3,
    window: millpond_sequencer::Window { span: 1_000, count: None, bytes: None },
    conflicts: millpond_sequencer::ConflictRule::Refuse,
    gaps: GapPolicy::WhenDeclared,
    late: millpond_sequencer::LatePolicy::Reject,
    retention: millpond_sequencer::Retention::Forever,
};

/// 0 to 2 are delivered, 4, 5 and 9 wait; nothing at all for the first put.
async fn prepared(subject: &Subject, operation: Operation) -> (World, Vec<Advance>) {
    let world = World::new(subject);
    let mut returned = Vec::new();
    if operation != Operation::PutFirst {
        for seq in [4, 0, 1, 5, 2, 9] {
            let put = world.open(CONFIG).put("q", seq, message(seq, 6)).await.unwrap();
            returned.extend(put.advanced);
        }
    }
    (world, returned)
}

async fn put(sequencer: &Sequencer, seq: u64) -> Result<Vec<Advance>> {
    Ok(sequencer.put("q", seq, message(seq, 6)).await?.advanced.into_iter().collect())
}

async fn run(operation: Operation, sequencer: &Sequencer) -> Result<Vec<Advance>> {
    match operation {
        Operation::PutFirst | Operation::PutDuplicate => put(sequencer, 0).await,
        Operation::PutInOrder | Operation::PutFills => put(sequencer, 3).await,
        Operation::PutAhead => put(sequencer, 7).await,
        Operation::PutBatch => {
            let entries = [3, 6, 8].map(|seq| Entry::new("q", seq, message(seq, 6)).unwrap());
            let result = sequencer.put_batch(entries.into()).await?;
            let failed = result.arrivals.into_iter().find_map(std::result::Result::err);
            let passed = result.advanced.iter().map(|(_, passed)| *passed).collect();
            failed.map_or(Ok(passed), Err)
        }
        Operation::Declare => Ok(sequencer.declare_gap("q", 3..4).await?.into_iter().collect()),
        Operation::Skip => Ok(sequencer.skip("q", 8).await?.into_iter().collect()),
        Operation::Rewind => Ok(sequencer.rewind("q", 1).await?.into_iter().collect()),
        Operation::Trim => sequencer.trim("q", 2).await.map(|_| Vec::new()),
        Operation::Reset => sequencer.reset("q", 5).await.map(|()| Vec::new()),
        Operation::Sweep => {
            let swept = sequencer.sweep().await?;
            match swept.failed.into_iter().next() {
                Some((_, error)) => Err(error),
                None => Ok(swept.advanced.iter().map(|(_, passed)| *passed).collect()),
            }
        }
    }
}

/// Where the queue is when the operation was done in full.
const fn expected_next(operation: Operation) -> u64 {
    match operation {
        Operation::PutFirst => 1,
        Operation::PutInOrder | Operation::PutFills | Operation::Declare => 6,
        Operation::PutBatch => 7,
        Operation::Skip => 8,
        Operation::Reset => 5,
        _ => 3,
    }
}

/// Every operation, every request, every fault, and each of those who may come next.
pub async fn every_request_of_every_sequencer_operation_may_fail(subject: &Subject) {
    let remote = is_remote(&*subject.store);
    for operation in OPERATIONS {
        let (world, _) = prepared(subject, operation).await;
        world.calm();
        let calm = world.open(CONFIG);
        run(operation, &calm).await.unwrap();
        let requests = world.faulty.requests();
        let reached = calm.cursor("q").await.unwrap().unwrap().next;
        assert_eq!(reached, expected_next(operation), "{operation:?}");
        assert!((1..=REQUESTS_MAX).contains(&requests), "{operation:?}: {requests} requests");
        for (number, (name, plan)) in
            plans(&*subject.store, requests, STORM).into_iter().enumerate()
        {
            for (turn, next) in [Next::Retry, Next::OtherPut, Next::Sweeper].into_iter().enumerate()
            {
                // Over a network each has one successor, by turns: all would take minutes.
                if remote && number % 3 != turn {
                    continue;
                }
                let case = format!("{operation:?}, {name}, then {next:?}");
                one(subject, operation, plan.clone(), next, &case).await;
            }
        }
    }
}

async fn one(subject: &Subject, operation: Operation, plan: FaultPlan, next: Next, case: &str) {
    let (world, mut returned) = prepared(subject, operation).await;
    let handle = world.open(CONFIG);
    world.faulty.follow(plan);
    let outcome = run(operation, &handle).await;
    world.calm();
    let failed = usize::from(outcome.is_err());
    if let Err(error) = &outcome {
        assert!(matches!(error, SequencerError::Store(_)), "{case}: {error}");
    }
    returned.extend(outcome.unwrap_or_default());
    let stored_before = stored(&world).await;
    let swept = |swept: millpond_sequencer::Swept| -> Vec<Advance> {
        assert!(swept.failed.is_empty(), "{case}: {swept:?}");
        swept.advanced.iter().map(|(_, passed)| *passed).collect()
    };
    match next {
        Next::Retry if failed == 1 => {
            let again = run(operation, &handle).await;
            let done = matches!(again, Err(SequencerError::OutOfRange { .. }));
            assert!(again.is_ok() || done, "{case}: the retry failed: {again:?}");
            returned.extend(again.unwrap_or_default());
        }
        // It told what it passed, and left the rest.
        Next::Retry => returned.extend(swept(handle.sweep().await.unwrap())),
        Next::OtherPut if operation == Operation::Reset => return,
        Next::OtherPut => returned.extend(put(&world.open(CONFIG), 20).await.unwrap()),
        Next::Sweeper if operation == Operation::Reset => return,
        Next::Sweeper => returned.extend(swept(handle.sweep().await.unwrap())),
    }
    let cursor = handle.cursor("q").await.unwrap();
    let reached = cursor.as_ref().map_or(0, |cursor| cursor.next);
    if failed == 0 && next == Next::Sweeper || next == Next::Retry {
        assert_eq!(reached, expected_next(operation), "{case}");
    }
    // Whatever happened, nothing is stranded: the cursor waits for something that is not there.
    assert!(!stored(&world).await.contains(&reached), "{case}: number {reached} is stranded");
    if !matches!(operation, Operation::Reset | Operation::Trim) {
        let after = stored(&world).await;
        assert!(stored_before.iter().all(|seq| after.contains(seq)), "{case}: a message is lost");
    }
    if !matches!(operation, Operation::Rewind | Operation::Reset) {
        world.check("q", &returned, failed, case).await;
    }
    readable(&handle, case).await;
}

async fn stored(world: &World) -> Vec<u64> {
    let rows = world.rows("q/q").await;
    let items = rows.iter().filter(|row| row.key.sort.as_bytes().first() == Some(&b'i'));
    items.map(|row| u64::from_be_bytes(*row.key.sort.as_bytes().last_chunk().unwrap())).collect()
}

/// Everything that is kept can be read, each number once, as a message or in a gap.
async fn readable(sequencer: &Sequencer, case: &str) {
    let Some(cursor) = sequencer.cursor("q").await.unwrap() else { return };
    let read = sequencer.read("q", cursor.floor..cursor.next).await.unwrap();
    let mut at = cursor.floor;
    for output in &read.outputs {
        match output {
            Output::Message(found) => {
                assert_eq!((found.seq, &found.message), (at, &message(at, 6)), "{case}");
                at += 1;
            }
            Output::Gap(gap) => {
                assert_eq!(gap.first, at, "{case}");
                at = gap.end;
            }
        }
    }
    assert_eq!(at, cursor.next, "{case}");
}
