//! A client of a queue: what sends and receives.

mod bodies;
mod claim;
mod core;
mod coverage;
mod edit;
mod heartbeat;
mod inspect;
mod loose;
mod maintain;
mod moves;
mod outlook;
mod purge;
mod read;
mod receive;
mod redrive;
mod rounds;
mod scan;
mod send;
mod settle;
mod standing;
mod strict;
mod sweep;
mod tasks;
mod totals;
mod unblock;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use millpond_lanes::cargo::SweepReport;

pub(crate) use core::ClientCore;
pub use heartbeat::Heartbeat;
pub use inspect::{Count, MessageState, Peeked};
pub use maintain::Maintained;
pub(crate) use outlook::Outlook;
pub use receive::Receive;
pub(crate) use receive::Seen;
pub use redrive::{Redrive, Redriven};
use settle::Settle;
pub use settle::{Extension, Settled};
pub use tasks::{TaskState, TaskStatus};
pub(crate) use totals::OwnRow;

use crate::config::{QueueConfig, within};
use crate::counters::Totals;
use crate::error::{QueueError, Result};
use crate::id::MessageId;
use crate::limits::{DELAY_MAX, RESULT_BYTES_MAX, VISIBILITY_MAX, VISIBILITY_MIN};
use crate::message::{Delivery, Message, Sent};
use crate::names::{ClientId, QueueName};
use crate::receipt::Receipt;

/// A client of a queue. It never sees, and never pays for, what belongs to another. Cheap to clone; all handles of a
/// client in a process share what they know.
#[derive(Debug, Clone)]
pub struct Client {
    pub(crate) core: Arc<ClientCore>,
}

/// Gives a receipt back after a failure.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nack {
    /// How long it waits before it is received again. Default: not at all.
    pub delay: Duration,
    /// What went wrong: kept with the message, and with it in the dead letters. Default: nothing in particular.
    pub error: String,
}

impl Client {
    /// Its id.
    #[must_use]
    pub fn id(&self) -> &ClientId {
        &self.core.id
    }

    /// The name of its queue.
    #[must_use]
    pub fn queue(&self) -> &QueueName {
        &self.core.queue.name
    }

    /// What tells its queue apart from others that had, or will have, its name.
    #[must_use]
    pub fn incarnation(&self) -> &str {
        &self.core.queue.incarnation
    }

    /// The queue's configuration, as of at most ten seconds ago.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when the queue was deleted.
    pub async fn config(&self) -> Result<Arc<QueueConfig>> {
        self.core.queue.config().await
    }

    /// Sends a message. When it returns, the message is stored.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] or [`QueueError::TooLarge`] when the message does not suit the queue. After an error
    /// of the store, see its [certainty](QueueError::certainty): in a strict queue, sending again with the same
    /// deduplication id sends once.
    pub async fn send(&self, message: Message) -> Result<Sent> {
        let sent = self.core.send(vec![message]).await?.pop();
        sent.unwrap_or_else(|| Err(QueueError::invalid("message", "was not sent")))
    }

    /// Sends any number of messages, in order, with an outcome for each.
    ///
    /// # Errors
    /// When the queue cannot be reached; then nothing was sent.
    pub async fn send_batch(&self, messages: Vec<Message>) -> Result<Vec<Result<Sent>>> {
        self.core.send(messages).await
    }

    /// Receives messages: at once when there are any, else as soon as there are or the wait is over. Dropping the
    /// call ends it; what it had claimed comes back when its lease ends.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when what is asked for makes no sense; as the store's.
    pub async fn receive(&self, ask: &Receive) -> Result<Vec<Delivery>> {
        self.core.receive(ask).await
    }

    /// The same, and ends the wait when told to stop, with what it has. Unlike a call that is dropped, it loses nothing
    /// that it has claimed.
    ///
    /// # Errors
    /// As [`receive`](Self::receive).
    pub async fn receive_until(
        &self,
        ask: &Receive,
        stop: impl Future<Output = ()>,
    ) -> Result<Vec<Delivery>> {
        self.core.receive_until(ask, stop, &mut Seen::default()).await
    }

    /// The message that a receipt is for, if it is one of this queue and client. Nothing is read.
    ///
    /// # Errors
    /// [`QueueError::ReceiptInvalid`].
    pub fn message_of(&self, receipt: &Receipt) -> Result<MessageId> {
        Ok(self.core.signer.check(receipt)?.message())
    }

    /// A name of a message of this client's that no other message has, in any queue, and that it keeps when it is moved
    /// to the dead letters: [`Delivery::identity`].
    #[must_use]
    pub fn identity(&self, id: &MessageId) -> String {
        self.core.identity(id)
    }

    /// Acknowledges a message: it is finished. That it is late does no harm as long as nobody else has it.
    ///
    /// # Errors
    /// [`QueueError::LeaseLost`] when another has it, [`QueueError::ReceiptInvalid`].
    pub async fn ack(&self, receipt: &Receipt) -> Result<Settled> {
        self.one(receipt, finish(true, Bytes::new())?).await
    }

    /// Acknowledges messages, with an outcome for each; one write for all that came together.
    ///
    /// # Errors
    /// When the queue cannot be reached.
    pub async fn ack_batch(&self, receipts: &[Receipt]) -> Result<Vec<Result<Settled>>> {
        self.all(receipts, &finish(true, Bytes::new())?).await
    }

    /// Acknowledges messages whose leases have not run out, with an outcome for each.
    ///
    /// # Errors
    /// When the queue cannot be reached. Of each: as [`ack`](Self::ack), and [`Lost::RunOut`](crate::Lost::RunOut).
    pub async fn ack_batch_in_time(&self, receipts: &[Receipt]) -> Result<Vec<Result<Settled>>> {
        let finish = Settle::Finish { success: true, result: Bytes::new(), in_time: true };
        self.all(receipts, &finish).await
    }

    /// Finishes a task well, with a result that is kept with its status.
    ///
    /// # Errors
    /// As [`ack`](Self::ack); [`QueueError::TooLarge`] for a result over 512 bytes.
    pub async fn succeed(&self, receipt: &Receipt, result: impl Into<Bytes>) -> Result<Settled> {
        self.one(receipt, finish(true, result.into())?).await
    }

    /// Finishes a task badly: it is not tried again. The error is kept with its status.
    ///
    /// # Errors
    /// As [`succeed`](Self::succeed).
    pub async fn fail(&self, receipt: &Receipt, error: impl Into<Bytes>) -> Result<Settled> {
        self.one(receipt, finish(false, error.into())?).await
    }

    /// Keeps a message on loan until this long from now.
    ///
    /// # Errors
    /// [`QueueError::LeaseLost`] when it is not on loan to this receipt any more.
    pub async fn extend(&self, receipt: &Receipt, visibility: Duration) -> Result<Settled> {
        within("visibility", visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        self.one(receipt, Settle::Extend(visibility)).await
    }

    /// The same for several, with an outcome for each.
    ///
    /// # Errors
    /// When the queue cannot be reached.
    pub async fn extend_batch(
        &self,
        receipts: &[Receipt],
        visibility: Duration,
    ) -> Result<Vec<Result<Settled>>> {
        within("visibility", visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        self.all(receipts, &Settle::Extend(visibility)).await
    }

    /// Keeps each message on loan until its own time from now, under terms. No time at all lets others receive it at
    /// once; until one does, its holder can still acknowledge it.
    ///
    /// # Errors
    /// When the queue cannot be reached, or a time is too long. Of each: as [`extend`](Self::extend),
    /// [`Lost::RunOut`](crate::Lost::RunOut) and [`Lost::TooLong`](crate::Lost::TooLong).
    pub async fn extend_each(
        &self,
        receipts: &[(Receipt, Duration)],
        terms: Extension,
    ) -> Result<Vec<Result<Settled>>> {
        for (_, by) in receipts {
            within("visibility", *by, Duration::ZERO, VISIBILITY_MAX)?;
        }
        let each: Vec<_> = receipts
            .iter()
            .map(|(receipt, by)| (receipt.clone(), Settle::ExtendWithin { by: *by, terms }))
            .collect();
        self.core.settle(&each).await
    }

    /// Gives a message back that was not worked on, to be received again at once.
    ///
    /// # Errors
    /// [`QueueError::LeaseLost`] when it is not on loan to this receipt any more.
    pub async fn release(&self, receipt: &Receipt) -> Result<Settled> {
        self.one(receipt, Settle::GiveBack { delay: Duration::ZERO, error: None }).await
    }

    /// Gives a message back as if it had never been received: the attempt does not count.
    pub(crate) async fn return_untouched(&self, receipt: &Receipt) -> Result<Settled> {
        self.one(receipt, Settle::Return).await
    }

    /// Gives messages back as if they had never been received: the attempts do not count.
    ///
    /// # Errors
    /// When the queue cannot be reached. Of each: [`QueueError::LeaseLost`].
    pub async fn return_batch(&self, receipts: &[Receipt]) -> Result<Vec<Result<Settled>>> {
        self.all(receipts, &Settle::Return).await
    }

    /// Gives a message back that could not be worked on. At the queue's limit of receives it goes to the dead
    /// letters.
    ///
    /// # Errors
    /// [`QueueError::LeaseLost`] when it is not on loan to this receipt any more.
    pub async fn nack(&self, receipt: &Receipt, nack: Nack) -> Result<Settled> {
        within("delay", nack.delay, Duration::ZERO, DELAY_MAX)?;
        let Nack { delay, error } = nack;
        self.one(receipt, Settle::GiveBack { delay, error: Some(error) }).await
    }

    /// Extends a lease again and again for as long as the guard lives: each time to this long from then.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when the time makes no sense.
    pub fn heartbeat(&self, receipt: &Receipt, visibility: Duration) -> Result<Heartbeat> {
        within("visibility", visibility, VISIBILITY_MIN, VISIBILITY_MAX)?;
        Ok(Heartbeat::start(Arc::clone(&self.core), receipt.clone(), visibility))
    }

    /// The first messages from the old end, whatever their state. They are not taken.
    ///
    /// # Errors
    /// As the store's.
    pub async fn peek(&self, max: usize) -> Result<Vec<Peeked>> {
        self.core.peek(max).await
    }

    /// The message of this id, if it is still there. It is not taken.
    ///
    /// # Errors
    /// As the store's.
    pub async fn get(&self, id: &MessageId) -> Result<Option<Peeked>> {
        self.core.get(id).await
    }

    /// How many messages there are. It reads the rows of all segments (64 messages each, at best), not their bodies.
    ///
    /// # Errors
    /// As the store's.
    pub async fn count(&self) -> Result<Count> {
        self.core.count_messages().await
    }

    /// What happened to this client's messages, in all processes: here up to now, elsewhere up to their last
    /// [`maintain`](Self::maintain).
    ///
    /// # Errors
    /// As the store's.
    pub async fn totals(&self) -> Result<Totals> {
        self.core.totals().await
    }

    /// Removes every message. One that is sent at the same time is removed or stays, whole.
    ///
    /// # Errors
    /// As the store's; then some may be removed and others not.
    pub async fn purge(&self) -> Result<usize> {
        self.core.purge().await
    }

    /// Brings messages of this dead-letter queue back to where they came from.
    ///
    /// # Errors
    /// [`QueueError::NotFound`] when there is no such queue any more; as the store's.
    pub async fn redrive(&self, how: &Redrive) -> Result<Redriven> {
        self.core.redrive(how).await
    }

    /// Lets a group go on that was blocked by a message that was received too often: that message is received anew,
    /// with its receives counted from 0. Returns how many messages were held.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when the queue is not strict.
    pub async fn unblock(&self, group: &str) -> Result<usize> {
        self.core.unblock(group).await
    }

    /// The status of a task, in a queue that keeps it.
    ///
    /// # Errors
    /// [`QueueError::Invalid`] when the queue does not.
    pub async fn status(&self, id: &MessageId) -> Result<Option<TaskStatus>> {
        self.core.status(id).await
    }

    /// Tasks in a state, by age: the oldest first, or the newest.
    ///
    /// # Errors
    /// As [`status`](Self::status).
    pub async fn tasks(
        &self,
        state: TaskState,
        newest_first: bool,
        max: usize,
    ) -> Result<Vec<TaskStatus>> {
        self.core.tasks(state, newest_first, max).await
    }

    /// Does a bounded part of what must be done now and then: removes what has ended, sheds what is too much, stores
    /// counters. Workers call it by themselves; without workers, call it every few seconds.
    ///
    /// # Errors
    /// As the store's.
    pub async fn maintain(&self) -> Result<Maintained> {
        self.core.maintain().await
    }

    /// Finds objects that no message names (of sends that never came to be), and removes them unless it is a dry run.
    /// Younger ones than an hour are left alone.
    ///
    /// # Errors
    /// As the store's and the object store's, and `Misconfigured` when there is no object store.
    pub async fn sweep(&self, dry_run: bool) -> Result<SweepReport> {
        self.core.sweep(dry_run).await
    }

    /// Stores what was counted here, as the last thing that a process does which lives only for a moment. Without it (or
    /// [`maintain`](Self::maintain)) that is lost; with it, what many such processes leave is joined at once, and not
    /// after a day.
    ///
    /// # Errors
    /// As the store's.
    pub async fn retire(&self) -> Result<()> {
        self.core.retire().await
    }

    async fn one(&self, receipt: &Receipt, what: Settle) -> Result<Settled> {
        let mut outcomes = self.core.settle(&[(receipt.clone(), what)]).await?;
        outcomes.pop().unwrap_or_else(|| Err(QueueError::invalid("receipt", "was not looked at")))
    }

    async fn all(&self, receipts: &[Receipt], what: &Settle) -> Result<Vec<Result<Settled>>> {
        let each: Vec<_> = receipts.iter().map(|one| (one.clone(), what.clone())).collect();
        self.core.settle(&each).await
    }
}

fn finish(success: bool, result: Bytes) -> Result<Settle> {
    QueueError::check_bytes("result", result.len(), RESULT_BYTES_MAX)?;
    Ok(Settle::Finish { success, result, in_time: false })
}
