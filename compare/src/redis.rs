//! Redis streams: a consumer group; a message that is acknowledged is also deleted.

use anyhow::{Result, ensure};
use redis::aio::MultiplexedConnection;
use redis::streams::StreamReadReply;
use redis::{AsyncCommands, Client, Value, cmd, pipe};

const GROUP: &str = "workers";
const FIELD: &str = "body";

pub struct Server {
    url: String,
    stream: String,
}

impl Server {
    pub fn new(address: &str) -> Self {
        let stream = format!("bench-{}", std::process::id());
        Self { url: format!("redis://{address}/"), stream }
    }

    async fn connect(&self) -> Result<MultiplexedConnection> {
        Ok(Client::open(self.url.as_str())?.get_multiplexed_async_connection().await?)
    }
}

impl crate::link::Server for Server {
    type Link = Link;

    async fn prepare(&mut self) -> Result<()> {
        let mut connection = self.connect().await?;
        let mut create = cmd("XGROUP");
        create.arg("CREATE").arg(&self.stream).arg(GROUP).arg("$").arg("MKSTREAM");
        Ok(create.query_async(&mut connection).await?)
    }

    async fn link(&self) -> Result<Link> {
        let mut connection = self.connect().await?;
        let id: u64 = cmd("CLIENT").arg("ID").query_async(&mut connection).await?;
        Ok(Link { connection, stream: self.stream.clone(), name: format!("caller-{id}") })
    }

    async fn left(&self) -> Result<u64> {
        Ok(self.connect().await?.xlen(&self.stream).await?)
    }
}

pub struct Link {
    connection: MultiplexedConnection,
    stream: String,
    name: String,
}

impl crate::link::Link for Link {
    type Receipt = String;

    async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<()> {
        let mut pipe = pipe();
        for body in &bodies {
            pipe.cmd("XADD").arg(&self.stream).arg("*").arg(FIELD).arg(body);
        }
        let ids: Vec<String> = pipe.query_async(&mut self.connection).await?;
        ensure!(ids.len() == bodies.len(), "not all were added");
        Ok(())
    }

    async fn receive(&mut self, max: usize) -> Result<Vec<(String, Vec<u8>)>> {
        let mut read = cmd("XREADGROUP");
        read.arg("GROUP").arg(GROUP).arg(&self.name).arg("COUNT").arg(max);
        read.arg("STREAMS").arg(&self.stream).arg(">");
        let reply: Option<StreamReadReply> = read.query_async(&mut self.connection).await?;
        let entries = reply.into_iter().flat_map(|reply| reply.keys).flat_map(|key| key.ids);
        let mut got = Vec::with_capacity(max);
        for mut entry in entries {
            let Some(Value::BulkString(body)) = entry.map.remove(FIELD) else { continue };
            got.push((entry.id, body));
        }
        Ok(got)
    }

    async fn ack(&mut self, receipts: Vec<String>) -> Result<()> {
        let mut pipe = pipe();
        pipe.cmd("XACK").arg(&self.stream).arg(GROUP).arg(&receipts);
        pipe.cmd("XDEL").arg(&self.stream).arg(&receipts);
        let (acked, deleted): (usize, usize) = pipe.query_async(&mut self.connection).await?;
        ensure!((acked, deleted) == (receipts.len(), receipts.len()), "not all were acknowledged");
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }
}
