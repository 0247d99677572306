//! Workers and limits over the embedded engine.

use std::sync::Arc;

use crate::common::Kept;
use millpond_embedded::Durability;
use millpond_testing::Subject;

async fn embedded() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move {
            let fast = Durability::UnsafeNoSync;
            Arc::new(Kept::open(&environment, |options| options.durability(fast)).await) as _
        })
    })
    .await
}

millpond_testing::queue_worker_suite!(embedded);
