//! The key that receipts are signed with: one for each store, made at first use.

use millpond_store::{Attributes, Environment, Expect, Key, Result, Store, StoreError, Write};

const PARTITION: &str = "millpond";
const NAME: &[u8] = b"receipt-key";
const KEY_LEN: usize = 32;

/// The store's key. Whoever comes first makes it; all others find it.
pub async fn receipt_key(store: &dyn Store, environment: &Environment) -> Result<Vec<u8>> {
    let place = Key::new(PARTITION, NAME)?;
    if let Some(item) = store.get(&place).await? {
        return read(&item.attributes);
    }
    let fresh: Vec<u8> =
        (0..KEY_LEN / 8).flat_map(|_| environment.rng.next_u64().to_be_bytes()).collect();
    let attributes = Attributes::new().with("key", fresh.clone());
    let put = Write::put(place, attributes, Expect::Absent, environment.version());
    match store.write(put).await {
        Ok(()) => Ok(fresh),
        Err(StoreError::Conflict(conflicts)) if conflicts.first().current.is_some() => {
            conflicts.first().current.as_ref().map_or_else(
                || Err(StoreError::corrupt("the receipt key", "it is gone")),
                |item| read(&item.attributes),
            )
        }
        Err(error) => Err(error),
    }
}

fn read(attributes: &Attributes) -> Result<Vec<u8>> {
    let key = attributes.bytes("key")?.to_vec();
    if key.len() != KEY_LEN {
        return Err(StoreError::corrupt("the receipt key", "it is not 32 bytes"));
    }
    Ok(key)
}
