//! beanstalkd: a protocol of lines. A batch is so many commands in one write; the answers come in order.

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpStream;

/// Seconds that a reserved job is left to its worker.
const TIME_TO_RUN: u32 = 120;

pub struct Server {
    address: String,
    tube: String,
}

impl Server {
    pub fn new(address: &str) -> Self {
        Self { address: address.to_owned(), tube: format!("bench-{}", std::process::id()) }
    }
}

impl crate::link::Server for Server {
    type Link = Link;

    /// A tube exists as soon as it is used; this one has a new name.
    async fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    async fn link(&self) -> Result<Link> {
        let stream = TcpStream::connect(&self.address).await?;
        stream.set_nodelay(true)?;
        let mut link = Link(BufStream::new(stream));
        link.ask(&format!("use {}\r\n", self.tube)).await?;
        link.ask(&format!("watch {}\r\n", self.tube)).await?;
        link.ask("ignore default\r\n").await?;
        Ok(link)
    }

    async fn left(&self) -> Result<u64> {
        let mut link = self.link().await?;
        let answer = link.ask(&format!("stats-tube {}\r\n", self.tube)).await?;
        if answer == "NOT_FOUND" {
            return Ok(0);
        }
        let bytes = answer.strip_prefix("OK ").context("no statistics")?.parse()?;
        let text = String::from_utf8(link.body(bytes).await?)?;
        let count = |name: &str| -> Result<u64> {
            let line = text.lines().find_map(|line| line.strip_prefix(name));
            Ok(line.with_context(|| format!("no {name} in the statistics"))?.trim().parse()?)
        };
        Ok(count("current-jobs-ready:")? + count("current-jobs-reserved:")?)
    }
}

pub struct Link(BufStream<TcpStream>);

impl Link {
    async fn ask(&mut self, command: &str) -> Result<String> {
        self.0.write_all(command.as_bytes()).await?;
        self.0.flush().await?;
        self.line().await
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        ensure!(self.0.read_line(&mut line).await? > 0, "the connection was closed");
        Ok(line.trim_end().to_owned())
    }

    async fn body(&mut self, bytes: usize) -> Result<Vec<u8>> {
        let mut body = vec![0; bytes + 2];
        self.0.read_exact(&mut body).await?;
        body.truncate(bytes);
        Ok(body)
    }
}

impl crate::link::Link for Link {
    type Receipt = u64;

    async fn send(&mut self, bodies: Vec<Vec<u8>>) -> Result<()> {
        for body in &bodies {
            let head = format!("put 0 0 {TIME_TO_RUN} {}\r\n", body.len());
            self.0.write_all(head.as_bytes()).await?;
            self.0.write_all(body).await?;
            self.0.write_all(b"\r\n").await?;
        }
        self.0.flush().await?;
        for _ in &bodies {
            let answer = self.line().await?;
            ensure!(answer.starts_with("INSERTED "), "put: {answer}");
        }
        Ok(())
    }

    async fn receive(&mut self, max: usize) -> Result<Vec<(u64, Vec<u8>)>> {
        for _ in 0..max {
            self.0.write_all(b"reserve-with-timeout 0\r\n").await?;
        }
        self.0.flush().await?;
        let mut jobs = Vec::with_capacity(max);
        for _ in 0..max {
            let answer = self.line().await?;
            let words: Vec<&str> = answer.split(' ').collect();
            match words[..] {
                ["RESERVED", id, bytes] => {
                    jobs.push((id.parse()?, self.body(bytes.parse()?).await?));
                }
                ["TIMED_OUT"] => {}
                _ => bail!("reserve: {answer}"),
            }
        }
        Ok(jobs)
    }

    async fn ack(&mut self, receipts: Vec<u64>) -> Result<()> {
        for id in &receipts {
            self.0.write_all(format!("delete {id}\r\n").as_bytes()).await?;
        }
        self.0.flush().await?;
        for _ in &receipts {
            let answer = self.line().await?;
            ensure!(answer == "DELETED", "delete: {answer}");
        }
        Ok(())
    }

    async fn close(mut self) -> Result<()> {
        Ok(self.0.shutdown().await?)
    }
}
