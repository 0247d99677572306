//! Which partition a key belongs to.

use xxhash_rust::xxh3::xxh3_64;

/// The partition of `key` among `partitions`, by jump consistent hashing (Lamping and Veach, 2014): when partitions
/// are added, a key stays where it is or moves to a new one, and never from one old partition to another.
///
/// ```
/// use millpond_log::partition_of;
///
/// let before = partition_of(b"customer-17", 4);
/// let after = partition_of(b"customer-17", 6);
/// assert!(after == before || after >= 4);
/// ```
#[must_use]
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the algorithm is defined on doubles; values stay below 2^33"
)]
pub fn partition_of(key: &[u8], partitions: u32) -> u32 {
    let mut hash = xxh3_64(key);
    let (mut chosen, mut next) = (0_u64, 0_u64);
    while next < u64::from(partitions.max(1)) {
        chosen = next;
        hash = hash.wrapping_mul(2_862_933_555_777_941_757).wrapping_add(1);
        let share = f64::from(1_u32 << 31) / ((hash >> 33) + 1) as f64;
        next = ((chosen + 1) as f64 * share) as u64;
    }
    u32::try_from(chosen).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spread_evenly_and_move_only_to_new_partitions() {
        let mut counts = [0_u32; 10];
        for key in 0..20_000_u32 {
            let key = key.to_be_bytes();
            let mut last = partition_of(&key, 1);
            assert_eq!(last, 0);
            for partitions in 2..=10 {
                let now = partition_of(&key, partitions);
                assert!(now == last || now == partitions - 1, "moved between old partitions");
                last = now;
            }
            counts[last as usize] += 1;
        }
        assert!(counts.iter().all(|count| (1_800..2_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn the_place_of_a_key_never_changes_between_releases() {
        let places: Vec<u32> = ["", "a", "customer-17"]
            .iter()
            .map(|key| partition_of(key.as_bytes(), 1_000))
            .collect();
        assert_eq!(places, PLACES);
    }

    const PLACES: [u32; 3] = [241, 350, 985];
}
