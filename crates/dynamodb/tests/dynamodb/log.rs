//! The log over DynamoDB, on an engine within the test process: without an object store, and with a bucket of an S3
//! server, spoken to over HTTP.

use crate::support::buckets::{open, serve};
use crate::support::world;
use millpond_testing::log_suite::LogSubject;
use millpond_testing::{log_model, log_suite};
use proptest::prelude::{ProptestConfig, any, proptest};

async fn dynoxide() -> LogSubject {
    LogSubject::bare(world::dynoxide().await)
}

log_suite!(dynoxide);

mod with_s3 {
    use super::{LogSubject, log_suite, open, serve, world};

    async fn dynoxide_and_s3() -> LogSubject {
        let buckets = tempfile::tempdir().unwrap();
        std::fs::create_dir(buckets.path().join("cargo")).unwrap();
        let objects = open(serve(buckets.path()).await, "test-secret");
        LogSubject::with_objects(world::dynoxide().await, objects.store, buckets)
    }

    log_suite!(dynoxide_and_s3);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10))]

    #[test]
    fn agrees_with_the_model(operations in log_model::operations(40), faults in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async { log_model::check(&dynoxide().await, operations, faults).await });
    }
}
