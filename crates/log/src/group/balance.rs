//! Who should read what: a pure function of what every worker sees.

use std::collections::BTreeMap;

use crate::name::WorkerId;

/// What a worker knows of one partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Claim {
    /// This worker holds it.
    Mine,
    /// A live worker holds it.
    Others(WorkerId),
    /// Nobody holds it, or nobody who is alive.
    Free,
}

/// What a worker should do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Plan {
    pub take: Vec<u32>,
    pub give: Vec<u32>,
}

/// A worker's fair share is the number of partitions by the number of workers, rounded up or down. Who has less takes
/// what is free. Who has more than rounded up gives, and who has it rounded up gives one when somebody lacks one: so
/// nothing moves between workers unless somebody has too little. Since all see the same, they agree soon.
pub(super) fn plan(claims: &[(u32, Claim)], workers: &[WorkerId], me: &WorkerId) -> Plan {
    let mut holdings: BTreeMap<&WorkerId, usize> = workers.iter().map(|name| (name, 0)).collect();
    holdings.insert(me, 0);
    let (mut mine, mut free) = (Vec::new(), Vec::new());
    for (partition, claim) in claims {
        match claim {
            Claim::Mine => mine.push(*partition),
            Claim::Free => free.push(*partition),
            Claim::Others(owner) => {
                if let Some(held) = holdings.get_mut(owner) {
                    *held += 1;
                }
            }
        }
    }
    holdings.insert(me, mine.len());
    let (least, most) = (claims.len() / holdings.len(), claims.len().div_ceil(holdings.len()));
    let lacking: usize = holdings
        .iter()
        .filter(|(name, _)| **name != me)
        .map(|(_, held)| least.saturating_sub(*held))
        .sum();
    let rank = holdings.keys().position(|name| *name == me).unwrap_or_default();
    if mine.len() < most {
        let spare = free.len().saturating_sub(lacking);
        let wanted = least.saturating_sub(mine.len()).max(spare.min(most - mine.len()));
        // Workers that start at the same time do not all reach for the same partition.
        let from = if free.is_empty() { 0 } else { rank * wanted % free.len() };
        let take = free.iter().cycle().skip(from).take(wanted.min(free.len())).copied().collect();
        return Plan { take, give: Vec::new() };
    }
    // Of those who have one to give, as many give as somebody lacks.
    let richer = holdings.iter().filter(|(name, held)| **held > least && **name < me).count();
    let gives = mine.len() > least && free.is_empty() && richer < lacking;
    let keep = if gives { most.min(mine.len() - 1) } else { most };
    Plan { take: Vec::new(), give: mine.into_iter().skip(keep).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(count: usize) -> Vec<WorkerId> {
        (0..count).map(|n| WorkerId::new(&format!("w{n:02}")).unwrap()).collect()
    }

    /// Lets workers plan in turn, from nothing or from a lopsided start, until nothing changes.
    fn settle(
        partitions: u32,
        workers: &[WorkerId],
        mut owners: BTreeMap<u32, usize>,
    ) -> Vec<usize> {
        for _ in 0..20 {
            let before = owners.clone();
            for (at, me) in workers.iter().enumerate() {
                let claim = |partition| match owners.get(&partition) {
                    Some(owner) if *owner == at => Claim::Mine,
                    Some(owner) => Claim::Others(workers[*owner].clone()),
                    None => Claim::Free,
                };
                let claims: Vec<_> = (0..partitions).map(|p| (p, claim(p))).collect();
                let Plan { take, give } = plan(&claims, workers, me);
                owners.extend(take.into_iter().map(|partition| (partition, at)));
                owners.retain(|partition, _| !give.contains(partition));
            }
            if owners == before {
                break;
            }
        }
        assert_eq!(owners.len(), partitions as usize, "a partition has no owner");
        (0..workers.len()).map(|at| owners.values().filter(|owner| **owner == at).count()).collect()
    }

    #[test]
    fn every_partition_finds_an_owner_and_shares_differ_by_one_at_most() {
        for partitions in [1, 2, 7, 16, 100] {
            for count in [1, 2, 3, 5, 8] {
                let workers = names(count);
                for start in [0, partitions] {
                    let owners = (0..start).map(|partition| (partition, count - 1)).collect();
                    let shares = settle(partitions, &workers, owners);
                    let (least, most) =
                        (shares.iter().min().unwrap(), shares.iter().max().unwrap());
                    assert!(most - least <= 1, "{partitions} among {count}: {shares:?}");
                }
            }
        }
    }

    #[test]
    fn who_has_its_share_neither_takes_nor_gives() {
        let workers = names(2);
        let other = Claim::Others(workers[0].clone());
        let claims = [(0, Claim::Mine), (1, other.clone()), (2, Claim::Free), (3, Claim::Mine)];
        assert_eq!(plan(&claims, &workers, &workers[1]), Plan::default());
        // A newcomer does not take the only partition from who works on it, whatever its name.
        assert_eq!(plan(&[(0, Claim::Mine)], &workers, &workers[1]), Plan::default());
        assert_eq!(plan(&[(0, other)], &workers, &workers[1]), Plan::default());
    }
}
