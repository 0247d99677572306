//! Whether what happened is what the plan says must happen.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use millpond_consumer::{DeadLetter, MemorySink, Reason};

use super::plan::{ALL, Fate, ONES, Plan};
use super::settings::{Settings, Source};
use super::truth::Truth;

pub fn check(settings: &Settings, plan: &Plan, truth: &Truth, sink: &MemorySink, given_up: &[u64]) {
    let given_up: HashSet<u64> = given_up.iter().copied().collect();
    let mut letters: BTreeMap<u64, Vec<DeadLetter>> = BTreeMap::new();
    let about_window = |letter: &DeadLetter| {
        letter.record.as_deref().is_some_and(|record| record.starts_with("window/"))
    };
    let (ends, about_messages): (Vec<_>, Vec<_>) =
        sink.letters().into_iter().partition(about_window);
    for letter in about_messages {
        let by_id = letter.id.as_deref().and_then(super::table::number_of);
        let n = by_id.unwrap_or_else(|| {
            let payload = String::from_utf8(letter.payload().unwrap().to_vec()).unwrap();
            payload.trim_start_matches("{\"n\":").trim_end_matches('}').parse().unwrap()
        });
        letters.entry(n).or_default().push(letter);
    }
    let say = |n: u64| format!("message {n} of {settings:?}\n{}", truth.trace());
    for n in (0..plan.messages()).filter(|n| !given_up.contains(n)) {
        let of = letters.get(&n).map(Vec::as_slice).unwrap_or_default();
        let reasons: BTreeSet<Reason> = of.iter().map(|letter| letter.reason).collect();
        match plan.fate(n) {
            Fate::Done => {
                assert!(of.is_empty(), "it should be done, and is {reasons:?}: {}", say(n));
                for task in ONES.into_iter().chain([ALL]) {
                    assert!(truth.times_done(n, task) >= 1, "{task} was lost: {}", say(n));
                }
            }
            Fate::Dead(reason) => {
                assert!(!of.is_empty(), "it should be {reason:?}, and is lost: {}", say(n));
                // A message that is exhausted may be rejected when a lost note makes it run once more, and the other way
                // round: both decide.
                let expected = BTreeSet::from([reason]);
                let exact = settings.is_exact() && !both(plan, n);
                assert!(!exact || reasons == expected, "{reasons:?}, not {expected:?}: {}", say(n));
                let ids: BTreeSet<&str> =
                    of.iter().map(|letter| letter.dedupe_id.as_str()).collect();
                assert_eq!(ids.len(), 1, "letters about one message have one id: {}", say(n));
                assert!(!settings.is_exact() || of.len() == 1, "{} letters: {}", of.len(), say(n));
            }
        }
    }
    if settings.is_exact() {
        calls(settings, plan, truth);
    }
    order(settings, plan, truth);
    windows(settings, plan, truth, &given_up);
    super::window::check_ends(settings, plan, truth, &ends);
    super::steps::check(settings, truth);
    // What was done when an answer was heard stays done, whoever else writes; unless it could not be saved.
    if settings.faults().is_none() && !settings.kills() {
        let repeated = truth.repeated();
        assert!(repeated.is_empty(), "{repeated:?} of {settings:?}\n{}", truth.trace());
    }
    assert_eq!(truth.all_wrong(), Vec::<String>::new(), "{settings:?}\n{}", truth.trace());
}

/// What was gathered in each window is what is done, each message once and in order.
fn windows(settings: &Settings, plan: &Plan, truth: &Truth, given_up: &HashSet<u64>) {
    let Some(size) = settings.window() else { return };
    let windows = truth.windows();
    let say = |what: &str| format!("{what} of {settings:?}\n{}", truth.trace());
    let mut gathered = BTreeSet::new();
    for ((lane, window), parts) in &windows {
        let found: Vec<u64> = parts.iter().flatten().flatten().copied().collect();
        assert!(found.is_sorted_by(|a, b| a < b), "{}", say(&format!("{window}: {found:?}")));
        for n in &found {
            let fits = n / size == *window && super::stream::lane(plan, settings, *n) == *lane;
            assert!(fits, "{}", say(&format!("{n} in window {window} of lane {lane}")));
            assert!(
                plan.fate(*n) == Fate::Done || given_up.contains(n),
                "{}",
                say(&format!("{n} is dead, and in its window"))
            );
        }
        gathered.extend(found);
    }
    for n in (0..plan.messages()).filter(|n| plan.fate(*n) == Fate::Done && !given_up.contains(n)) {
        let parts = windows.get(&(super::stream::lane(plan, settings, n), n / size));
        let lost = parts.is_some_and(|parts| parts.iter().any(Option::is_none));
        assert!(lost || gathered.contains(&n), "{}", say(&format!("{n} is not in its window")));
    }
}

/// Whether a message is rejected by one task and exhausts another.
fn both(plan: &Plan, n: u64) -> bool {
    let never = |task| {
        matches!(plan.of(n, task), super::plan::Behaviour::Never | super::plan::Behaviour::Kills)
    };
    plan.fate(n) == Fate::Dead(Reason::Rejected) && ONES.into_iter().chain([ALL]).any(never)
}

/// Each task was called as often as the plan says, and no more.
fn calls(settings: &Settings, plan: &Plan, truth: &Truth) {
    let mut counts: BTreeMap<(u64, String), u32> = BTreeMap::new();
    for call in truth.calls() {
        *counts.entry(call).or_default() += 1;
    }
    for n in 0..plan.messages() {
        for task in ONES.into_iter().chain([ALL]) {
            let made = counts.get(&(n, task.to_owned())).copied().unwrap_or(0);
            match plan.calls(n, task) {
                Some(expected) => {
                    assert_eq!(
                        made,
                        expected,
                        "calls of {task} for {n} of {settings:?}\n{}",
                        truth.trace()
                    );
                }
                None => assert!(made <= settings.attempts),
            }
        }
    }
}

/// Messages of one key had their first turn in order; and where nothing was lost, each was through before the next.
fn order(settings: &Settings, plan: &Plan, truth: &Truth) {
    if settings.source == Source::Queue {
        return;
    }
    let mut first: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    let mut all: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (n, task) in truth.calls() {
        if !ONES.contains(&task.as_str()) {
            continue;
        }
        let of_key = first.entry(plan.key(n)).or_default();
        if !of_key.contains(&n) {
            of_key.push(n);
        }
        all.entry(plan.key(n)).or_default().push(n);
    }
    for order in first.values() {
        assert!(order.is_sorted(), "first turns {order:?} of {settings:?}\n{}", truth.trace());
    }
    if settings.is_exact() {
        for order in all.values() {
            assert!(order.is_sorted(), "turns {order:?} of {settings:?}\n{}", truth.trace());
        }
    }
}
