//! Prefixes that separate address classes.

use alloc::vec::Vec;
use axon_pipeline::Prefix;
use core::net::Ipv4Addr;

/// Returns, in order, the shortest prefixes that together cover all addresses and each contain
/// addresses of only one class.
///
/// A prefix whose addresses all have the same class is kept. Any other is split in half, and a half
/// without addresses is omitted.
pub(super) fn prefixes(addresses: impl Iterator<Item = (Ipv4Addr, u32)>) -> Vec<(Prefix, u32)> {
    let mut sorted: Vec<(u32, u32)> = addresses.map(|(ip, class)| (ip.to_bits(), class)).collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut found = Vec::new();
    divide(&sorted, 0, 0, &mut found);
    found
}

fn divide(sorted: &[(u32, u32)], start: u32, length: u8, found: &mut Vec<(Prefix, u32)>) {
    let Some(&(_, class)) = sorted.first() else { return };
    if length == 32 || sorted.iter().all(|(_, other)| *other == class) {
        found.push((Prefix { address: Ipv4Addr::from_bits(start), length }, class));
        return;
    }
    let middle = start | 1 << (31 - length);
    let (low, high) = sorted.split_at(sorted.partition_point(|(address, _)| *address < middle));
    divide(low, start, length + 1, found);
    divide(high, middle, length + 1, found);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_address_is_in_one_prefix_which_is_of_its_class(
            all in proptest::collection::btree_map(any::<u16>(), 0_u32..4, 0..60)
        ) {
            let address = |low: u16| Ipv4Addr::from_bits(low.into());
            let all: Vec<(Ipv4Addr, u32)> =
                all.into_iter().map(|(low, class)| (address(low), class)).collect();
            let found = prefixes(all.iter().copied());
            prop_assert!(found.iter().all(|(prefix, _)| prefix.is_sound()));
            prop_assert!(found.len() <= all.len());
            for (ip, class) in all {
                let covers = |prefix: Prefix| {
                    let span = 32 - u32::from(prefix.length);
                    let cut = |ip: Ipv4Addr| u64::from(ip.to_bits()) >> span;
                    cut(ip) == cut(prefix.address)
                };
                let of: Vec<u32> =
                    found.iter().filter(|(prefix, _)| covers(*prefix)).map(|(_, of)| *of).collect();
                prop_assert_eq!(of, [class]);
            }
        }
    }

    #[test]
    fn pods_with_addresses_of_their_own_have_one_prefix_each() {
        let hosts = (0..4_u8).flat_map(|pod| {
            (0..2).flat_map(move |switch| {
                (2..4).map(move |id| (Ipv4Addr::new(10, pod, switch, id), u32::from(pod)))
            })
        });
        let found = prefixes(hosts);
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|(prefix, _)| prefix.length == 16), "{found:?}");
    }
}
