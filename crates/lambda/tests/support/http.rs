//! As much of an HTTP server as tests need.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub body: Vec<u8>,
}

#[derive(Debug, Clone, Default)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Response {
    pub fn json(status: u16, body: &serde_json::Value) -> Self {
        let headers = vec![("content-type", "application/json".to_owned())];
        Self { status, headers, body: body.to_string().into() }
    }
}

/// A server that stops when it is dropped.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Server {
    /// Answers every request with what `handler` says, when it says so.
    pub async fn start<F, R>(handler: F) -> Self
    where
        F: Fn(Request) -> R + Send + Sync + 'static,
        R: Future<Output = Response> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let handler = Arc::new(handler);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let handler = Arc::clone(&handler);
                // A client that goes away ends its connection and nothing else.
                tokio::spawn(async move {
                    let _ = connection(stream, handler.as_ref()).await;
                });
            }
        });
        Self { address, task }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn connection<F, R>(stream: TcpStream, handler: &F) -> std::io::Result<()>
where
    F: Fn(Request) -> R,
    R: Future<Output = Response>,
{
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await? {
        let response = handler(request).await;
        let mut head = format!("HTTP/1.1 {} X\r\n", response.status);
        for (name, value) in &response.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", response.body.len()));
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&response.body).await?;
        stream.flush().await?;
    }
    Ok(())
}

async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Request>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let header = |name: &str| {
        lines.iter().skip(1).find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
        })
    };
    let body = if header("transfer-encoding").is_some_and(|coding| coding == "chunked") {
        chunks(stream).await?
    } else {
        let mut body = vec![0; header("content-length").map_or(0, |text| text.parse().unwrap())];
        stream.read_exact(&mut body).await?;
        body
    };
    let mut words = lines.first().map_or("", String::as_str).split(' ');
    let mut word = || words.next().unwrap_or_default().to_owned();
    Ok(Some(Request { method: word(), path: word(), body }))
}

async fn chunks(stream: &mut BufReader<TcpStream>) -> std::io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let size = usize::from_str_radix(line.trim(), 16).unwrap();
        let mut chunk = vec![0; size + 2];
        stream.read_exact(&mut chunk).await?;
        if size == 0 {
            return Ok(body);
        }
        body.extend_from_slice(&chunk[..size]);
    }
}
