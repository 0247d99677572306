//! RabbitMQ: a quorum queue, confirms for publishers, consumers that are pushed to and acknowledge ten at a time.

use std::pin::pin;
use std::time::Duration;

use anyhow::{Result, ensure};
use futures::{FutureExt, StreamExt};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, QueueDeclareOptions,
};
use lapin::types::{AMQPValue, FieldTable};
use lapin::{BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer};

/// Messages that the server sends ahead: two batches, so that one is on its way while the other is worked on.
const AHEAD: u16 = 20;

/// How long a caller waits for the first message.
const WAIT: Duration = Duration::from_millis(20);

/// Deliveries stay in files.
const PERSISTENT: u8 = 2;

pub struct Server {
    uri: String,
    queue: String,
}

impl Server {
    pub fn new(address: &str) -> Self {
        let queue = format!("bench-{}", std::process::id());
        Self { uri: format!("amqp://guest:guest@{address}/%2f"), queue }
    }

    async fn connect(&self) -> Result<(Connection, Channel)> {
        let connection = Connection::connect(&self.uri, ConnectionProperties::default()).await?;
        let channel = connection.create_channel().await?;
        Ok((connection, channel))
    }
}

impl crate::link::Server for Server {
    type Link = Link;

    async fn prepare(&mut self) -> Result<()> {
        let (connection, channel) = self.connect().await?;
        let mut arguments = FieldTable::default();
        arguments.insert("x-queue-type".into(), AMQPValue::LongString("quorum".into()));
        let options = QueueDeclareOptions { durable: true, ..Default::default() };
        channel.queue_declare(self.queue.as_str().into(), options, arguments).await?;
        Ok(connection.close(200, "done".into()).await?)
    }

    async fn link(&self) -> Result<Link> {
        let (connection, channel) = self.connect().await?;
        channel.confirm_select(ConfirmSelectOptions::default()).await?;
        channel.basic_qos(AHEAD, BasicQosOptions::default()).await?;
        Ok(Link { connection, channel, queue: self.queue.clone(), consumer: None })
    }

    async fn left(&self) -> Result<u64> {
        let (connection, channel) = self.connect().await?;
        let options = QueueDeclareOptions { passive: true, ..Default::default() };
        let queue = self.queue.as_str().into();
        let queue = channel.queue_declare(queue, options, FieldTable::default()).await?;
        connection.close(200, "done".into()).await?;
        Ok(u64::from(queue.message_count()))
    }
}

pub struct Link {
    connection: Connection,
    channel: Channel,
    queue: String,
    /// From the first receive on: a connection that only sends is not sent anything.
    consumer: Option<Consumer>,
}

impl crate::link::Link for Link {
    type Receipt = u64;

    async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<()> {
        let mut confirms = Vec::with_capacity(bodies.len());
        for body in &bodies {
            let properties = BasicProperties::default().with_delivery_mode(PERSISTENT);
            let options = BasicPublishOptions::default();
            let key = self.queue.as_str().into();
            confirms
                .push(self.channel.basic_publish("".into(), key, options, body, properties).await?);
        }
        for confirm in confirms {
            let confirm = confirm.await?;
            ensure!(matches!(confirm, Confirmation::Ack(None)), "not confirmed: {confirm:?}");
        }
        Ok(())
    }

    async fn receive(&mut self, max: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        if self.consumer.is_none() {
            let (queue, options) = (self.queue.as_str().into(), BasicConsumeOptions::default());
            let arguments = FieldTable::default();
            let consumer = self.channel.basic_consume(queue, "".into(), options, arguments).await?;
            self.consumer = Some(consumer);
        }
        let Some(consumer) = &mut self.consumer else { return Ok(Vec::new()) };
        let mut got = Vec::with_capacity(max);
        let mut first = tokio::time::timeout(WAIT, consumer.next()).await.ok().flatten();
        while let Some(delivery) = first.take() {
            let delivery = delivery?;
            got.push((delivery.delivery_tag, delivery.data.to_vec()));
            if got.len() < max {
                // What is here already; then the batch is what it is.
                first = pin!(consumer.next()).now_or_never().flatten();
            }
        }
        Ok(got)
    }

    /// One frame for all up to the last. The protocol has no answer to it.
    async fn ack(&mut self, receipts: Vec<u64>) -> Result<()> {
        let Some(last) = receipts.into_iter().max() else { return Ok(()) };
        self.channel.basic_ack(last, BasicAckOptions { multiple: true }).await?;
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(self.connection.close(200, "done".into()).await?)
    }
}
