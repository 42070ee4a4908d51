//! Format of a store file.
//!
//! All numbers are little-endian.
//!
//! ```text
//! header   8 bytes  "AXONKEEP"
//!          2        version of this format
//!          2        bytes of the name
//!          n        the name of the fabric, UTF-8
//!          8        XXH3 of all before
//! records, each:
//!          4        bytes of the payload, 1 to 4096
//!          8        XXH3 of the payload, seeded by the record's place in the file
//!          n        the payload: an entry as it is now, or that there is none any more
//! ```
//!
//! A file that was written to the end of a record is complete. The last record for a key counts.
//! New kinds of records are appended to the list. A file without them remains readable, and a
//! version that does not support a kind skips its records.

use axon_node::{HostPair, KeyInVlan, StoreKey, StoredHost, StoredLease, StoredLease6, Subject};
use axon_wire::vlan::VlanId;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// Version of this format that is written. No other version is read.
pub const FORMAT_VERSION: u16 = 1;
const MAGIC: &[u8; 8] = b"AXONKEEP";
const HEAD_BYTES: usize = 12;
/// Longest payload, in bytes. A lease with a client identifier of 255 bytes takes about 300.
const PAYLOAD_BYTES_MAX: usize = 4096;

/// Record of a store. Times are of the wall clock: the clock of a node ends with it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Record {
    /// Host.
    Host(StoredHost),
    /// IPv4 lease; its `until` is zero, and stored beside it in nanoseconds since 1970.
    Lease(StoredLease, u64),
    /// Removal of an entry.
    Delete(StoreKey),
    /// Permission of two hosts to reach each other.
    Pair(HostPair, bool),
    /// Quarantine of a host or a port: on or off.
    Quarantine(Subject, bool),
    /// IPv6 lease; its `until` as that of [`Record::Lease`].
    Lease6(StoredLease6, u64),
    /// Host in a VLAN.
    HostInVlan(VlanId, StoredHost),
    /// IPv4 lease in a VLAN, as [`Record::Lease`].
    LeaseInVlan(VlanId, StoredLease, u64),
}

impl Record {
    /// Returns the key of the entry, or `None` for a removal.
    fn key(&self) -> Option<StoreKey> {
        Some(match self {
            Record::Host(host) => StoreKey::Host(host.mac),
            Record::Lease(lease, _) => StoreKey::Lease(lease.ip),
            Record::Pair(pair, _) => StoreKey::Pair(*pair),
            Record::Quarantine(subject, _) => StoreKey::Quarantine(*subject),
            Record::Lease6(lease, _) => StoreKey::Lease6(lease.ip),
            Record::HostInVlan(vlan, host) => StoreKey::InVlan(*vlan, KeyInVlan::Host(host.mac)),
            Record::LeaseInVlan(vlan, lease, _) => {
                StoreKey::InVlan(*vlan, KeyInVlan::Lease(lease.ip))
            }
            Record::Delete(_) => return None,
        })
    }
}

/// Reason why a file is not read at all.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error("it is no store of a controller")]
    Foreign,
    #[error("its format is version {0}, and this axon reads version {FORMAT_VERSION}")]
    Version(u16),
    #[error("it is the store of fabric {0:?}")]
    OtherFabric(String),
}

/// Fault at which the records in a file end before the file does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The last record is incomplete, because of a crash while it was written.
    Torn { at: usize },
    /// Valid records follow invalid bytes.
    Damaged { at: usize },
}

/// Contents of a file.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Contents {
    /// Payload of the last record for each key.
    pub entries: BTreeMap<StoreKey, Vec<u8>>,
    pub fault: Option<Fault>,
}

/// Builds the header of a file for the fabric with this name.
pub(super) fn header(fabric: &str) -> Vec<u8> {
    let name = &fabric.as_bytes()[..fabric.len().min(usize::from(u16::MAX))];
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT_VERSION.to_le_bytes());
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(name);
    bytes.extend(xxh3_64(&bytes).to_le_bytes());
    bytes
}

/// Serializes the payload of a record.
pub(super) fn payload(record: &Record) -> Vec<u8> {
    // Writing to memory cannot fail.
    postcard::to_allocvec(record).unwrap_or_default()
}

/// Appends a record that is at `offset` in the file.
pub(super) fn put(out: &mut Vec<u8>, offset: u64, payload: &[u8]) {
    out.extend((payload.len() as u32).to_le_bytes());
    out.extend(seal(offset, payload).to_le_bytes());
    out.extend(payload);
}

fn seal(offset: u64, payload: &[u8]) -> u64 {
    xxh3_64_with_seed(payload, offset.wrapping_mul(0x9e37_79b9_7f4a_7c15))
}

/// Parses a file for this fabric. A file that contains only zero bytes counts as empty.
///
/// # Errors
/// This version must neither read nor overwrite the file.
pub(super) fn read(bytes: &[u8], fabric: &str) -> Result<Contents, Refusal> {
    if bytes.iter().all(|byte| *byte == 0) {
        let fault = (!bytes.is_empty()).then_some(Fault::Torn { at: 0 });
        return Ok(Contents { fault, ..Contents::default() });
    }
    let mut at = check_header(bytes, fabric)?;
    let mut contents = Contents::default();
    while at < bytes.len() {
        if let Some((payload, next)) = record(bytes, at) {
            enter(&mut contents.entries, payload);
            at = next;
            continue;
        }
        let again = (at + 1..bytes.len()).find(|&at| record(bytes, at).is_some());
        contents.fault = contents.fault.or(Some(match again {
            Some(_) => Fault::Damaged { at },
            None => Fault::Torn { at },
        }));
        let Some(again) = again else { break };
        at = again;
    }
    Ok(contents)
}

/// Checks the header and returns the offset of the first record.
fn check_header(bytes: &[u8], fabric: &str) -> Result<usize, Refusal> {
    let head = bytes.first_chunk::<HEAD_BYTES>().ok_or(Refusal::Foreign)?;
    if !head.starts_with(MAGIC) {
        return Err(Refusal::Foreign);
    }
    let version = u16::from_le_bytes([head[8], head[9]]);
    if version != FORMAT_VERSION {
        return Err(Refusal::Version(version));
    }
    let end = HEAD_BYTES + usize::from(u16::from_le_bytes([head[10], head[11]]));
    let check =
        bytes.get(end..).and_then(|rest| rest.first_chunk::<8>()).ok_or(Refusal::Foreign)?;
    if xxh3_64(&bytes[..end]).to_le_bytes() != *check {
        return Err(Refusal::Foreign);
    }
    let expected = header(fabric);
    if bytes[..end + 8] != expected {
        let name = String::from_utf8_lossy(&bytes[HEAD_BYTES..end]);
        return Err(Refusal::OtherFabric(name.into_owned()));
    }
    Ok(expected.len())
}

/// Returns the payload of the record at `at` and the offset of the next record, or `None` if the
/// record is incomplete.
fn record(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = &bytes[at..];
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let (check, rest) = rest.split_first_chunk::<8>()?;
    let length = u32::from_le_bytes(*length) as usize;
    let payload = rest.get(..length).filter(|_| (1..=PAYLOAD_BYTES_MAX).contains(&length))?;
    (seal(at as u64, payload).to_le_bytes() == *check).then_some((payload, at + 12 + length))
}

/// Decodes a payload. Returns `None` if this version does not support its kind.
pub(super) fn decode(payload: &[u8]) -> Option<Record> {
    let (record, rest) = postcard::take_from_bytes::<Record>(payload).ok()?;
    rest.is_empty().then_some(record)
}

fn enter(entries: &mut BTreeMap<StoreKey, Vec<u8>>, payload: &[u8]) {
    let Some(record) = decode(payload) else { return };
    match record.key() {
        Some(key) => drop(entries.insert(key, payload.to_vec())),
        None => {
            if let Record::Delete(key) = record {
                entries.remove(&key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::{MacAddr, NodeId, PortNo};

    fn host(number: u8, port: u16) -> Record {
        let mac = MacAddr([2, 0, 0, 0, 0, number]);
        let ips = vec![std::net::Ipv4Addr::new(10, 0, 0, number).into()];
        Record::Host(StoredHost { mac, switch: NodeId(7), port: PortNo(port), ips })
    }

    fn key(number: u8) -> StoreKey {
        StoreKey::Host(MacAddr([2, 0, 0, 0, 0, number]))
    }

    /// Returns a file with these records, and the offset of each.
    fn file(records: &[Record]) -> (Vec<u8>, Vec<usize>) {
        let mut bytes = header("ring");
        let mut places = Vec::new();
        for record in records {
            places.push(bytes.len());
            let offset = bytes.len() as u64;
            put(&mut bytes, offset, &payload(record));
        }
        (bytes, places)
    }

    /// One record of each kind that is an entry.
    fn all_kinds() -> Vec<Record> {
        let (mac, switch, port) = (MacAddr([2, 0, 0, 0, 0, 9]), NodeId(7), PortNo(3));
        let until = axon_wire::Time::ZERO;
        let ip = std::net::Ipv4Addr::new(10, 0, 0, 9);
        let state = axon_node::StoredState::Bound;
        let lease = StoredLease { ip, mac, client_id: vec![1, 9], switch, port, state, until };
        let ip = std::net::Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 9);
        let lease6 = StoredLease6 { ip, mac, switch, port, until };
        let Record::Host(of_vlan) = host(1, 5) else { unreachable!() };
        let vlan = |id| VlanId::new(id).unwrap();
        vec![
            host(1, 1),
            Record::Lease(lease.clone(), 77),
            Record::Pair(HostPair::of(mac, MacAddr([2, 0, 0, 0, 0, 8])), true),
            Record::Quarantine(Subject::Mac(mac), true),
            Record::Lease6(lease6, 78),
            Record::HostInVlan(vlan(10), of_vlan.clone()),
            Record::HostInVlan(vlan(20), of_vlan),
            Record::LeaseInVlan(vlan(10), lease, 79),
        ]
    }

    #[test]
    fn every_kind_of_record_is_an_entry_of_its_own_that_a_delete_ends() {
        let records = all_kinds();
        let keys: Vec<StoreKey> = records.iter().filter_map(Record::key).collect();
        let (bytes, places) = file(&records);
        let contents = read(&bytes, "ring").unwrap();
        assert_eq!((contents.entries.len(), contents.fault), (records.len(), None));
        for (record, key) in records.iter().zip(&keys) {
            assert_eq!(decode(&contents.entries[key]).as_ref(), Some(record));
            let deleted = [&records[..], &[Record::Delete(*key)]].concat();
            let left = read(&file(&deleted).0, "ring").unwrap().entries;
            assert_eq!(left.len(), records.len() - 1, "{key:?}");
            assert!(!left.contains_key(key));
        }
        // If it is truncated or changed anywhere, the file yields its valid records.
        let ends: Vec<usize> = places[1..].iter().copied().chain([bytes.len()]).collect();
        for cut in places[0]..=bytes.len() {
            let whole = ends.iter().filter(|end| **end <= cut).count();
            let contents = read(&bytes[..cut], "ring").unwrap();
            assert_eq!(contents.entries.len(), whole, "cut at {cut}");
        }
        for at in places[0]..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let contents = read(&changed, "ring").unwrap();
            assert_eq!(contents.entries.len(), records.len() - 1, "byte {at}");
        }
        // Arbitrary bytes are a record or none, but never cause a panic.
        let mut random = axon_node::random::Random::new(5);
        for _ in 0..100_000 {
            let length = random.next_u64() % 40;
            let mut bytes: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            if let Some(kind) = bytes.first_mut() {
                *kind %= 9;
            }
            if let Some(record) = decode(&bytes) {
                assert_eq!(decode(&payload(&record)), Some(record));
            }
        }
    }

    #[test]
    fn a_store_of_before_vlans_and_dhcpv6_is_read_as_it_was() {
        let payloads: [&[u8]; 4] = [
            &[0, 2, 0, 0, 0, 0, 1, 7, 1, 1, 0, 10, 0, 0, 1],
            &[0, 2, 0, 0, 0, 0, 5, 7, 5, 1, 0, 10, 0, 0, 5],
            &[1, 10, 0, 0, 9, 2, 0, 0, 0, 0, 9, 2, 1, 9, 7, 3, 0, 0, 77],
            &[2, 0, 2, 0, 0, 0, 0, 5],
        ];
        let mut bytes = header("ring");
        for payload in payloads {
            let offset = bytes.len() as u64;
            put(&mut bytes, offset, payload);
        }
        let entries = read(&bytes, "ring").unwrap().entries;
        let found: Vec<Record> = entries.values().filter_map(|bytes| decode(bytes)).collect();
        assert_eq!(found, [host(1, 1), all_kinds().remove(1)]);
    }

    fn ports(contents: &Contents) -> Vec<u16> {
        let port = |payload: &Vec<u8>| match decode(payload) {
            Some(Record::Host(host)) => host.port.0,
            other => panic!("{other:?}"),
        };
        contents.entries.values().map(port).collect()
    }

    #[test]
    fn the_last_record_of_a_key_counts() {
        let (bytes, _) = file(&[host(1, 1), host(2, 2), host(1, 3), Record::Delete(key(2))]);
        let contents = read(&bytes, "ring").unwrap();
        assert_eq!((ports(&contents), contents.fault), (vec![3], None));
    }

    #[test]
    fn of_a_file_that_was_cut_anywhere_every_whole_record_is_read() {
        let (bytes, places) = file(&[host(1, 1), host(2, 2), host(3, 3)]);
        for cut in places[0]..=bytes.len() {
            let contents = read(&bytes[..cut], "ring").unwrap();
            let whole = (1..=3).filter(|&n| places.get(n).unwrap_or(&bytes.len()) <= &cut).count();
            assert_eq!(contents.entries.len(), whole, "cut at {cut}");
            let on_edge = places.contains(&cut) || cut == bytes.len();
            assert_eq!(contents.fault.is_none(), on_edge, "cut at {cut}");
            // Blocks that were never written read as zeros.
            let mut padded = bytes[..cut].to_vec();
            padded.resize(cut + 4096, 0);
            let contents = read(&padded, "ring").unwrap();
            let at = places[..].iter().copied().chain([bytes.len()]).rfind(|&at| at <= cut);
            assert_eq!(contents.entries.len(), whole, "zeros from {cut}");
            assert_eq!(contents.fault, Some(Fault::Torn { at: at.unwrap() }), "zeros from {cut}");
        }
    }

    #[test]
    fn a_changed_byte_is_found_wherever_it_is_and_costs_one_record() {
        let (bytes, places) = file(&[host(1, 1), host(2, 2), host(3, 3)]);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            let read = read(&changed, "ring");
            let Some(hit) = places.iter().rposition(|&place| place <= at) else {
                assert!(read.is_err(), "header byte {at}: {read:?}");
                continue;
            };
            let contents = read.unwrap();
            let place = places[hit];
            let fault = match hit {
                2 => Fault::Torn { at: place },
                _ => Fault::Damaged { at: place },
            };
            assert_eq!(contents.fault, Some(fault), "byte {at}");
            assert_eq!(contents.entries.len(), 2, "byte {at}");
            assert!(!contents.entries.contains_key(&key(hit as u8 + 1)), "byte {at}");
        }
    }

    #[test]
    fn what_is_of_another_fabric_or_version_or_no_store_is_refused() {
        let (bytes, _) = file(&[host(1, 1)]);
        assert_eq!(read(&bytes, "torus"), Err(Refusal::OtherFabric("ring".into())));
        let mut newer = bytes.clone();
        newer[8] = 2;
        assert_eq!(read(&newer, "ring"), Err(Refusal::Version(2)));
        for foreign in [&b"1700000000000000000\n"[..], b"AXON", b"AXONKEEP\x01", b"\0\0x"] {
            assert_eq!(read(foreign, "ring"), Err(Refusal::Foreign), "{foreign:?}");
        }
        assert_eq!(read(b"", "ring"), Ok(Contents::default()));
        let zeros = read(&[0; 100], "ring").unwrap();
        assert_eq!(zeros.fault, Some(Fault::Torn { at: 0 }));
    }

    #[test]
    fn a_record_that_was_moved_is_none() {
        let (bytes, places) = file(&[host(1, 1), host(2, 2)]);
        let mut moved = bytes[..places[0]].to_vec();
        moved.extend(&bytes[places[1]..]);
        assert!(read(&moved, "ring").unwrap().entries.is_empty());
    }
}
