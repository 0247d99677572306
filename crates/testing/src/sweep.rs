//! Which faults an operation is tried with, one request after the other.

use std::time::Duration;

use millpond_store::{Fault, FaultPlan, Store};

/// What can go wrong with a request before it is applied.
const BEFORE: [Fault; 4] =
    [Fault::Definite, Fault::UnknownBefore, Fault::Throttle, Fault::Conflict];

/// And after it.
const AFTER: Fault = Fault::UnknownAfter;

/// Whether each request goes over a network. There, what would take minutes is tried by turns: the logic above the store
/// is the same everywhere, and on the others it is tried in full.
pub(crate) fn is_remote(store: &dyn Store) -> bool {
    store.profile().outcome_window > Duration::ZERO
}

/// A fault at each of an operation's requests, of every kind, alone and followed by `storm` more, so that retries do not
/// get out of it. Over a network two at each request, one before and one after it is applied.
pub(crate) fn plans(store: &dyn Store, requests: u64, storm: u64) -> Vec<(String, FaultPlan)> {
    let remote = is_remote(store);
    let mut plans = Vec::new();
    for at in 0..requests {
        for fault in BEFORE.into_iter().chain([AFTER]) {
            for more in [0, storm] {
                if remote && !is_its_turn(at, fault, more > 0) {
                    continue;
                }
                let later = (at + 1..=at + more).map(|later| (later, Fault::Definite));
                let plan = FaultPlan::Script(later.chain([(at, fault)]).collect());
                plans.push((format!("{fault:?} at request {at}, {more} more"), plan));
            }
        }
    }
    plans
}

fn is_its_turn(at: u64, fault: Fault, is_storm: bool) -> bool {
    let kinds = BEFORE.len() as u64;
    let is_kind =
        fault == AFTER || BEFORE.iter().zip(0..).any(|(kind, n)| *kind == fault && n == at % kinds);
    let turn = at + at / kinds + u64::from(fault == AFTER);
    is_kind && is_storm == (turn % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn by_turns_every_request_fails_before_and_after_it_is_applied() {
        let tried = |at, fault| [false, true].map(|storm| is_its_turn(at, fault, storm));
        for at in 0..32 {
            let before = BEFORE.into_iter().flat_map(|fault| tried(at, fault));
            assert_eq!(before.filter(|tried| *tried).count(), 1, "before request {at}");
            assert_eq!(tried(at, AFTER).into_iter().filter(|tried| *tried).count(), 1);
        }
        for fault in BEFORE.into_iter().chain([AFTER]) {
            for storm in [false, true] {
                assert!((0..8).any(|at| is_its_turn(at, fault, storm)), "{fault:?}, {storm}");
            }
        }
    }
}
