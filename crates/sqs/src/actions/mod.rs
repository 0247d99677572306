//! The actions, one file each: what is asked for, and what is answered, in either encoding.

mod add_permission;
mod batch;
mod cancel_message_move_task;
mod change_message_visibility;
mod change_message_visibility_batch;
mod create_queue;
mod delete_message;
mod delete_message_batch;
mod delete_queue;
mod get_queue_attributes;
mod get_queue_url;
mod list_dead_letter_source_queues;
mod list_message_move_tasks;
mod list_queue_tags;
mod list_queues;
mod purge_queue;
mod receive_message;
mod remove_permission;
mod send_message;
mod send_message_batch;
mod set_queue_attributes;
mod start_message_move_task;
mod tag_queue;
mod untag_queue;

use bytes::Bytes;
use http::Response;
use serde::Serialize;

pub use create_queue::{Request as CreateQueue, run as create_queue};
pub use receive_message::wait_of;
pub use set_queue_attributes::set as set_queue_attributes;

use crate::call::Call;
use crate::error::Result;
use crate::wire::{Encoding, Params, answer};

macro_rules! actions {
    ($($action:ident: $file:ident,)*) => {
        /// The names of all actions.
        pub const ACTIONS: &[&str] = &[$(stringify!($action),)*];

        /// What a request asks for.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Action {
            $($action,)*
        }

        impl Action {
            #[cfg(test)]
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            /// The action of this name.
            pub fn of_name(name: &str) -> Option<Self> {
                match name {
                    $(stringify!($action) => Some(Self::$action),)*
                    _ => None,
                }
            }

            /// Its name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$action => stringify!($action),)*
                }
            }
        }

        /// Does what a request asks for.
        pub async fn run(
            call: &Call<'_>,
            params: &Params,
            encoding: Encoding,
            request_id: &str,
        ) -> Result<Response<Bytes>> {
            match call.action {
                // On the heap: each of them is large, and only one runs.
                $(Action::$action => {
                    let answered = Box::pin($file::run(call, params.read()?)).await?;
                    answer(encoding, call.action, &answered, request_id)
                })*
            }
        }
    };
}

actions! {
    AddPermission: add_permission,
    CancelMessageMoveTask: cancel_message_move_task,
    ChangeMessageVisibility: change_message_visibility,
    ChangeMessageVisibilityBatch: change_message_visibility_batch,
    CreateQueue: create_queue,
    DeleteMessage: delete_message,
    DeleteMessageBatch: delete_message_batch,
    DeleteQueue: delete_queue,
    GetQueueAttributes: get_queue_attributes,
    GetQueueUrl: get_queue_url,
    ListDeadLetterSourceQueues: list_dead_letter_source_queues,
    ListMessageMoveTasks: list_message_move_tasks,
    ListQueueTags: list_queue_tags,
    ListQueues: list_queues,
    PurgeQueue: purge_queue,
    ReceiveMessage: receive_message,
    RemovePermission: remove_permission,
    SendMessage: send_message,
    SendMessageBatch: send_message_batch,
    SetQueueAttributes: set_queue_attributes,
    StartMessageMoveTask: start_message_move_task,
    TagQueue: tag_queue,
    UntagQueue: untag_queue,
}

impl Action {
    /// Whether its answer says more than that it was done.
    pub const fn has_result(self) -> bool {
        !matches!(
            self,
            Self::AddPermission
                | Self::ChangeMessageVisibility
                | Self::DeleteMessage
                | Self::DeleteQueue
                | Self::PurgeQueue
                | Self::RemovePermission
                | Self::SetQueueAttributes
                | Self::TagQueue
                | Self::UntagQueue
        )
    }
}

/// An answer that says nothing but that it was done.
#[derive(Debug, Serialize)]
pub struct Done {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_twenty_three_actions_known_by_their_names() {
        assert_eq!(Action::ALL.len(), 23);
        for action in Action::ALL {
            assert_eq!(Action::of_name(action.name()), Some(*action));
        }
        assert_eq!(Action::of_name("sendmessage"), None);
    }
}
