//! Queries: service pages, limits, and what has expired.

use crate::support::{Setup, key};
use millpond_dynamodb::limits::SERVICE_PAGES_MAX;
use millpond_store::{
    Attributes, Expect, Expiry, Operation, Query, SortKey, SortRange, Store as _, Write, collect,
};

/// Puts items under `000`, `001` … into the partition `p`.
async fn fill(setup: &Setup, count: usize, body_bytes: usize, expiry: impl Fn(usize) -> bool) {
    let writes: Vec<Write> = (0..count)
        .map(|n| {
            let attributes = Attributes::new().with("body", vec![7; body_bytes]);
            let version = setup.environment.version();
            let put = Write::put(key(&format!("{n:03}")), attributes, Expect::Any, version);
            // An hour ago, but not so long that an engine has removed it meanwhile.
            let past = Expiry::from_secs(setup.environment.now().as_millis() / 1_000 - 3_600);
            if expiry(n) { put.expires(past) } else { put }
        })
        .collect();
    let store = setup.untroubled().await;
    assert!(store.write_each(writes).await.unwrap().iter().all(Result::is_ok));
}

fn everything() -> Query {
    Query::new(key("x").partition)
}

#[tokio::test]
async fn two_megabytes_come_in_several_service_pages_both_ways() {
    let setup = Setup::new().await;
    fill(&setup, 600, 4_000, |_| false).await;
    for reverse in [false, true] {
        let query = if reverse { everything().reverse() } else { everything() };
        let items = collect(&setup.store, query, 1_000).await.unwrap();
        let mut sorts: Vec<_> = items.into_iter().map(|item| item.key.sort).collect();
        if reverse {
            sorts.reverse();
        }
        let wanted: Vec<_> = (0..600).map(|n| key(&format!("{n:03}")).sort).collect();
        assert_eq!(sorts, wanted, "reverse {reverse}");
        assert!(setup.proxy.actions().len() >= 3, "2.4 MB in fewer than three pages");
    }
}

#[tokio::test]
async fn ranges_end_before_their_end_at_no_extra_cost() {
    let setup = Setup::new().await;
    fill(&setup, 10, 10, |_| false).await;
    let sort = |text: &str| SortKey::new(text.as_bytes().to_vec()).unwrap();
    let range = SortRange::between(sort("003"), sort("006"));
    let page = setup.store.query(everything().range(range.clone()).reverse().limit(2)).await;
    let page = page.unwrap();
    let found: Vec<_> = page.items.iter().map(|item| item.key.sort.clone()).collect();
    assert_eq!(found, [sort("005"), sort("004")]);
    let rest = setup.store.query(page.next.unwrap()).await.unwrap();
    assert_eq!(rest.items.len(), 1);
    let requests = setup.proxy.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].1["Limit"], 2);

    let all = collect(&setup.store, everything().range(range), 10).await.unwrap();
    assert_eq!(all.len(), 3);
    let empty = SortRange::between(sort("006"), sort("006"));
    setup.proxy.forget();
    let none = setup.store.query(everything().range(empty)).await.unwrap();
    assert!(none.items.is_empty() && none.next.is_none());
    assert!(setup.proxy.actions().is_empty(), "an empty range needs no request");
}

#[tokio::test]
async fn expired_items_are_left_out_and_the_page_is_filled() {
    let setup = Setup::new().await;
    fill(&setup, 60, 10, |n| n % 3 != 0).await;
    let page = setup.store.query(everything().limit(10)).await.unwrap();
    assert_eq!(page.items.len(), 10);
    let all = collect(&setup.store, everything().limit(7), 60).await.unwrap();
    assert_eq!(all.len(), 20);
    let reversed = collect(&setup.store, everything().limit(7).reverse(), 60).await.unwrap();
    assert_eq!(reversed.len(), 20);
}

/// A call reads a bounded number of pages, and says where to go on rather than that it is at the end.
#[tokio::test]
async fn a_desert_of_expired_items_is_crossed_in_bounded_steps() {
    let setup = Setup::new().await;
    fill(&setup, 400, 10, |n| n < 399).await;
    let first = setup.store.query(everything().limit(1)).await.unwrap();
    assert_eq!(setup.proxy.actions().len(), SERVICE_PAGES_MAX);
    assert!(first.items.is_empty());
    let next = first.next.expect("the range is not exhausted");
    let second = setup.store.query(next).await.unwrap();
    assert_eq!(second.items.len(), 1);
    assert_eq!(second.items[0].key, key("399"));
}

#[tokio::test]
async fn relaxed_queries_cost_half() {
    let setup = Setup::new().await;
    fill(&setup, 4, 4_000, |_| false).await;
    setup.store.query(everything()).await.unwrap();
    let strong = setup.store.meter().take().of(Operation::Query).read_units;
    setup.store.query(everything().relaxed()).await.unwrap();
    let relaxed = setup.store.meter().take().of(Operation::Query).read_units;
    assert_eq!((strong, relaxed), (4.0, 2.0));
    let requests = setup.proxy.requests();
    assert_eq!(requests[0].1["ConsistentRead"], true);
    assert_eq!(requests[1].1["ConsistentRead"], false);
}
