//! Single sends and log appends.

use bytes::Bytes;
use millpond_store::{Attributes, Expect, Key, Partition, Query, SortKey, SortRange, Store, Write};

use crate::wal::Wal;
use crate::{Bench, noise};

const CALLERS: u64 = 64;
const SENDS: u64 = 3_000;
const PARTITIONS: u64 = 16;
const APPENDS: u64 = 640;
const CARGO: usize = 100 * 1_024;
const ROUNDS: usize = 3;

/// The middle of some measurements: the machines are noisy.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// 1 KB messages, one per call, 64 callers.
pub async fn single_sends(bench: &mut Bench) {
    let sends = SENDS / bench.part;
    let body = Bytes::from(noise(1, 1_024));
    let (mut limits, mut rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let wal = Wal::create(&bench.directory.join("wal"));
        let callers = async {
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    let (wal, body) = (wal.clone(), body.clone());
                    tokio::spawn(async move {
                        for _ in 0..sends {
                            wal.append(body.to_vec()).await;
                        }
                    })
                })
                .collect();
            for caller in callers {
                caller.await.unwrap();
            }
        };
        let ((), took) = bench.timed(callers).await;
        let limit = (CALLERS * sends) as f64 / took.as_secs_f64();

        let store = bench.store("sends").await;
        let environment = bench.environment.clone();
        let callers = async {
            let callers: Vec<_> = (0..CALLERS)
                .map(|_| {
                    let (store, body) = (store.clone(), body.clone());
                    let environment = environment.clone();
                    tokio::spawn(async move {
                        let partition = Partition::new("queue/default").unwrap();
                        for _ in 0..sends {
                            let id = environment.unique_id();
                            let sort = SortKey::new(id.as_bytes().to_vec()).unwrap();
                            let key = Key::of(partition.clone(), sort);
                            let attributes = Attributes::new().with("body", body.clone());
                            let version = environment.version();
                            let put = Write::put(key, attributes, Expect::Absent, version);
                            store.write(put).await.unwrap();
                        }
                    })
                })
                .collect();
            for caller in callers {
                caller.await.unwrap();
            }
        };
        let ((), took) = bench.timed(callers).await;
        store.close().await;
        let rate = (CALLERS * sends) as f64 / took.as_secs_f64();
        limits.push(limit);
        rates.push(rate);
        ratios.push(rate / limit);
    }
    bench.row("single 1 KB writes, 64 callers: bare log", median(limits), "/s", "the limit");
    bench.row("single 1 KB writes, 64 callers: store", median(rates), "/s", "");
    bench.row("  share of the limit", 100.0 * median(ratios), "%", ">= 80");
}

/// Cargo of 100 KB and a small row in one group, 16 partitions; then all of it read.
pub async fn log(bench: &mut Bench) {
    let appends = APPENDS / bench.part;
    let total = (PARTITIONS * appends) as f64 * (CARGO + 600) as f64 / 1e6;
    let (mut limits, mut rates, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut reads = Vec::new();
    for _ in 0..ROUNDS {
        let ((), took) = bench.timed(append_to_wal(bench, appends)).await;
        let limit = total / took.as_secs_f64();

        let store = bench.store("log").await;
        let writers = async {
            let writers: Vec<_> = (0..PARTITIONS)
                .map(|partition| {
                    let (store, environment) = (store.clone(), bench.environment.clone());
                    tokio::spawn(async move {
                        let cargo = Bytes::from(noise(partition, CARGO));
                        let state = Bytes::from(noise(partition, 560));
                        let partition = Partition::new(format!("log/{partition:04}")).unwrap();
                        for number in 0..appends {
                            let put = |kind: u8, body: &Bytes| {
                                let mut sort = vec![kind];
                                sort.extend_from_slice(&number.to_be_bytes());
                                let key = Key::of(partition.clone(), SortKey::new(sort).unwrap());
                                let attributes = Attributes::new().with("body", body.clone());
                                Write::put(key, attributes, Expect::Absent, environment.version())
                            };
                            let group = vec![put(b'c', &cargo), put(b's', &state)];
                            store.write_all(group).await.unwrap();
                        }
                    })
                })
                .collect();
            for writer in writers {
                writer.await.unwrap();
            }
        };
        let ((), took) = bench.timed(writers).await;
        let rate = total / took.as_secs_f64();
        for _ in 0..2 {
            let (bytes, took) = bench.timed(read(&store)).await;
            reads.push(bytes as f64 / 1e6 / took.as_secs_f64());
        }
        store.close().await;
        limits.push(limit);
        rates.push(rate);
        ratios.push(rate / limit);
    }
    bench.row(
        "log append, 100 KB cargo + 600 B, 16 writers: bare log",
        median(limits),
        "MB/s",
        "the limit",
    );
    bench.row("log append, 100 KB cargo + 600 B, 16 writers: store", median(rates), "MB/s", "");
    bench.row("  share of the limit", 100.0 * median(ratios), "%", ">= 60");
    bench.row("sequential read of the log, warm", median(reads), "MB/s", ">= 800");
}

async fn read(store: &dyn Store) -> usize {
    let mut bytes = 0;
    for partition in 0..PARTITIONS {
        let partition = Partition::new(format!("log/{partition:04}")).unwrap();
        let cargo = SortRange::prefix(SortKey::new(b"c".to_vec()).unwrap());
        let mut next = Some(Query::new(partition).range(cargo));
        while let Some(query) = next {
            let page = store.query(query).await.unwrap();
            bytes += page
                .items
                .iter()
                .map(|item| item.attributes.bytes("body").unwrap().len())
                .sum::<usize>();
            next = page.next;
        }
    }
    bytes
}

async fn append_to_wal(bench: &Bench, appends: u64) {
    let wal = Wal::create(&bench.directory.join("wal"));
    let writers: Vec<_> = (0..PARTITIONS)
        .map(|partition| {
            let wal = wal.clone();
            tokio::spawn(async move {
                let record = noise(partition, CARGO + 600);
                for _ in 0..appends {
                    wal.append(record.clone()).await;
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}
