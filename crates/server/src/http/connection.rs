//! One connection, from its first byte to its last.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;

use http::{Request, Version};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::watch;

use super::front::{Front, Inside};
use super::limits::{
    CONNECTION_WINDOW_BYTES, HANDSHAKE_TIMEOUT, HEAD_BYTES_MAX, HEAD_BYTES_MAX_H2,
    STREAM_WINDOW_BYTES, STREAMS_MAX,
};
use super::pulse::Pulse;
use super::tls::Tls;
use super::watched::Watched;

/// Serves a connection until it ends, is late with something, or the server stops.
pub async fn serve(
    inside: Arc<Inside>,
    stream: TcpStream,
    peer: SocketAddr,
    tls: Option<Tls>,
    stop: watch::Receiver<bool>,
) {
    // Answers are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let Some(tls) = tls else {
        return exchange(inside, stream, peer, false, stop).await;
    };
    let handshake = tls.accept(stream);
    let shaken = tokio::select! {
        biased;
        shaken = handshake => shaken,
        () = inside.clock.sleep(HANDSHAKE_TIMEOUT) => {
            return inside.metrics.dropped("slow_handshake");
        }
    };
    match shaken {
        Ok(stream) => Box::pin(exchange(inside, stream, peer, true, stop)).await,
        Err(error) => {
            tracing::debug!(%peer, %error, "TLS handshake failed");
            inside.metrics.dropped("handshake");
        }
    }
}

async fn exchange<S>(
    inside: Arc<Inside>,
    stream: S,
    peer: SocketAddr,
    tls: bool,
    mut stop: watch::Receiver<bool>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let pulse = Pulse::new(&inside.clock);
    let front = Front { inside: Arc::clone(&inside), peer, tls };
    let service = service_fn({
        let pulse = Arc::clone(&pulse);
        move |request: Request<Incoming>| {
            let (front, in_work) = (front.clone(), pulse.request());
            let has_windows = request.version() == Version::HTTP_2;
            async move {
                let answer = front.answer(request).await;
                let watched = |body| Full::new(in_work.answered(body, has_windows));
                Ok::<_, Infallible>(answer.map(watched))
            }
        }
    });
    let builder = builder();
    let stream = TokioIo::new(Watched::new(stream, Arc::clone(&pulse)));
    let mut connection = pin!(builder.serve_connection(stream, service));
    let mut watch = pin!(pulse.watch(&inside.limits));
    let mut stopping = false;
    loop {
        tokio::select! {
            biased;
            outcome = connection.as_mut() => {
                if let Err(error) = outcome {
                    tracing::debug!(%peer, %error, "connection failed");
                }
                return;
            }
            late = watch.as_mut() => {
                tracing::debug!(%peer, why = late.name(), "connection ended");
                return inside.metrics.dropped(late.name());
            }
            // An error means that the server is gone, which is a stop as well.
            _ = stop.wait_for(|stop| *stop), if !stopping => {
                stopping = true;
                connection.as_mut().graceful_shutdown();
            }
        }
    }
}

fn builder() -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // The pulse watches heads, and knows an idle connection from a slow one.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(HEAD_BYTES_MAX_H2)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES);
    builder
}
