//! Snapshot file: a head of one page, the label, and the image of the region.
//!
//! Numbers are little-endian and of 64 bits. Pages of zeros are holes.

use crate::heap::Heap;
use crate::machine::{Machine, hash_of};
use crate::region::{self, BASE, PAGE};
use std::fs::File;
use std::io::{self, Error, ErrorKind, Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

/// Magic number at the start of the file.
const MAGIC: [u8; 8] = *b"AXONSNAP";
/// Version of the file format.
const FORMAT: u64 = 1;
/// Words of the head after the magic number.
const WORDS: usize = 11;
/// Maximum length of a label in bytes.
const LABEL_MAX: u64 = 1 << 28;
/// Write unit in bytes; a chunk of zeros is left out.
const CHUNK: usize = 1 << 16;

/// Head of a snapshot file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Head {
    machine: Machine,
    /// XXH3 of the name of the value's type, and the address of the value.
    kind: u64,
    root: u64,
    /// Length of the label in bytes, and its XXH3.
    label: (u64, u64),
    /// Length of the image in bytes, and its XXH3.
    image: (u64, u64),
}

impl Head {
    fn words(&self) -> [u64; WORDS] {
        let Machine { program, code, processor } = self.machine;
        let (label, image) = (self.label, self.image);
        let words = [FORMAT, program, code, processor, self.kind, self.root];
        let [a, b, c, d, e, f] = words;
        let before = [a, b, c, d, e, f, label.0, label.1, image.0, image.1];
        let bytes: Vec<u8> = before.iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut all = [0; WORDS];
        all[..WORDS - 1].copy_from_slice(&before);
        all[WORDS - 1] = xxh3_64(&bytes);
        all
    }

    fn from_words(words: [u64; WORDS]) -> io::Result<Head> {
        let [format, program, code, processor, kind, root, ..] = words;
        let [.., label, label_hash, image, image_hash, _] = words;
        if format != FORMAT {
            return Err(refused("it is of another version of this program"));
        }
        let machine = Machine { program, code, processor };
        let head =
            Head { machine, kind, root, label: (label, label_hash), image: (image, image_hash) };
        if head.words() != words || label > LABEL_MAX || image % PAGE as u64 != 0 {
            return Err(refused(DAMAGED));
        }
        Ok(head)
    }

    /// Returns the offset of the image in the file.
    fn image_at(&self) -> u64 {
        PAGE as u64 + self.label.0.next_multiple_of(PAGE as u64)
    }
}

const DAMAGED: &str = "it is damaged: what was written is not what is there";

fn refused(why: &str) -> Error {
    Error::new(ErrorKind::InvalidData, why)
}

fn kind_of<T>() -> u64 {
    xxh3_64(std::any::type_name::<T>().as_bytes()) ^ size_of::<T>() as u64
}

/// Saves a value that was made since [`Heap::collect`], and a `label` that can be read before the
/// value. `file` is empty. The value stays in place, and memory comes from the system again: a
/// process can save once.
///
/// # Errors
/// [`Heap::collect`] was not called, or writing fails.
pub fn save<T>(value: Box<T>, label: &[u8], file: &mut File) -> io::Result<()> {
    if !Heap::collects() {
        return Err(refused("memory was not collected before"));
    }
    let root = Box::into_raw(value).expose_provenance() as u64;
    let used = Heap::close();
    let mut hash = Xxh3::new();
    let label_hash = xxh3_64(label);
    let mut head = Head {
        machine: Machine::this()?,
        kind: kind_of::<T>(),
        root,
        label: (label.len() as u64, label_hash),
        image: (used as u64, 0),
    };
    file.write_all_at(label, PAGE as u64)?;
    let at = head.image_at();
    file.set_len(at + used as u64)?;
    for offset in (0..used).step_by(CHUNK) {
        let bytes = CHUNK.min(used - offset);
        let begin = std::ptr::with_exposed_provenance::<u8>(BASE + offset);
        // SAFETY: this much of the region is mapped, and no other thread is there to write to it.
        let chunk = unsafe { std::slice::from_raw_parts(begin, bytes) };
        hash.update(chunk);
        if chunk.iter().any(|&byte| byte != 0) {
            file.write_all_at(chunk, at + offset as u64)?;
        }
    }
    head.image.1 = hash.digest();
    let words: Vec<u8> = head.words().iter().flat_map(|word| word.to_le_bytes()).collect();
    file.write_all_at(&[&MAGIC[..], &words].concat(), 0)?;
    file.sync_data()
}

/// Snapshot that this process may restore.
#[derive(Debug)]
pub struct Snapshot {
    file: File,
    head: Head,
    label: Vec<u8>,
}

impl Snapshot {
    /// Opens and validates a snapshot.
    ///
    /// # Errors
    /// The file cannot be read; or it is no snapshot, of another build, from another processor, or
    /// damaged.
    pub fn open(path: &Path) -> io::Result<Snapshot> {
        let mut file = File::open(path)?;
        let mut magic = [0; MAGIC.len()];
        let mut words = [[0; 8]; WORDS];
        let is_whole = file.read_exact(&mut magic).is_ok() && magic == MAGIC;
        let head = is_whole && file.read_exact(words.as_flattened_mut()).is_ok();
        if !head {
            return Err(refused("it is no snapshot"));
        }
        let head = Head::from_words(words.map(u64::from_le_bytes))?;
        let here = Machine::this()?;
        if head.machine.program != here.program {
            return Err(refused("it was made by another version or build of this program"));
        }
        if head.machine.processor != here.processor {
            return Err(refused("it was made on another kind of processor"));
        }
        if head.machine.code != here.code {
            return Err(refused(
                "this kernel loads programs at other addresses than where it was made",
            ));
        }
        if file.metadata()?.len() != head.image_at() + head.image.0 {
            return Err(refused(DAMAGED));
        }
        let mut label = vec![0; head.label.0 as usize];
        file.read_exact_at(&mut label, PAGE as u64)?;
        if xxh3_64(&label) != head.label.1 {
            return Err(refused(DAMAGED));
        }
        Ok(Snapshot { file, head, label })
    }

    /// Returns the label saved with the value.
    pub fn label(&self) -> &[u8] {
        &self.label
    }

    /// Restores the value. The file may be removed while it is in use, but not written to.
    ///
    /// # Errors
    /// The value has another type; it is damaged; or its addresses are in use, because this process
    /// has restored or collected one already.
    pub fn restore<T>(mut self) -> io::Result<Box<T>> {
        if self.head.kind != kind_of::<T>() {
            return Err(refused("it holds something else"));
        }
        // Hashed by reading, not through the mapping, which would allocate memory for holes.
        let at = self.head.image_at();
        self.file.seek(SeekFrom::Start(at))?;
        if hash_of(&self.file)? != self.head.image.1 {
            return Err(refused(DAMAGED));
        }
        region::map(&self.file, at as usize, self.head.image.0 as usize)?;
        let root = std::ptr::with_exposed_provenance_mut::<T>(self.head.root as usize);
        // SAFETY: the same program made this image at this address, and saved a value of this type
        // there, with all that it points to: checked above, as far as hashes can.
        Ok(unsafe { Box::from_raw(root) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let machine = Machine { program: 1, code: 2, processor: 3 };
        Head { machine, kind: 4, root: 5, label: (6, 7), image: (2 * PAGE as u64, 9) }
    }

    #[test]
    fn a_head_is_read_as_it_was_written_and_every_flipped_bit_is_seen() {
        let words = head().words();
        assert_eq!(Head::from_words(words).expect("a head"), head());
        for word in 0..WORDS {
            for bit in 0..64 {
                let mut other = words;
                other[word] ^= 1 << bit;
                assert!(Head::from_words(other).is_err(), "word {word}, bit {bit}");
            }
        }
    }

    #[test]
    fn the_image_begins_at_a_page_behind_the_label() {
        assert_eq!(head().image_at(), 2 * PAGE as u64);
        assert_eq!(Head { label: (0, 7), ..head() }.image_at(), PAGE as u64);
    }

    #[test]
    fn what_is_no_snapshot_is_refused() {
        let path = std::env::temp_dir().join(format!("axon-no-snapshot-{}", std::process::id()));
        for text in ["", "AXON", "no snapshot at all, but long enough to be one".repeat(9).as_str()]
        {
            std::fs::write(&path, text).expect("a file");
            let error = Snapshot::open(&path).expect_err("none").to_string();
            assert_eq!(error, "it is no snapshot");
        }
        std::fs::write(&path, [&MAGIC[..], &[7; 1000]].concat()).expect("a file");
        let error = Snapshot::open(&path).expect_err("none").to_string();
        assert!(error.contains("another version"), "{error}");
        std::fs::remove_file(&path).expect("it was there");
    }
}
