//! Sections of a recording. Each has a prefix, a payload, and a seal that locates a changed byte.

use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Length of a prefix in bytes.
pub(super) const PREFIX_BYTES: usize = 16;
/// Length of a seal in bytes.
pub(super) const SEAL_BYTES: usize = 24;
/// Maximum payload of a block in bytes: some 2,600 full frames, or one frame of 1 MiB.
pub const BLOCK_BYTES_MAX: usize = 4 << 20;
/// Maximum length of a header in bytes. It contains a fabric file of at most 16 MiB and the files
/// that this one names.
pub const HEADER_BYTES_MAX: usize = 48 << 20;
/// First bytes of every prefix.
const MARKER: [u8; 3] = *b"AXR";

/// Kind of a section.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Header,
    Block,
    End,
}

impl Kind {
    const fn letter(self) -> u8 {
        match self {
            Kind::Header => b'h',
            Kind::Block => b'b',
            Kind::End => b'e',
        }
    }

    const fn bytes_max(self) -> usize {
        match self {
            Kind::Header => HEADER_BYTES_MAX,
            Kind::Block | Kind::End => BLOCK_BYTES_MAX,
        }
    }
}

/// Returns the seed for the hashes of the section at `offset` in the recording `id`, so that
/// sections that have been moved or taken from other recordings do not match.
fn seed(id: u64, offset: u64) -> u64 {
    id ^ offset.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Returns the prefix for a section at `offset`.
pub(super) fn prefix(kind: Kind, payload: usize, id: u64, offset: u64) -> [u8; PREFIX_BYTES] {
    let mut prefix = [0; PREFIX_BYTES];
    prefix[..3].copy_from_slice(&MARKER);
    prefix[3] = kind.letter();
    prefix[4..8].copy_from_slice(&(payload as u32).to_le_bytes());
    let check = xxh3_64_with_seed(&prefix[..8], seed(id, offset));
    prefix[8..].copy_from_slice(&check.to_le_bytes());
    prefix
}

/// Returns the kind and the payload length if the prefix is unaltered.
pub(super) fn parse_prefix(
    prefix: &[u8; PREFIX_BYTES],
    id: u64,
    offset: u64,
) -> Option<(Kind, usize)> {
    let (head, check) = prefix.split_at(8);
    if xxh3_64_with_seed(head, seed(id, offset)).to_le_bytes() != check || head[..3] != MARKER {
        return None;
    }
    let kinds = [Kind::Header, Kind::Block, Kind::End];
    let kind = kinds.into_iter().find(|kind| kind.letter() == head[3])?;
    let bytes = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
    (bytes <= kind.bytes_max()).then_some((kind, bytes))
}

/// Returns the seal for the payload of the section at `offset`.
pub(super) fn seal(payload: &[u8], id: u64, offset: u64) -> [u8; SEAL_BYTES] {
    let (sum, weighted) = sums(payload);
    let hash = xxh3_64_with_seed(payload, seed(id, offset));
    let mut seal = [0; SEAL_BYTES];
    for (place, word) in seal.chunks_exact_mut(8).zip([sum, weighted, hash]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    seal
}

/// Returns the sum of the bytes, and the sum of each byte times its position, counted from 1.
/// Neither overflows, because a payload has fewer than 2^26 bytes.
fn sums(payload: &[u8]) -> (u64, u64) {
    let add = |(sum, weighted): (u64, u64), (index, byte): (usize, &u8)| {
        let byte = u64::from(*byte);
        (sum + byte, weighted + byte * (index as u64 + 1))
    };
    payload.iter().enumerate().fold((0, 0), add)
}

/// Changed byte: its offset and the value that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Changed {
    pub at: usize,
    pub written: u8,
}

/// Checks a payload against its seal.
///
/// # Errors
/// Returns the changed byte of payload and seal, with its offset from the beginning of the payload,
/// or `None` if more than one byte was changed.
pub(super) fn check_seal(
    payload: &[u8],
    found: &[u8; SEAL_BYTES],
    id: u64,
    offset: u64,
) -> Result<(), Option<Changed>> {
    let computed = seal(payload, id, offset);
    if computed == *found {
        return Ok(());
    }
    let mut differ = (0..SEAL_BYTES).filter(|&index| computed[index] != found[index]);
    if let (Some(index), None) = (differ.next(), differ.next()) {
        return Err(Some(Changed { at: payload.len() + index, written: computed[index] }));
    }
    Err(changed_byte(payload, &computed, found).filter(|changed| {
        let mut mended = payload.to_vec();
        mended[changed.at] = changed.written;
        seal(&mended, id, offset) == *found
    }))
}

/// Returns the byte of the payload whose change explains both sums. The first sum differs by the
/// change of the byte, and the second by that change times the byte's position.
fn changed_byte(
    payload: &[u8],
    computed: &[u8; SEAL_BYTES],
    found: &[u8; SEAL_BYTES],
) -> Option<Changed> {
    let word = |seal: &[u8; SEAL_BYTES], at: usize| {
        seal[at..].first_chunk::<8>().map(|word| u64::from_le_bytes(*word) as i64)
    };
    let change = word(computed, 0)?.wrapping_sub(word(found, 0)?);
    let weighted = word(computed, 8)?.wrapping_sub(word(found, 8)?);
    let place = weighted.checked_div(change).filter(|place| place * change == weighted)?;
    let at = usize::try_from(place.checked_sub(1)?).ok()?;
    let written = i64::from(*payload.get(at)?).checked_sub(change)?;
    Some(Changed { at, written: u8::try_from(written).ok()? })
}

/// Returns the byte of `bytes` whose change makes `fits` true, found by trying all values.
pub(super) fn mend<const N: usize>(
    bytes: &[u8; N],
    fits: impl Fn(&[u8; N]) -> bool,
) -> Option<Changed> {
    let mut tried = *bytes;
    for at in 0..N {
        for written in 0..=u8::MAX {
            tried[at] = written;
            if written != bytes[at] && fits(&tried) {
                return Some(Changed { at, written });
            }
        }
        tried[at] = bytes[at];
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_one_byte_that_changes_is_found_with_what_it_was() {
        let payload: Vec<u8> = (0..600u32).map(|n| (n * n % 251) as u8).collect();
        let sealed = seal(&payload, 7, 99);
        assert_eq!(check_seal(&payload, &sealed, 7, 99), Ok(()));
        for at in 0..payload.len() + SEAL_BYTES {
            for by in [1, 0x80, 0xff] {
                let (mut payload, mut sealed) = (payload.clone(), sealed);
                let byte = match payload.get_mut(at) {
                    Some(byte) => byte,
                    None => &mut sealed[at - 600],
                };
                let written = *byte;
                *byte ^= by;
                let changed = Some(Changed { at, written });
                assert_eq!(check_seal(&payload, &sealed, 7, 99), Err(changed));
            }
        }
    }

    #[test]
    fn several_changes_are_found_without_a_place() {
        let mut payload = vec![5; 100];
        let sealed = seal(&payload, 7, 99);
        payload[3] = 6;
        payload[70] = 4;
        assert_eq!(check_seal(&payload, &sealed, 7, 99), Err(None));
        assert_eq!(check_seal(&[5; 99], &sealed, 7, 99), Err(None));
    }

    #[test]
    fn a_section_fits_its_own_place_and_recording_only() {
        let prefix = prefix(Kind::Block, 12, 7, 99);
        assert_eq!(parse_prefix(&prefix, 7, 99), Some((Kind::Block, 12)));
        assert_eq!(parse_prefix(&prefix, 7, 98), None);
        assert_eq!(parse_prefix(&prefix, 8, 99), None);
        let mut changed = prefix;
        changed[5] ^= 4;
        let mended = mend(&changed, |prefix| parse_prefix(prefix, 7, 99).is_some());
        assert_eq!(mended, Some(Changed { at: 5, written: 0 }));
    }
}
