//! Workers of groups that joined through the API, kept for as long as they give signs of life.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use millpond_log::Puller;

use super::error::ApiError;
use super::limits::MEMBERS_MAX;

/// A topic, a group of it, and a worker's id.
type Name = (String, String, String);

/// Workers that joined here.
#[derive(Debug, Default)]
pub struct Members(Mutex<HashMap<Name, Arc<Puller>>>);

impl Members {
    /// Whether one more can be kept.
    pub fn check_room(&self) -> Result<(), ApiError> {
        check_room(&self.lock())
    }

    /// Keeps a worker.
    pub fn keep(&self, topic: &str, group: &str, puller: Puller) -> Result<Arc<Puller>, ApiError> {
        let mut members = self.lock();
        check_room(&members)?;
        let (name, puller) = (name(topic, group, puller.worker().as_str()), Arc::new(puller));
        members.insert(name, Arc::clone(&puller));
        Ok(puller)
    }

    /// A worker that joined here.
    pub fn find(&self, topic: &str, group: &str, worker: &str) -> Result<Arc<Puller>, ApiError> {
        self.lock().get(&name(topic, group, worker)).cloned().ok_or_else(|| {
            let message = format!(
                "worker {worker:?} of group {group:?} is not known here: it has left, or was silent for a lease, or \
                 joined at another server or before this one was started; join again"
            );
            ApiError::new(StatusCode::CONFLICT, "not_joined", message).field("worker")
        })
    }

    /// Forgets a worker that leaves.
    pub fn remove(&self, topic: &str, group: &str, worker: &str) -> Option<Arc<Puller>> {
        self.lock().remove(&name(topic, group, worker))
    }

    /// Forgets the workers of a topic, or of one of its groups, that is deleted.
    pub fn forget(&self, topic: &str, group: Option<&str>) {
        let is_gone =
            |name: &Name| name.0 == topic && group.is_none_or(|group| name.1.as_str() == group);
        self.lock().retain(|name, _| !is_gone(name));
    }

    /// Forgets the workers that were silent for a lease, and returns them.
    pub fn take_silent(&self) -> Vec<Arc<Puller>> {
        self.lock().extract_if(|_, puller| puller.is_silent()).map(|(_, puller)| puller).collect()
    }

    /// Forgets all workers, and returns them.
    pub fn take_all(&self) -> Vec<Arc<Puller>> {
        self.lock().drain().map(|(_, puller)| puller).collect()
    }

    /// How many there are.
    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Name, Arc<Puller>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn check_room(members: &HashMap<Name, Arc<Puller>>) -> Result<(), ApiError> {
    if members.len() < MEMBERS_MAX {
        return Ok(());
    }
    let message = format!("{MEMBERS_MAX} workers of groups are here, which is the most; try later");
    Err(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message))
}

fn name(topic: &str, group: &str, worker: &str) -> Name {
    (topic.to_owned(), group.to_owned(), worker.to_owned())
}

/// Lets workers leave their groups, so that others need not wait for a lease. Where that fails, they do.
pub async fn leave(pullers: Vec<Arc<Puller>>) {
    for puller in pullers {
        if let Err(error) = puller.leave().await {
            let worker = puller.worker();
            tracing::debug!(%worker, %error, "its partitions are free after a lease");
        }
    }
}
