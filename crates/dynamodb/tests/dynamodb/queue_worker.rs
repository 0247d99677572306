//! Workers and limits over DynamoDB, on an engine within the test process.

use crate::support::world::dynoxide;

millpond_testing::queue_worker_suite!(dynoxide);
