//! Recording of a running node. Every input goes to a file, with a hash of the answer, so that
//! [`replay`](crate::replay) can run the node again.
//!
//! A recording never stops or delays its node, because a separate thread writes the file. A full
//! disk ends the recording, with a line in the log, and so does a slow one. The part that has been
//! written until then can be replayed. A node that starts on a full disk, for example after a
//! crash, runs without a recording.

use crate::agent::AgentArguments;
use crate::record_queue::Queue;
use anyhow::{Context, Result};
use axon_capture::recording::{self, EndReason, Header, Writer};
use axon_fabric::FabricText;
use axon_node::{Action, Input, NodeKind, Stored};
use axon_wire::{Incarnation, MacAddr, Time};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// Default maximum size of all recordings of one node, in bytes: 1 GiB.
pub const RECORD_BYTES_MAX: u64 = 1 << 30;
/// File name extension of recordings.
pub const EXTENSION: &str = "axrec";
/// Maximum number of recordings of one node: `s1.axrec`, `s1.2.axrec`, and so on.
const NUMBER_MAX: u32 = 10_000;

/// Options for a recording.
#[derive(Clone, Debug)]
pub struct RecordOptions {
    /// Recording file. An existing file is kept: `s1.axrec` then becomes `s1.2.axrec`, and so on.
    pub file: PathBuf,
    /// Maximum size, in bytes, of the file and its numbered predecessors from earlier incarnations
    /// together. The recording ends before this size is exceeded.
    pub bytes_max: u64,
    /// Fabric file of the node. `None` for an agent without one.
    pub fabric: Option<FabricText>,
}

/// Data required to rebuild a node, beside its name and its incarnation.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum Setup {
    Switch {
        fabric: FabricText,
        seed: u64,
    },
    /// Controller; `stored` is the initial content of its store.
    Controller {
        fabric: FabricText,
        seed: u64,
        started_at: Time,
        stored: Vec<Stored>,
    },
    Agent {
        of: AgentSource,
        seed: u64,
        mac: MacAddr,
        mtu_bytes: u64,
    },
}

/// Source of the options of an agent.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) enum AgentSource {
    /// Host of the agent's name in a fabric.
    Fabric(FabricText),
    /// Arguments of `axon agent`.
    Arguments(AgentArguments),
}

/// Identity of a node to be recorded.
pub(crate) struct Identity {
    pub kind: NodeKind,
    pub incarnation: Incarnation,
    pub digest: u64,
    pub setup: Setup,
}

/// Settings for opening a recording.
#[derive(Clone, Debug)]
pub struct RecordSetup {
    file: PathBuf,
    bytes_max: u64,
    header: Header,
}

/// Returns the digest of an entire configuration, including the field names in this binary.
pub(crate) fn digest(config: &impl std::fmt::Debug) -> u64 {
    recording::hash(format!("{config:?}").as_bytes())
}

impl RecordSetup {
    /// Creates the settings for a recording of node `name` with these ports. Time zero of the
    /// recording is `unix_nanos` nanoseconds after the beginning of 1970.
    pub(crate) fn new(
        options: &RecordOptions,
        identity: &Identity,
        name: &str,
        ports: Vec<String>,
        unix_nanos: u64,
    ) -> Result<RecordSetup> {
        let header = Header {
            made_by: concat!("axon ", env!("CARGO_PKG_VERSION")).into(),
            kind: identity.kind,
            name: name.into(),
            incarnation: identity.incarnation,
            ports,
            unix_nanos,
            config_digest: identity.digest,
            setup: postcard::to_allocvec(&identity.setup).context("the setup as bytes")?,
        };
        Ok(RecordSetup { file: options.file.clone(), bytes_max: options.bytes_max, header })
    }
}

/// Recording of a node, or none.
#[derive(Default)]
pub(crate) struct Recording {
    open: Option<Open>,
    /// Recording that has ended early. Its thread may still be writing.
    ended: Option<Open>,
}

struct Open {
    node: String,
    file: PathBuf,
    writer: Writer<Queue>,
}

impl Recording {
    /// Creates the file, readable only by its owner, and writes its header. If there is no room for
    /// it, there is no recording.
    ///
    /// # Errors
    /// The file cannot be created, or its header exceeds the maximum size.
    pub(crate) fn open(setup: Option<&RecordSetup>) -> Result<Recording> {
        let Some(setup) = setup else {
            return Ok(Recording::default());
        };
        match Open::new(setup) {
            Ok(open) => Ok(Recording { open: Some(open), ended: None }),
            Err(error) if is_for_want_of_room(&error) => {
                let (node, file) = (&setup.header.name, setup.file.display());
                tracing::error!(node, %file, %error, "ALARM: no recording");
                Ok(Recording::default())
            }
            Err(error) => {
                Err(error).with_context(|| format!("cannot record into {}", setup.file.display()))
            }
        }
    }

    /// Records an input before the node handles it.
    #[inline]
    pub(crate) fn input(&mut self, now: Time, input: &Input) {
        if let Some(open) = &mut self.open {
            open.writer.input(now, input);
        }
    }

    /// Records the node's answer to the last input.
    #[inline]
    pub(crate) fn answer(&mut self, actions: &[Action]) {
        let Some(open) = &mut self.open else {
            return;
        };
        if !open.writer.out_mut().has_room() {
            return self.fall_behind();
        }
        match open.writer.answer(actions) {
            Ok(None) => {}
            Ok(Some(_)) => {
                let (file, bytes) = (open.file.display(), open.writer.bytes());
                let node = &open.node;
                tracing::warn!(node, %file, bytes, "size bound reached: the recording ends");
                self.leave();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Returns the time of the next flush by [`Recording::round`].
    pub(crate) fn flush_at(&self) -> Option<Time> {
        self.open.as_ref().and_then(|open| open.writer.flush_at())
    }

    /// Flushes old data to the file. Call this in every round.
    pub(crate) fn round(&mut self, now: Time) {
        if self.flush_at().is_none_or(|due| due > now) {
            return;
        }
        if self.open.as_mut().is_some_and(|open| !open.writer.out_mut().has_room()) {
            return self.fall_behind();
        }
        let flushed = self.open.as_mut().map_or(Ok(()), |open| open.writer.flush());
        if let Err(error) = flushed {
            self.fail(&error);
        }
    }

    /// Ends the recording when its node is stopped. Waits for a recording that has ended early.
    pub(crate) fn finish(&mut self) {
        if let Some(open) = &mut self.open {
            match open.writer.finish(EndReason::Stopped) {
                Ok(()) => self.leave(),
                Err(error) => self.fail(&error),
            }
        }
        let Some(mut ended) = self.ended.take() else { return };
        if let Err(error) = ended.writer.out_mut().end() {
            let (node, file) = (&ended.node, ended.file.display());
            tracing::error!(node, %file, %error, "ALARM: the recording is cut short");
        }
    }

    /// Stops recording. The thread writes the queued data and ends.
    fn leave(&mut self) {
        self.ended = self.open.take();
        self.ended.iter_mut().for_each(|ended| ended.writer.out_mut().close());
    }

    /// Ends the recording because the queue is full. The end of the file states the reason.
    fn fall_behind(&mut self) {
        let Some(open) = &mut self.open else { return };
        let cut = open.writer.cut(EndReason::Behind);
        let (node, file, records) = (&open.node, open.file.display(), open.writer.records());
        match cut {
            Ok(()) => {
                tracing::error!(
                    node, %file, records,
                    "ALARM: the disk is too slow: the recording ends; a replay comes up to here"
                );
                self.leave();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Ends the recording after an error. The node continues without it.
    fn fail(&mut self, error: &io::Error) {
        if let Some(Open { node, file, writer }) = self.open.take() {
            let (file, records) = (file.display(), writer.records());
            tracing::error!(node, %file, records, %error, "ALARM: the recording ends here");
        }
    }
}

impl Open {
    /// Opens the file. Removes it again if its header cannot be written.
    fn new(RecordSetup { file, bytes_max, header }: &RecordSetup) -> io::Result<Open> {
        let (out, file, before) = create(file)?;
        let room = bytes_max.saturating_sub(before);
        let written = Writer::new(Queue::Direct(out), header, room);
        match written.and_then(|mut writer| writer.out_mut().start().map(|()| writer)) {
            Ok(writer) => Ok(Open { node: header.name.clone(), file, writer }),
            Err(error) => {
                if std::fs::metadata(&file).is_ok_and(|found| found.is_file()) {
                    let _ = std::fs::remove_file(&file);
                }
                // A limit that is too low for any recording is a configuration error.
                if before == 0 || Writer::new(io::sink(), header, *bytes_max).is_err() {
                    return Err(error);
                }
                let why = format!("recordings of earlier incarnations have {before} bytes");
                Err(io::Error::new(ErrorKind::StorageFull, why))
            }
        }
    }
}

/// Returns whether the disk is full, or the recordings with this name have reached their maximum
/// number or total size.
fn is_for_want_of_room(error: &io::Error) -> bool {
    use ErrorKind::{AlreadyExists, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | AlreadyExists)
}

/// Creates the file, or the next numbered one if a file with that name exists. A device is opened.
/// Also returns the total size of the existing files, in bytes.
fn create(path: &Path) -> io::Result<(File, PathBuf, u64)> {
    let mut before = 0;
    for number in 1..=NUMBER_MAX {
        let path = numbered(path, number);
        match recording::create_private(&path) {
            Ok(file) => return Ok((file, path, before)),
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
            Err(_) => match std::fs::metadata(&path)? {
                found if found.is_file() => before += found.len(),
                _ => return Ok((File::options().write(true).open(&path)?, path, before)),
            },
        }
    }
    Err(io::Error::new(ErrorKind::AlreadyExists, format!("{NUMBER_MAX} recordings are there")))
}

/// Returns the file name for this recording number: `s1.axrec`, `s1.2.axrec`, `s1.3.axrec`, and so
/// on.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.into();
    }
    match path.extension() {
        Some(extension) => {
            let ending = format!("{number}.{}", extension.to_string_lossy());
            path.with_extension(ending)
        }
        None => path.with_extension(number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::FrameBuf;
    use axon_wire::NodeId;

    /// Returns the header of a switch with this set-up.
    fn header(setup: Vec<u8>) -> Header {
        Header {
            made_by: "a test".into(),
            kind: NodeKind::Switch,
            name: "s1".into(),
            incarnation: Incarnation { node: NodeId(1), number: 1 },
            ports: Vec::new(),
            unix_nanos: 0,
            config_digest: 0,
            setup,
        }
    }

    #[test]
    fn a_node_that_starts_on_a_full_disk_runs_without_a_recording() {
        let of = AgentSource::Fabric(
            FabricText::of(
                "a.yaml".as_ref(),
                "name: a\ntopology: {line: {switches: 2}}\n".into(),
                None,
            )
            .unwrap(),
        );
        let setup = Setup::Agent { of, seed: 1, mac: MacAddr([2; 6]), mtu_bytes: 1500 };
        let incarnation = Incarnation::default();
        let identity = Identity { kind: NodeKind::Agent, incarnation, digest: 1, setup };
        let recorded = |file: &str, bytes_max| {
            let options = RecordOptions { file: file.into(), bytes_max, fabric: None };
            let setup = RecordSetup::new(&options, &identity, "h1", Vec::new(), 0).unwrap();
            Recording::open(Some(&setup)).map(|recording| recording.open.is_some())
        };
        assert!(recorded("/dev/null", RECORD_BYTES_MAX).unwrap());
        assert!(!recorded("/dev/full", RECORD_BYTES_MAX).unwrap());
        let error = recorded("/dev/null/h1.axrec", RECORD_BYTES_MAX).unwrap_err();
        assert_eq!(error.to_string(), "cannot record into /dev/null/h1.axrec");
        assert!(recorded("/dev/null", 10).is_err(), "not even the header");
    }

    /// Records frames of 9000 bytes into `out` until the recording ends by itself. Returns the
    /// number of frames.
    fn record_until_it_ends(out: std::io::PipeWriter, bytes_max: u64) -> (Recording, u64) {
        let out = File::from(std::os::fd::OwnedFd::from(out));
        let mut writer = Writer::new(Queue::Direct(out), &header(Vec::new()), bytes_max).unwrap();
        writer.out_mut().start().unwrap();
        let open = Open { node: "s1".into(), file: "a pipe".into(), writer };
        let mut recording = Recording { open: Some(open), ended: None };
        let frame = FrameBuf::new(&[7; 9_000]);
        let mut inputs = 0;
        while recording.open.is_some() && inputs < 100_000 {
            let frame = frame.clone();
            let now = Time::from_nanos(inputs);
            let port = axon_wire::PortNo(0);
            recording.input(now, &Input::Frame { port, frame, complete_at: now, intact: true });
            recording.answer(&[]);
            inputs += 1;
        }
        (recording, inputs)
    }

    /// Reads everything. Returns the number of records.
    fn read(mut disk: std::io::PipeReader, ending: EndReason) -> u64 {
        let mut bytes = Vec::new();
        io::Read::read_to_end(&mut disk, &mut bytes).unwrap();
        let mut reader = recording::Reader::new(&bytes[..]).unwrap();
        let mut records = 0;
        while reader.next_record().unwrap().is_some() {
            records += 1;
        }
        assert_eq!(reader.ending(), Some(recording::Ending::Whole(ending)));
        records
    }

    #[test]
    fn a_disk_that_takes_nothing_ends_the_recording_and_not_the_node() {
        // Nothing reads from the pipe, so it acts like a stalled disk.
        let (disk, out) = std::io::pipe().unwrap();
        let (done, wait) = std::sync::mpsc::channel();
        let node = std::thread::spawn(move || {
            done.send(record_until_it_ends(out, 1 << 30).1).unwrap();
        });
        let inputs = wait.recv_timeout(std::time::Duration::from_secs(60));
        let inputs = inputs.expect("the node goes on although its disk does not");
        node.join().unwrap();
        assert!(inputs < 100_000, "its recording has ended");
        // The disk recovers. Everything that was queued is then written, with the reason for the
        // end.
        let records = read(disk, EndReason::Behind);
        assert!(records * 9_000 > 15 << 20 && records < inputs, "{records} of {inputs}");
    }

    #[test]
    fn a_node_that_stops_waits_for_a_recording_that_has_ended_before() {
        for (bytes_max, ending) in [(300_000, EndReason::SizeBound), (1 << 30, EndReason::Behind)] {
            let (disk, out) = std::io::pipe().unwrap();
            let (done, wait) = std::sync::mpsc::channel();
            let node = std::thread::spawn(move || {
                let (mut recording, _) = record_until_it_ends(out, bytes_max);
                done.send("ended").unwrap();
                recording.finish();
                done.send("stopped").unwrap();
            });
            assert_eq!(wait.recv().unwrap(), "ended");
            let early = wait.recv_timeout(std::time::Duration::from_millis(50));
            assert!(early.is_err(), "{ending:?}: its disk has not taken all of it yet");
            assert!(read(disk, ending) > 20);
            assert_eq!(wait.recv().unwrap(), "stopped");
            node.join().unwrap();
        }
    }

    #[test]
    fn a_new_incarnation_leaves_the_recording_of_the_last_one_alone() {
        let folder = std::env::temp_dir().join(format!("axon-record-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let made: Vec<PathBuf> =
            (0..3).map(|_| create(&folder.join("s1.axrec")).unwrap().1).collect();
        let names = ["s1.axrec", "s1.2.axrec", "s1.3.axrec"];
        assert_eq!(made, names.map(|name| folder.join(name)));
        std::fs::remove_dir_all(&folder).unwrap();
        assert_eq!(create(Path::new("/dev/null")).unwrap().1, Path::new("/dev/null"));
    }

    #[test]
    fn a_node_that_crashes_again_and_again_records_no_more_than_its_bound() {
        let folder = std::env::temp_dir().join(format!("axon-records-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let header = header(vec![0; 1_000]);
        let setup = RecordSetup { file: folder.join("s1.axrec"), bytes_max: 5_000, header };
        let incarnation = || {
            let mut recording = Recording::open(Some(&setup)).unwrap();
            recording.finish();
        };
        (0..100).for_each(|_| incarnation());
        let files = std::fs::read_dir(&folder).unwrap().flatten();
        let bytes: Vec<u64> = files.map(|file| file.metadata().unwrap().len()).collect();
        let sum: u64 = bytes.iter().sum();
        assert!(sum <= setup.bytes_max && sum > 4_000, "{sum} bytes in {} files", bytes.len());
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_recording_that_cannot_begin_leaves_no_file() {
        let folder = std::env::temp_dir().join(format!("axon-no-record-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        let (next, file) = (folder.join("s1.2.axrec"), folder.join("s1.axrec"));
        std::fs::write(&file, "of an earlier incarnation").unwrap();
        let header = header(Vec::new());
        let mut setup = RecordSetup { file: file.clone(), bytes_max: 10, header };
        let error = Recording::open(Some(&setup)).err().expect("no room for a header");
        assert!(format!("{error:#}").contains("the header alone takes"), "{error:#}");
        assert!(!next.exists());
        assert_eq!(std::fs::read(&file).unwrap(), b"of an earlier incarnation");
        (setup.file, setup.bytes_max) = ("/dev/full".into(), RECORD_BYTES_MAX);
        assert!(Recording::open(Some(&setup)).unwrap().open.is_none());
        assert!(Path::new("/dev/full").exists(), "a device is not ours to remove");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
