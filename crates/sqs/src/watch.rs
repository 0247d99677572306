//! Whoever wants to know where a request's time goes.

use futures::future::BoxFuture;

/// A part of a request that may take its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// A receive waits for messages.
    Wait,
    /// Messages are being stored, together with those of others.
    Commit,
}

/// Told what a request is about and where its time goes, for traces. It is told nothing of what messages say.
///
/// Put an `Arc<dyn Watch>` into the extensions of a request before [`Sqs::handle`](crate::Sqs::handle) gets it; nothing
/// is done for a request without one.
pub trait Watch: Send + Sync {
    /// What the request asks for, once that is understood.
    fn action(&self, name: &'static str);

    /// Which queue it is about.
    fn queue(&self, name: &str);

    /// How many messages it brings, or gets.
    fn messages(&self, count: usize);

    /// A message that it gets was sent with this `AWSTraceHeader`.
    fn trace_header(&self, header: &str);

    /// A part begins. Parts do not overlap.
    fn began(&self, part: Part);

    /// The part ends. It does not when the client hangs up meanwhile.
    fn ended(&self, part: Part);

    /// The request is refused with this code.
    fn refused(&self, code: &'static str);

    /// Work for the request that goes on in a task of its own: whoever keeps something with the task can take it along.
    fn carry(&self, work: BoxFuture<'static, ()>) -> BoxFuture<'static, ()> {
        work
    }
}
