//! NATS JetStream: a stream in files with the policy of a work queue, and one pull consumer that all callers share.

use anyhow::{Context, Result, anyhow};
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, StorageType};
use async_nats::jetstream::{self, Message};
use futures::StreamExt;
use futures::future::try_join_all;

const CONSUMER: &str = "workers";

pub struct Server {
    address: String,
    stream: String,
}

impl Server {
    pub fn new(address: &str) -> Self {
        let stream = format!("bench-{}", std::process::id());
        Self { address: format!("nats://{address}"), stream }
    }

    async fn connect(&self) -> Result<jetstream::Context> {
        Ok(jetstream::new(async_nats::connect(&self.address).await?))
    }
}

impl crate::link::Server for Server {
    type Link = Link;

    async fn prepare(&mut self) -> Result<()> {
        let config = Config {
            name: self.stream.clone(),
            subjects: vec![self.stream.clone()],
            retention: RetentionPolicy::WorkQueue,
            storage: StorageType::File,
            ..Default::default()
        };
        let stream = self.connect().await?.create_stream(config).await?;
        let config = pull::Config {
            durable_name: Some(CONSUMER.to_owned()),
            ack_policy: AckPolicy::Explicit,
            max_ack_pending: 100_000,
            ..Default::default()
        };
        stream.create_consumer(config).await?;
        Ok(())
    }

    async fn link(&self) -> Result<Link> {
        let context = self.connect().await?;
        let stream = context.get_stream(&self.stream).await?;
        let consumer = stream.get_consumer(CONSUMER).await.map_err(|error| anyhow!(error))?;
        Ok(Link { context, consumer, subject: self.stream.clone() })
    }

    async fn left(&self) -> Result<u64> {
        let mut stream = self.connect().await?.get_stream(&self.stream).await?;
        Ok(stream.info().await.context("no information")?.state.messages)
    }
}

pub struct Link {
    context: jetstream::Context,
    consumer: PullConsumer,
    subject: String,
}

impl crate::link::Link for Link {
    type Receipt = Message;

    async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<()> {
        let mut answers = Vec::with_capacity(bodies.len());
        for body in bodies {
            answers.push(self.context.publish(self.subject.clone(), body.into()).await?);
        }
        for answer in answers {
            answer.await?;
        }
        Ok(())
    }

    async fn receive(&mut self, max: usize) -> Result<Vec<(Message, Vec<u8>)>> {
        let batch = self.consumer.fetch().max_messages(max).messages().await?;
        let messages: Vec<_> = batch.collect().await;
        let each = messages.into_iter().map(|message| {
            let message = message.map_err(|error| anyhow!(error))?;
            let body = message.payload.to_vec();
            Ok((message, body))
        });
        each.collect()
    }

    /// All at once, each with an answer.
    async fn ack(&mut self, receipts: Vec<Message>) -> Result<()> {
        let acks = receipts.iter().map(Message::double_ack);
        try_join_all(acks).await.map_err(|error| anyhow!(error))?;
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(self.context.client().drain().await?)
    }
}
