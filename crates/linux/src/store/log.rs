//! Files of a store: the log, and the rewritten log that replaces it.

use super::format;
use crate::incarnation::beside;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

/// File operations that a log needs.
pub(super) trait Disk: Debug + Send + Sync {
    /// Writes some of these bytes at this offset in the file. Returns the number of bytes written.
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize>;

    /// Truncates the file to this length, in bytes.
    fn cut(&self, bytes: u64) -> io::Result<()>;

    /// Syncs all written data to the disk.
    fn sync(&self) -> io::Result<()>;
}

impl Disk for File {
    fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
        FileExt::write_at(self, bytes, place)
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.set_len(bytes)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_all()
    }
}

/// File to which records are appended.
#[derive(Clone, Debug)]
pub(super) struct Log {
    disk: Arc<dyn Disk>,
    /// Length of its header and its complete records, in bytes.
    pub(super) bytes: u64,
    /// Number of the rewrite that has created the log.
    pub(super) number: u64,
    /// True if there may be bytes after the last complete record.
    frayed: bool,
}

impl Log {
    /// Creates a log for this file, with this length in bytes.
    pub(super) fn new(disk: Arc<dyn Disk>, bytes: u64, number: u64) -> Log {
        Log { disk, bytes, number, frayed: false }
    }

    /// Writes a log with these payloads into a file next to the store. The file is removed if a
    /// write fails.
    pub(super) fn create(
        path: &Path,
        fabric: &str,
        number: u64,
        payloads: &[Vec<u8>],
    ) -> io::Result<Log> {
        let mut options = File::options();
        options.create(true).write(true).truncate(true).mode(0o600);
        let file = options.open(beside(path, ".new"))?;
        let mut log = Log::new(Arc::new(file), 0, number);
        let written = log.write(&format::header(fabric)).and_then(|()| log.append(payloads));
        if written.is_err() {
            Log::remove(path);
        }
        written.map(|()| log)
    }

    /// Removes the file next to the store, to free its space. A device or a pipe stays.
    pub(super) fn remove(path: &Path) {
        let new = beside(path, ".new");
        if fs::metadata(&new).is_ok_and(|found| found.is_file()) {
            let _ = fs::remove_file(&new);
        }
    }

    /// Gives a synced log the name of the store. The name is on the disk once the directory is
    /// synced.
    pub(super) fn take_place(&self, path: &Path) -> io::Result<()> {
        fs::rename(beside(path, ".new"), path)
    }

    /// Syncs the log to the disk.
    pub(super) fn sync(&self) -> io::Result<()> {
        self.disk.sync()
    }

    /// Appends either all of these records or none.
    pub(super) fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let mut out = Vec::new();
        for payload in payloads {
            let offset = self.bytes + out.len() as u64;
            format::put(&mut out, offset, payload);
        }
        self.write(&out)
    }

    fn write(&mut self, out: &[u8]) -> io::Result<()> {
        if self.frayed {
            self.disk.cut(self.bytes)?;
            self.frayed = false;
        }
        if let Err(error) = self.write_all(out) {
            // For a reader, a partial record would end the file. Truncation needs no free space.
            self.frayed = self.disk.cut(self.bytes).is_err();
            return Err(error);
        }
        self.bytes += out.len() as u64;
        Ok(())
    }

    /// Writes after the last complete record, wherever an earlier write has ended.
    fn write_all(&self, mut out: &[u8]) -> io::Result<()> {
        let mut place = self.bytes;
        while !out.is_empty() {
            match self.disk.write_at(out, place) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(bytes) => {
                    out = &out[bytes..];
                    place += bytes as u64;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// File that accepts only this many bytes of one write, and then cannot be truncated.
    #[derive(Debug)]
    struct FailsOnce(File, AtomicUsize);

    impl Disk for FailsOnce {
        fn write_at(&self, bytes: &[u8], place: u64) -> io::Result<usize> {
            match self.1.load(Ordering::Relaxed) {
                0 => Disk::write_at(&self.0, bytes, place),
                1 => Err(ErrorKind::StorageFull.into()),
                room => {
                    self.1.store(1, Ordering::Relaxed);
                    Disk::write_at(&self.0, &bytes[..room], place)
                }
            }
        }

        fn cut(&self, bytes: u64) -> io::Result<()> {
            match self.1.swap(0, Ordering::Relaxed) {
                0 => self.0.cut(bytes),
                _ => Err(ErrorKind::Other.into()),
            }
        }

        fn sync(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_could_not_be_cut_off_at_once_is_cut_off_before_the_next_record() {
        let path = std::env::temp_dir().join(format!("axon-frayed-{}", std::process::id()));
        let options = File::options().create_new(true).read(true).write(true).open(&path);
        let disk = FailsOnce(options.unwrap(), AtomicUsize::new(50));
        let mut log = Log::new(Arc::new(disk), 0, 0);
        // This writes two complete records of 21 bytes and part of the third.
        assert!(log.append(&[vec![1; 9], vec![2; 9], vec![3; 9]]).is_err());
        assert_eq!(fs::metadata(&path).unwrap().len(), 50);
        log.append(&[vec![4; 9]]).unwrap();
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        let mut expected = Vec::new();
        format::put(&mut expected, 0, &[4; 9]);
        assert_eq!(bytes, expected, "the second record would count as one that was kept");
    }
}
