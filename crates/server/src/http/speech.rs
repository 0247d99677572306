//! What a connection speaks, by what comes in on it, and whether a head is halfway there.

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Every frame of HTTP/2 begins with its length (3 bytes), kind, flags and stream (4 bytes).
const FRAME_HEAD_BYTES: usize = 9;
const HEADERS: u8 = 0x1;
const CONTINUATION: u8 = 0x9;
const END_HEADERS: u8 = 0x4;

/// What is spoken.
#[derive(Debug)]
pub enum Speech {
    /// So many bytes came, and all of them are those that HTTP/2 begins with.
    Unknown(usize),
    Http1,
    Http2(Frames),
}

/// How far the frames have come. Heads of requests are not read here, only where they begin and end.
#[derive(Debug, Default)]
pub struct Frames {
    /// The beginning of a frame, as far as it is there.
    head: Vec<u8>,
    payload_left: usize,
    /// Whether a request's head has begun and has not ended.
    in_head: bool,
    /// Whether it ends with this frame.
    ends_head: bool,
    /// Heads that have begun so far.
    heads: u64,
}

impl Speech {
    /// Takes note of bytes that came.
    pub fn received(&mut self, bytes: &[u8]) {
        match self {
            Self::Http1 => {}
            Self::Http2(frames) => frames.received(bytes),
            Self::Unknown(seen) => {
                let wanted = PREFACE.get(*seen..).unwrap_or_default();
                let (given, rest) = bytes.split_at(wanted.len().min(bytes.len()));
                if !wanted.starts_with(given) {
                    *self = Self::Http1;
                } else if given.len() < wanted.len() {
                    *seen += given.len();
                } else {
                    let mut frames = Frames::default();
                    frames.received(rest);
                    *self = Self::Http2(frames);
                }
            }
        }
    }

    /// The number of the head that is halfway there, if the frames of HTTP/2 say so.
    pub fn head_number(&self) -> Option<u64> {
        match self {
            Self::Http2(frames) => frames.in_head.then_some(frames.heads),
            Self::Unknown(_) | Self::Http1 => None,
        }
    }
}

impl Frames {
    fn received(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.head.len() < FRAME_HEAD_BYTES {
                let (some, rest) = split(bytes, FRAME_HEAD_BYTES - self.head.len());
                self.head.extend_from_slice(some);
                bytes = rest;
                self.begin_frame();
            } else {
                let (some, rest) = split(bytes, self.payload_left);
                self.payload_left -= some.len();
                bytes = rest;
            }
            if self.head.len() == FRAME_HEAD_BYTES && self.payload_left == 0 {
                self.head.clear();
                self.in_head &= !self.ends_head;
            }
        }
    }

    fn begin_frame(&mut self) {
        let [a, b, c, kind, flags, _, _, _, _] = *self.head.as_slice() else { return };
        let length = u32::from_be_bytes([0, a, b, c]);
        self.payload_left = usize::try_from(length).unwrap_or(usize::MAX);
        let of_head = kind == HEADERS || kind == CONTINUATION;
        self.ends_head = of_head && flags & END_HEADERS != 0;
        self.in_head |= of_head;
        self.heads += u64::from(kind == HEADERS);
    }
}

fn split(bytes: &[u8], most: usize) -> (&[u8], &[u8]) {
    bytes.split_at(most.min(bytes.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
        let length = u8::try_from(payload).unwrap();
        let mut bytes = vec![0, 0, length, kind, flags, 0, 0, 0, 1];
        bytes.resize(bytes.len() + payload, 7);
        bytes
    }

    #[test]
    fn the_first_bytes_tell_however_they_are_cut() {
        for cut in 1..PREFACE.len() {
            let mut speech = Speech::Unknown(0);
            let (first, second) = PREFACE.split_at(cut);
            speech.received(first);
            assert!(matches!(speech, Speech::Unknown(_)), "{cut}");
            speech.received(second);
            assert!(matches!(speech, Speech::Http2(_)), "{cut}");
        }
        for text in ["GET / HTTP/1.1\r\n", "PRI / HTTP/1.1\r\n", "P\r\n"] {
            let mut speech = Speech::Unknown(0);
            text.bytes().for_each(|byte| speech.received(&[byte]));
            assert!(matches!(speech, Speech::Http1), "{text}");
        }
    }

    #[test]
    fn a_head_is_open_from_its_first_frame_to_the_end_of_its_last_however_they_are_cut() {
        let settings = frame(4, 0, 12);
        let begin = frame(HEADERS, 0, 5);
        let middle = frame(CONTINUATION, 0, 0);
        let end = frame(CONTINUATION, END_HEADERS, 3);
        let data = frame(0, 1, 200);
        let whole = frame(HEADERS, END_HEADERS, 0);
        let parts = [PREFACE, &settings, &begin, &middle, &end, &data, &whole].map(<[u8]>::to_vec);
        let all = parts.concat();
        let opened = PREFACE.len() + settings.len() + FRAME_HEAD_BYTES;
        let closed = opened + 5 + middle.len() + end.len();
        for step in [1, 2, 7, 64, all.len()] {
            let (mut speech, mut came) = (Speech::Unknown(0), 0);
            for bytes in all.chunks(step) {
                speech.received(bytes);
                came += bytes.len();
                let open = (opened..closed).contains(&came);
                assert_eq!(speech.head_number(), open.then_some(1), "{came} by {step}");
            }
            let Speech::Http2(frames) = speech else { panic!("{speech:?}") };
            assert_eq!((frames.heads, frames.head.len()), (2, 0), "by {step}");
        }
    }
}
