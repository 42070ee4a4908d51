//! The files of a store: the log, and the one that is to take its place.

use super::format;
use crate::incarnation::beside;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;

/// A file that records are appended to.
#[derive(Clone, Debug)]
pub(super) struct Log {
    pub(super) file: Arc<File>,
    pub(super) bytes: u64,
    /// Which rewrite of the store it is.
    pub(super) number: u64,
}

impl Log {
    /// Writes a log with these payloads into a file beside the store.
    pub(super) fn create(
        path: &Path,
        fabric: &str,
        number: u64,
        payloads: &[Vec<u8>],
    ) -> io::Result<Log> {
        let mut options = File::options();
        options.create(true).write(true).truncate(true).mode(0o600);
        let file = options.open(beside(path, ".new"))?;
        let header = format::header(fabric);
        (&file).write_all(&header)?;
        let mut log = Log { file: Arc::new(file), bytes: header.len() as u64, number };
        log.append(payloads)?;
        Ok(log)
    }

    /// Puts a log that is on the disk in the place of the store. The name is on the disk once the
    /// directory is.
    pub(super) fn take_place(&self, path: &Path) -> io::Result<()> {
        fs::rename(beside(path, ".new"), path)
    }

    /// Writes records at its end.
    pub(super) fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        let mut out = Vec::new();
        for payload in payloads {
            let offset = self.bytes + out.len() as u64;
            format::put(&mut out, offset, payload);
        }
        if let Err(error) = (&*self.file).write_all(&out) {
            // Half a record would end the file for whoever reads it. Making it shorter takes no
            // room.
            let _ = self.file.set_len(self.bytes);
            return Err(error);
        }
        self.bytes += out.len() as u64;
        Ok(())
    }
}
