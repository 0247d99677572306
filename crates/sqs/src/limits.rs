//! Every bound of the protocol, in one place.

use std::time::Duration;

/// Longest name of a queue, `.fifo` included.
pub const QUEUE_NAME_CHARS_MAX: usize = 80;

/// Most entries of a batch.
pub const BATCH_ENTRIES_MAX: usize = 10;

/// Most bytes of a batch: bodies and attributes of all its messages.
pub const BATCH_BYTES_MAX: usize = 1_048_576;

/// Longest id of a batch's entry.
pub const ENTRY_ID_CHARS_MAX: usize = 80;

/// Largest message that a queue may accept, and the smallest that it may say is its largest.
pub const MESSAGE_BYTES_MAX: usize = 1_048_576;
/// See [`MESSAGE_BYTES_MAX`].
pub const MESSAGE_BYTES_MAX_LEAST: usize = 1_024;

/// Most attributes of a message.
pub const MESSAGE_ATTRIBUTES_MAX: usize = 10;

/// Longest name, and longest type, of a message's attribute.
pub const ATTRIBUTE_NAME_CHARS_MAX: usize = 256;

/// Longest group, deduplication and attempt id.
pub const ID_CHARS_MAX: usize = 128;

/// Most messages of one receive.
pub const RECEIVE_MAX: u64 = 10;

/// Longest wait of one receive, in seconds.
pub const WAIT_SECONDS_MAX: u64 = 20;

/// Longest visibility timeout, in seconds, also in all since a message was received: 12 hours.
pub const VISIBILITY_SECONDS_MAX: u64 = 43_200;

/// Longest delay, in seconds.
pub const DELAY_SECONDS_MAX: u64 = 900;

/// Most messages of a queue in flight, as far as this node has handed them out.
pub const IN_FLIGHT_MAX: usize = 120_000;

/// Most results of a page.
pub const PAGE_RESULTS_MAX: u64 = 1_000;

/// Most move tasks that are listed.
pub const MOVES_LISTED_MAX: u64 = 10;

/// Most messages a second of a move task.
pub const MOVE_RATE_MAX: u64 = 500;

/// Messages that one step of a move task brings over, at most.
pub const MOVE_STEP_MAX: usize = 50;

/// How often a move task says how far it has come, at least; also how soon it notices that it was cancelled elsewhere.
pub const MOVE_STEP_TIME: Duration = Duration::from_millis(500);

/// A move task whose node has not been heard of for this long is carried on by another.
pub const MOVE_SILENCE_MAX: Duration = Duration::from_secs(30);

/// How long an ended move task is listed.
pub const MOVE_KEPT: Duration = Duration::from_secs(14 * 24 * 60 * 60);

/// How often a change of a row is tried against others. Each time, another change has won.
pub const ROW_CONFLICTS_MAX: usize = 64;

/// How long what is known of a queue is relied on before it is read again.
pub const QUEUE_AGE_MAX: Duration = Duration::from_secs(5);

/// Queues that are remembered; those that were not used for the longest time are forgotten.
pub const QUEUES_KNOWN_MAX: usize = 20_000;

/// Most queues of one account and region that are looked through for one answer.
pub const QUEUES_LISTED_MAX: usize = 1_000_000;

/// How often what has ended is removed from queues that are used, where looking through them costs next to nothing...
pub const MAINTAIN_EVERY: Duration = Duration::from_secs(60);

/// ...and where each row that is read is paid for.
pub const MAINTAIN_PAID_EVERY: Duration = Duration::from_secs(10 * 60);

/// Each time that this many rounds have passed, all queues are looked through, also those that nobody uses.
pub const MAINTAIN_ALL_ROUNDS: u32 = 10;

/// Steps that one round makes in one queue, at most; the next one goes on from there.
pub const MAINTAIN_STEPS_MAX: usize = 16;

/// The time for which a purged queue cannot be purged again, and a deleted one not created again.
pub const QUIET_PERIOD: Duration = Duration::from_secs(60);

/// Most tags of a queue.
pub const TAGS_MAX: usize = 50;

/// Most statements of a policy that permissions are added to.
pub const STATEMENTS_MAX: usize = 20;

/// Most actions of a permission.
pub const PERMISSION_ACTIONS_MAX: usize = 7;

/// Most source queues that a redrive-allow policy may name.
pub const SOURCES_MAX: usize = 10;

/// How much a signature's time may differ from the server's.
pub const SKEW_MAX: Duration = Duration::from_secs(15 * 60);

/// Longest life of a presigned request, in seconds: seven days.
pub const PRESIGNED_SECONDS_MAX: u64 = 604_800;

/// Most parameters of a request in the Query encoding: ten messages with ten attributes of four parameters each, and
/// some more.
pub const PARAMETERS_MAX: usize = 1_000;

/// Most items of a list in the Query encoding.
pub const LIST_ITEMS_MAX: usize = 1_000;

/// From this many messages in flight on a tenant can be noisy...
pub const NOISY_IN_FLIGHT_MIN: usize = 30;

/// ...when it has more than this part of all: one in ten. The same holds for the time its messages were in flight.
pub const NOISY_PART: u32 = 10;

/// For how long the time that a tenant's messages were in flight counts, and after how long of silence it is forgotten.
pub const TENANT_WINDOW: Duration = Duration::from_secs(5 * 60);

/// Less processing time than this, of all tenants together, says nothing about who takes more than their share.
pub const TENANT_TIME_MIN: Duration = Duration::from_secs(60);

/// Tenants of a queue that are told apart.
pub const TENANTS_MAX: usize = 10_000;

/// How often it is looked for quiet tenants' messages again when there were none and none was sent through this node.
pub const QUIET_LOOK_EVERY: Duration = Duration::from_secs(1);
