//! A proxy between a client and the engine that does harm on request, over plain TCP.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What happens to one request.
#[derive(Clone, Debug)]
pub enum Fault {
    /// It goes through.
    None,
    /// It is answered with this error and never forwarded.
    Answer(u16, Value),
    /// It is forwarded, and answered with this error all the same.
    ForwardThenAnswer(u16, Value),
    /// The connection is closed before it is forwarded.
    DropBefore,
    /// It is forwarded, and the connection closed instead of answered.
    DropAfter,
    /// It is never answered, nor forwarded.
    Hang,
    /// The last so many writes of a batch are left unprocessed.
    Unprocessed(usize),
}

impl Fault {
    /// An error as the service words it.
    pub fn error(status: u16, code: &str) -> Self {
        Self::Answer(status, error_body(code))
    }
}

pub fn error_body(code: &str) -> Value {
    json!({
        "__type": format!("com.amazonaws.dynamodb.v20120810#{code}"),
        "message": format!("{code}, said the proxy"),
    })
}

#[derive(Default)]
struct State {
    script: VecDeque<Fault>,
    /// Every request: its action and its body.
    seen: Vec<(String, Value)>,
    /// Every answer of the engine.
    answers: Vec<Value>,
}

pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    task: JoinHandle<()>,
}

impl Proxy {
    pub async fn start(upstream: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::<Mutex<State>>::default();
        let task = tokio::spawn({
            let state = Arc::clone(&state);
            async move {
                while let Ok((client, _)) = listener.accept().await {
                    let state = Arc::clone(&state);
                    tokio::spawn(async move {
                        // A client that goes away is no concern of the proxy.
                        let _ = serve(client, upstream, &state).await;
                    });
                }
            }
        });
        Self { address, state, task }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn script(&self, faults: impl IntoIterator<Item = Fault>) {
        self.state.lock().unwrap().script.extend(faults);
    }

    /// What of the script is left.
    pub fn left(&self) -> usize {
        self.state.lock().unwrap().script.len()
    }

    /// The actions asked for since the last look.
    pub fn actions(&self) -> Vec<String> {
        self.requests().into_iter().map(|(action, _)| action).collect()
    }

    /// The requests since the last look.
    pub fn requests(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.state.lock().unwrap().seen)
    }

    /// The engine's answers since the last look.
    pub fn answers(&self) -> Vec<Value> {
        std::mem::take(&mut self.state.lock().unwrap().answers)
    }

    pub fn forget(&self) {
        let _ = (self.requests(), self.answers());
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A message of HTTP/1.1: its head, line by line, and its body.
struct Message {
    head: Vec<String>,
    body: Vec<u8>,
}

impl Message {
    async fn read(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<Self>> {
        let mut head = Vec::new();
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await? == 0 {
                return Ok(None);
            }
            let line = line.trim_end().to_owned();
            if line.is_empty() {
                break;
            }
            head.push(line);
        }
        let mut message = Self { head, body: Vec::new() };
        let length = message.header("content-length").map_or(0, |text| text.parse().unwrap());
        message.body.resize(length, 0);
        stream.read_exact(&mut message.body).await?;
        Ok(Some(message))
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find_map(|line| {
            let (known, value) = line.split_once(':')?;
            known.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    fn action(&self) -> String {
        let target = self.header("x-amz-target").unwrap_or_default();
        target.rsplit('.').next().unwrap_or_default().to_owned()
    }

    fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_default()
    }

    fn set_json(&mut self, value: &Value) {
        self.body = value.to_string().into_bytes();
    }

    async fn write(&self, stream: &mut BufReader<TcpStream>) -> std::io::Result<()> {
        let mut bytes = Vec::new();
        for line in &self.head {
            // The length may have changed, and the checksum with it.
            let name = line.split(':').next().unwrap_or_default().to_ascii_lowercase();
            if name != "content-length" && name != "x-amz-crc32" {
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
        }
        bytes.extend_from_slice(format!("content-length: {}\r\n\r\n", self.body.len()).as_bytes());
        bytes.extend_from_slice(&self.body);
        stream.get_mut().write_all(&bytes).await
    }
}

async fn serve(
    client: TcpStream,
    upstream: SocketAddr,
    state: &Mutex<State>,
) -> std::io::Result<()> {
    let mut client = BufReader::new(client);
    let mut engine = BufReader::new(TcpStream::connect(upstream).await?);
    while let Some(mut request) = Message::read(&mut client).await? {
        let fault = {
            let mut state = state.lock().unwrap();
            state.seen.push((request.action(), request.json()));
            state.script.pop_front().unwrap_or(Fault::None)
        };
        match fault {
            Fault::None => {
                let reply = pass(&request, &mut engine).await?;
                state.lock().unwrap().answers.push(reply.json());
                reply.write(&mut client).await?;
            }
            Fault::Answer(status, body) => answer(status, &body).write(&mut client).await?,
            Fault::ForwardThenAnswer(status, body) => {
                pass(&request, &mut engine).await?;
                answer(status, &body).write(&mut client).await?;
            }
            Fault::DropBefore => return Ok(()),
            Fault::DropAfter => {
                pass(&request, &mut engine).await?;
                return Ok(());
            }
            Fault::Hang => std::future::pending().await,
            Fault::Unprocessed(count) => {
                let left = leave_out(&mut request, count);
                if request.json()["RequestItems"].as_object().is_none_or(serde_json::Map::is_empty)
                {
                    answer(200, &json!({ "UnprocessedItems": left })).write(&mut client).await?;
                    continue;
                }
                let mut reply = pass(&request, &mut engine).await?;
                let mut body = reply.json();
                body["UnprocessedItems"] = left;
                reply.set_json(&body);
                reply.write(&mut client).await?;
            }
        }
    }
    Ok(())
}

async fn pass(request: &Message, engine: &mut BufReader<TcpStream>) -> std::io::Result<Message> {
    request.write(engine).await?;
    let reply = Message::read(engine).await?;
    reply.ok_or_else(|| std::io::Error::other("the engine closed the connection"))
}

fn answer(status: u16, body: &Value) -> Message {
    let head = vec![
        format!("HTTP/1.1 {status} Because"),
        "content-type: application/x-amz-json-1.0".to_owned(),
    ];
    Message { head, body: body.to_string().into_bytes() }
}

/// Takes the last `count` writes out of a batch and returns them, by table.
fn leave_out(request: &mut Message, count: usize) -> Value {
    let mut body = request.json();
    let mut left = json!({});
    for (table, writes) in body["RequestItems"].as_object_mut().unwrap() {
        let writes = writes.as_array_mut().unwrap();
        let kept = writes.len() - count;
        left[table] = writes.split_off(kept).into();
    }
    let tables = body["RequestItems"].as_object_mut().unwrap();
    tables.retain(|_, writes| writes.as_array().is_some_and(|writes| !writes.is_empty()));
    request.set_json(&body);
    left
}
