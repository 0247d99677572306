//! PostgreSQL: a table as a queue, with `FOR UPDATE SKIP LOCKED`, in its two usual forms.

use anyhow::{Result, ensure};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Statement};

/// A worker holds its rows by the transaction that deletes them, open while it works.
const TAKE_HELD: &str = "DELETE FROM bench WHERE id IN (SELECT id FROM bench ORDER BY id \
    LIMIT $1 FOR UPDATE SKIP LOCKED) RETURNING id, body";

/// A worker has its rows until a time: nothing is open while it works, and others see what is in work.
const TAKE_LEASED: &str = "UPDATE bench SET leased_until = now() + interval '30 s' WHERE id IN \
    (SELECT id FROM bench WHERE leased_until <= now() ORDER BY id LIMIT $1 FOR UPDATE SKIP LOCKED) \
    RETURNING id, body";

const PREPARE: &str = "DROP TABLE IF EXISTS bench; CREATE TABLE bench (id bigserial PRIMARY KEY, \
    leased_until timestamptz NOT NULL DEFAULT '-infinity', body bytea NOT NULL)";

pub struct Server {
    address: String,
    held: bool,
}

impl Server {
    /// The first form.
    pub fn held(address: &str) -> Self {
        Self { address: address.to_owned(), held: true }
    }

    /// The second form.
    pub fn leased(address: &str) -> Self {
        Self { address: address.to_owned(), held: false }
    }

    async fn connect(&self) -> Result<Client> {
        let url = format!("postgres://bench@{}/postgres", self.address);
        let (client, connection) = tokio_postgres::connect(&url, NoTls).await?;
        // It ends with the client.
        tokio::spawn(connection);
        Ok(client)
    }
}

impl crate::link::Server for Server {
    type Link = Link;

    async fn prepare(&mut self) -> Result<()> {
        Ok(self.connect().await?.batch_execute(PREPARE).await?)
    }

    async fn link(&self) -> Result<Link> {
        let client = self.connect().await?;
        let send = "INSERT INTO bench (body) SELECT unnest($1::bytea[])";
        let send = client.prepare(send).await?;
        let take = client.prepare(if self.held { TAKE_HELD } else { TAKE_LEASED }).await?;
        let delete = client.prepare("DELETE FROM bench WHERE id = ANY($1)").await?;
        Ok(Link { client, send, take, delete, held: self.held })
    }

    async fn left(&self) -> Result<u64> {
        let row = self.connect().await?.query_one("SELECT count(*) FROM bench", &[]).await?;
        Ok(row.try_get::<_, i64>(0)?.try_into()?)
    }
}

pub struct Link {
    client: Client,
    send: Statement,
    take: Statement,
    delete: Statement,
    held: bool,
}

impl crate::link::Link for Link {
    type Receipt = i64;

    async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<()> {
        let rows = self.client.execute(&self.send, &[&bodies]).await?;
        ensure!(rows == bodies.len() as u64, "{rows} rows were inserted");
        Ok(())
    }

    async fn receive(&mut self, max: usize) -> Result<Vec<(i64, Vec<u8>)>> {
        let max = i64::try_from(max)?;
        let rows = if self.held {
            // Both are on their way at once.
            let begin = self.client.batch_execute("BEGIN");
            let wanted: [&(dyn ToSql + Sync); 1] = [&max];
            let rows = self.client.query(&self.take, &wanted);
            let (begun, rows) = tokio::join!(begin, rows);
            begun?;
            rows?
        } else {
            self.client.query(&self.take, &[&max]).await?
        };
        if self.held && rows.is_empty() {
            self.client.batch_execute("COMMIT").await?;
        }
        rows.iter().map(|row| Ok((row.try_get(0)?, row.try_get(1)?))).collect()
    }

    async fn ack(&mut self, receipts: Vec<i64>) -> Result<()> {
        if self.held {
            return Ok(self.client.batch_execute("COMMIT").await?);
        }
        let rows = self.client.execute(&self.delete, &[&receipts]).await?;
        ensure!(rows == receipts.len() as u64, "{rows} rows were deleted");
        Ok(())
    }

    async fn close(self) -> Result<()> {
        Ok(())
    }
}
