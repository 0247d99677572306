//! Looking after the table: making, checking and deleting it, and what each role may do.

mod create;
mod delete;
mod policy;
mod report;
mod schema;
mod verify;

pub use create::{Creation, TableOptions};
pub use policy::{Role, policy};
pub use report::{Check, Finding, TableReport};

use crate::store::DynamoDbStore;

/// The table's administration. It uses the store's client, credentials and bounds.
#[derive(Clone, Debug)]
pub struct DynamoDbAdmin {
    store: DynamoDbStore,
}

impl DynamoDbStore {
    /// The administration of this store's table.
    #[must_use]
    pub fn admin(&self) -> DynamoDbAdmin {
        DynamoDbAdmin { store: self.clone() }
    }
}
