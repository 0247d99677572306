//! What a load needs of a server.

use std::future::Future;

use anyhow::Result;

/// A server with one queue, which is made anew.
pub trait Server: Send + Sync + 'static {
    /// A connection to it.
    type Link: Link;

    /// Makes the queue, empty.
    fn prepare(&mut self) -> impl Future<Output = Result<()>> + Send;

    /// Opens a connection.
    fn link(&self) -> impl Future<Output = Result<Self::Link>> + Send;

    /// How many messages are in the queue, waiting or in work, when all links are closed.
    fn left(&self) -> impl Future<Output = Result<u64>> + Send;
}

/// A connection of one caller.
pub trait Link: Send + 'static {
    /// What acknowledges a message.
    type Receipt: Send;

    /// Sends messages; returns when the server has confirmed each of them.
    fn send(&mut self, bodies: Vec<Vec<u8>>) -> impl Future<Output = Result<()>> + Send;

    /// Takes up to so many messages; none if there are none just now.
    fn receive(
        &mut self,
        max: usize,
    ) -> impl Future<Output = Result<Vec<(Self::Receipt, Vec<u8>)>>> + Send;

    /// Acknowledges messages; returns when the server has confirmed it, where the protocol has a confirmation.
    fn ack(&mut self, receipts: Vec<Self::Receipt>) -> impl Future<Output = Result<()>> + Send;

    /// Closes the connection: what it has taken and not acknowledged goes back.
    fn close(self) -> impl Future<Output = Result<()>> + Send;
}
