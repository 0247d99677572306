//! Who is compared, and what each server's answer is worth.

use anyhow::Result;

use super::loads::Clients;
use super::running::Running;
use super::start::{
    Site, beanstalkd, elasticmq, elasticmq_h2, millpond, moto, nats, postgres, rabbitmq, redis,
};

/// The one that others are compared with.
pub(super) const MILLPOND: &str = "millpond";

/// A server.
pub(super) struct Contender {
    pub(super) name: &'static str,
    pub(super) client: Client,
    /// Whether what it has answered is on disk.
    pub(super) durable: bool,
    /// What an answer to a send means, and to an acknowledgement.
    pub(super) answer: &'static str,
    /// The share of the messages that it gets, so that slow servers do not take all the time.
    pub(super) percent: u64,
    pub(super) start: fn(&Site<'_>, &Clients<'_>) -> Result<Running>,
}

/// What loads it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Client {
    /// `millpond bench --endpoint`.
    Sqs,
    /// The client of this name in `compare/`.
    Own(&'static str),
}

pub(super) const CONTENDERS: &[Contender] = &[
    Contender {
        name: MILLPOND,
        client: Client::Sqs,
        durable: true,
        answer: "send, receive and delete are flushed to disk, many requests in one flush",
        percent: 100,
        start: millpond,
    },
    Contender {
        name: "elasticmq",
        client: Client::Sqs,
        durable: false,
        answer: "in memory only",
        percent: 100,
        start: elasticmq,
    },
    Contender {
        name: "elasticmq-h2",
        client: Client::Sqs,
        durable: false,
        answer: "given to the H2 database, which flushes later",
        percent: 30,
        start: elasticmq_h2,
    },
    Contender {
        name: "moto",
        client: Client::Sqs,
        durable: false,
        answer: "in memory only",
        percent: 5,
        start: moto,
    },
    Contender {
        name: "nats",
        client: Client::Own("nats"),
        durable: true,
        answer: "a send is flushed (sync_interval: always); that a message was acknowledged is flushed later",
        percent: 100,
        start: nats,
    },
    Contender {
        name: "rabbitmq",
        client: Client::Own("rabbitmq"),
        durable: true,
        answer: "a send is flushed (quorum queue of one node, confirms); an acknowledgement has no answer",
        percent: 100,
        start: rabbitmq,
    },
    Contender {
        name: "redis",
        client: Client::Own("redis"),
        durable: true,
        answer: "send, receive and acknowledgement are flushed (appendfsync always); all messages are in memory",
        percent: 100,
        start: redis,
    },
    Contender {
        name: "postgres",
        client: Client::Own("postgres"),
        durable: true,
        answer: "a commit is flushed (synchronous_commit on); a receive is an open transaction that deletes, \
                 lost with its connection",
        percent: 100,
        start: postgres,
    },
    Contender {
        name: "postgres-lease",
        client: Client::Own("postgres-lease"),
        durable: true,
        answer: "send, receive and delete are each a commit that is flushed",
        percent: 100,
        start: postgres,
    },
    Contender {
        name: "beanstalkd",
        client: Client::Own("beanstalkd"),
        durable: true,
        answer: "a send and a delete are flushed, each alone (-f 0); all messages are in memory",
        percent: 100,
        start: beanstalkd,
    },
];

/// Servers that should be here and cannot be had as packages that run by themselves.
pub(super) const NOT_COMPARED: &[(&str, &str)] = &[
    ("goaws", "the Go module proxy does not offer its module"),
    ("smoothmq", "the Go module proxy does not offer its module"),
    (
        "localstack",
        "it does not start from its Python package alone: localstack-core finds no plugins and ends",
    ),
];
