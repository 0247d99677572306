//! Messages as clients of SQS see them: attributes, digests, ids.

mod attributes;
mod digest;
mod text;

pub use attributes::{Chosen, MessageAttributes, read, read_system, show};
pub use digest::{digest, digest_attributes};
pub use text::{check_id, check_text, is_allowed, sequence, uuid, uuid_of};
