//! Finding a place in a partition.

use millpond_store::Timestamp;

use crate::error::{LogError, Result};
use crate::read::earliest;
use crate::topic::Topic;

/// A place in a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seek {
    /// The first record that is still there.
    Earliest,
    /// Behind the last record.
    Latest,
    /// This offset.
    Offset(u64),
    /// The first record that was appended at this time or later; behind the last one when there is none.
    Time(Timestamp),
}

impl Topic {
    /// The offset of a place.
    ///
    /// # Errors
    /// [`LogError::OutOfRange`] for an offset that is not there (any more, or yet), [`LogError::UnknownPartition`],
    /// and as the store's.
    pub async fn seek(&self, partition: u32, place: Seek) -> Result<u64> {
        let lane = self.lane(partition).await?;
        let latest = lane.tail().await?;
        if place == Seek::Latest {
            return Ok(latest);
        }
        let earliest = earliest(&lane, latest).await?;
        match place {
            Seek::Earliest => Ok(earliest),
            Seek::Latest => Ok(latest),
            Seek::Offset(wanted) if (earliest..=latest).contains(&wanted) => Ok(wanted),
            Seek::Offset(wanted) => {
                Err(LogError::OutOfRange { partition, wanted, earliest, latest })
            }
            Seek::Time(time) => {
                // Times of rows never go back, so that half of what is left can be ruled out by one look.
                let (mut low, mut high) = (earliest, latest);
                while low < high {
                    let middle = low + (high - low) / 2;
                    let Some(stretch) = lane.last_before(Some(middle + 1)).await? else { break };
                    if stretch.carry.at < time || !stretch.is_there {
                        low = stretch.end.max(middle + 1);
                    } else {
                        high = stretch.first;
                    }
                }
                Ok(low.max(earliest).min(latest))
            }
        }
    }
}
