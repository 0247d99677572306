//! The log over the in-memory store, without and with an object store of files.

use std::sync::Arc;

use millpond_store::MemoryStore;
use millpond_testing::log_suite::LogSubject;
use millpond_testing::{Subject, log_model};
use object_store::local::LocalFileSystem;
use proptest::prelude::{ProptestConfig, any, proptest};

async fn store() -> Subject {
    Subject::new(|environment| {
        Box::pin(async move { Arc::new(MemoryStore::new(&environment)) as _ })
    })
    .await
}

async fn memory() -> LogSubject {
    LogSubject::bare(store().await)
}

millpond_testing::log_suite!(memory);

mod with_files {
    use super::{Arc, LocalFileSystem, LogSubject, store};

    async fn memory_and_files() -> LogSubject {
        let directory = tempfile::tempdir().unwrap();
        let files = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        LogSubject::with_objects(store().await, Arc::new(files), directory)
    }

    millpond_testing::log_suite!(memory_and_files);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn agrees_with_the_model(operations in log_model::operations(60), faults in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { log_model::check(&memory().await, operations, faults).await });
    }
}
