//! All routes.

use super::route::Route;
use super::{admin, consumer, log, queue, sequence};

/// Every route but that of the document itself.
pub fn all() -> Vec<Route> {
    let parts =
        [queue::routes(), log::routes(), sequence::routes(), consumer::routes(), admin::routes()];
    parts.into_iter().flatten().collect()
}
