//! What every backend does, over a store in memory.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::Subject;

async fn memory() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

millpond_testing::consumer_suite!(memory);
