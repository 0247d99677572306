//! What processes did to a queue, and what must be true of it, whatever happened in between.
//!
//! A claim took effect somewhere between the beginning and the end of a receive. Only what is wrong wherever it did is
//! called wrong.

use std::collections::BTreeMap;
use std::time::Duration;

use millpond_queue::Delivery;

use super::world::JUMP_MILLIS;

/// How long messages are on loan.
pub(crate) const VISIBILITY: Duration = Duration::from_secs(30);

/// How long they are at least, by wall clocks that may be set wrong, each way.
const LOAN_MILLIS: u64 = 30_000 - 2 * JUMP_MILLIS;

/// When a call began and ended, in milliseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span {
    pub begun: u64,
    pub ended: u64,
}

/// What a holder does with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    Ack,
    Extend,
    GiveBack,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Sent {
    Begun,
    /// It is there for certain, or, `false`, perhaps.
    Ended(bool),
}

#[derive(Debug)]
struct Told {
    sender: u32,
    sent: Sent,
    deliveries: Vec<Loan>,
    /// When an ack began: from then on it may be done.
    ack_begun: Option<u64>,
    /// When an ack was known to have succeeded.
    acked: Option<u64>,
    /// Something behind it in its group was handed out, so it must not be there.
    passed_by: bool,
}

#[derive(Debug)]
struct Loan {
    receipt: String,
    receive: u64,
    span: Span,
    /// How long it is at least.
    millis: u64,
    /// When it may have been given back.
    over: Option<u64>,
}

impl Loan {
    /// Whether both were under way at once, wherever each began.
    const fn overlaps(&self, other: &Self) -> bool {
        let (mine, theirs) = (self.span, other.span);
        let together =
            mine.ended < theirs.begun + other.millis && theirs.ended < mine.begun + self.millis;
        let before_mine_over = match self.over {
            Some(over) => theirs.ended < over,
            None => true,
        };
        let before_theirs_over = match other.over {
            Some(over) => mine.ended < over,
            None => true,
        };
        together && before_mine_over && before_theirs_over
    }
}

/// All messages by number; numbers rise for each sender.
#[derive(Debug)]
pub(crate) struct History {
    strict: bool,
    told: BTreeMap<u64, Told>,
    receives: u64,
    pub wrong: Option<String>,
}

impl History {
    pub(crate) const fn new(strict: bool) -> Self {
        Self { strict, told: BTreeMap::new(), receives: 0, wrong: None }
    }

    fn found(&mut self, wrong: String) {
        self.wrong.get_or_insert(wrong);
    }

    pub(crate) fn begin_send(&mut self, sender: u32) -> u64 {
        let number = self.told.len() as u64;
        self.told.insert(
            number,
            Told {
                sender,
                sent: Sent::Begun,
                deliveries: Vec::new(),
                ack_begun: None,
                acked: None,
                passed_by: false,
            },
        );
        number
    }

    pub(crate) fn end_send(&mut self, number: u64, is_certain: bool) {
        if let Some(told) = self.told.get_mut(&number) {
            told.sent = Sent::Ended(is_certain);
        }
    }

    /// Judges what was handed out.
    pub(crate) fn received(&mut self, taken: &[Delivery], span: Span) {
        self.receives += 1;
        let numbers: Vec<u64> = taken.iter().filter_map(number_of).collect();
        if numbers.len() != taken.len() {
            self.found("a message that nobody sent".to_owned());
        }
        for (delivery, number) in taken.iter().zip(&numbers) {
            if self.strict {
                self.check_turn(*number, &numbers, span);
            }
            let receive = self.receives;
            let Some(told) = self.told.get_mut(number) else { continue };
            let receipt = delivery.receipt.as_str().to_owned();
            let loan = Loan { receipt, receive, span, millis: LOAN_MILLIS, over: None };
            let wrong = if told.acked.is_some_and(|acked| acked < span.begun) {
                Some(format!("{number} was acknowledged and comes again"))
            } else if told.passed_by {
                Some(format!("{number} comes after one that is behind it"))
            } else {
                let other = told.deliveries.iter().find(|other| other.overlaps(&loan));
                other.map(|other| format!("{number} has two leases: {other:?} and {loan:?}"))
            };
            told.deliveries.push(loan);
            wrong.into_iter().for_each(|wrong| self.found(wrong));
        }
    }

    /// All that its sender sent before is done or comes in the same receive.
    fn check_turn(&mut self, number: u64, together: &[u64], span: Span) {
        let Some(sender) = self.told.get(&number).map(|told| told.sender) else { return };
        let mut wrong = None;
        for (earlier, told) in self.told.range_mut(..number) {
            let may_be_done = told.ack_begun.is_some_and(|begun| begun <= span.ended);
            if told.sender != sender || may_be_done || together.contains(earlier) {
                continue;
            }
            told.passed_by = true;
            if told.sent == Sent::Ended(true) || !told.deliveries.is_empty() {
                wrong = Some(format!("{number} comes before {earlier} is done"));
            }
        }
        wrong.into_iter().for_each(|wrong| self.found(wrong));
    }

    pub(crate) fn begin_settle(
        &mut self,
        delivery: &Delivery,
        deed: Deed,
        now: u64,
        seconds: Duration,
    ) {
        let Some(told) = number_of(delivery).and_then(|number| self.told.get_mut(&number)) else {
            return;
        };
        if deed == Deed::Ack {
            told.ack_begun.get_or_insert(now);
        }
        let receipt = delivery.receipt.as_str();
        let Some(loan) = told.deliveries.iter_mut().find(|loan| loan.receipt == receipt) else {
            return;
        };
        match deed {
            Deed::Extend => {
                let millis = u64::try_from(seconds.as_millis()).unwrap_or(u64::MAX);
                let until = (now + millis).saturating_sub(2 * JUMP_MILLIS);
                loan.millis = loan.millis.min(until.saturating_sub(loan.span.begun));
            }
            Deed::Ack | Deed::GiveBack => {
                loan.over.get_or_insert(now);
            }
        }
    }

    /// A deed of a holder that another had replaced for certain must have been refused.
    pub(crate) fn end_settle(&mut self, delivery: &Delivery, deed: Deed, now: u64, is_ok: bool) {
        let Some(number) = number_of(delivery) else { return };
        let Some(told) = self.told.get_mut(&number) else { return };
        if !is_ok {
            return;
        }
        let receipt = delivery.receipt.as_str();
        let own = told.deliveries.iter().find(|loan| loan.receipt == receipt);
        let begun = own.and_then(|loan| loan.over);
        let replaced = |loan: &&Loan| {
            own.is_some_and(|own| loan.receive > own.receive)
                && begun.is_some_and(|begun| loan.span.ended < begun)
                && now < loan.span.begun + loan.millis
                && loan.over.is_none()
        };
        let heir = told.deliveries.iter().find(replaced).map(|loan| format!("{loan:?}"));
        let was_done = told.ack_begun.is_some_and(|ack| begun.is_some_and(|begun| ack < begun));
        if deed == Deed::Ack {
            told.acked.get_or_insert(now);
        }
        if let Some(heir) = heir.filter(|_| !was_done) {
            self.found(format!("{number}: {deed:?} by a holder who was replaced by {heir}"));
        }
    }

    /// Nothing that was sent is missing.
    pub(crate) fn check_end(&mut self) {
        let lost = |(_, told): &(&u64, &Told)| {
            told.sent == Sent::Ended(true) && told.acked.is_none() && told.ack_begun.is_none()
        };
        if let Some((number, told)) = self.told.iter().find(lost) {
            let lost = format!("{number} is lost: {told:?}");
            self.found(lost);
        }
    }
}

fn number_of(delivery: &Delivery) -> Option<u64> {
    delivery.text()?.parse().ok()
}
