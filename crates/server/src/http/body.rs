//! Reading a request's body: bounded in bytes and in time.

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use millpond_store::Clock;

use super::answer::Refusal;
use super::room::{Held, Room};
use crate::config::Limits;

/// Reads all of it. What comes with it counts its bytes until it is dropped.
pub async fn read(
    body: Incoming,
    limits: &Limits,
    room: &Room,
    clock: &dyn Clock,
) -> Result<(Bytes, Held), Refusal> {
    if body.is_end_stream() {
        return Ok((Bytes::new(), room.nothing()));
    }
    let most = limits.body_bytes_max;
    // A body that says that it is too large is not asked for.
    if body.size_hint().lower() > most as u64 {
        return Err(Refusal::TooLarge(most));
    }
    tokio::select! {
        biased;
        read = read_all(body, most, room) => read,
        () = clock.sleep(limits.body_timeout) => Err(Refusal::TooSlow),
    }
}

async fn read_all(mut body: Incoming, most: usize, room: &Room) -> Result<(Bytes, Held), Refusal> {
    let mut held = room.nothing();
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Refusal::Broken)?;
        // Trailers say nothing that anybody here wants to know.
        let Ok(data) = frame.into_data() else { continue };
        let so_far = first.len() + rest.len() + data.len();
        if so_far > most {
            return Err(Refusal::TooLarge(most));
        }
        room.hold(&mut held, so_far)?;
        // Most bodies come in one piece, which need not be copied.
        if first.is_empty() && rest.is_empty() {
            first = data;
            continue;
        }
        if rest.is_empty() {
            rest.extend_from_slice(&std::mem::take(&mut first));
        }
        rest.extend_from_slice(&data);
    }
    Ok((if rest.is_empty() { first } else { rest.freeze() }, held))
}
