//! Independent captures at the hosts' ports, by dumpcap in the namespace of each host.
//!
//! Two captures run on each port from before its first frame in the demo until after its last. One
//! captures everything but bulk data, with whole frames. The other captures bulk data, with the
//! first `BULK_SNAP_BYTES` bytes of each frame, which is enough for all headers. The two filters
//! are complements, so no frame escapes both. tshark recognizes that the frames in the second
//! capture are truncated, not malformed.

use super::process::{Process, Stop};
use super::{gap, iperf};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Bytes captured from a frame of bulk data: Ethernet 14, IPv4 20, TCP with all options 60, and 2
/// to spare.
pub(crate) const BULK_SNAP_BYTES: u32 = 96;
/// Kernel buffer for one capture, in MiB. It holds a second from a 200 Mb/s port at 96 of 1514
/// bytes.
const BUFFER_MIB: u32 = 8;
/// Message that dumpcap writes to stderr when it has opened the port.
const OPEN: &str = "File: ";

/// Frames that one capture takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Take {
    /// Complete frames of everything but bulk data.
    Everything,
    /// Bulk data, only the headers.
    Bulk,
}

impl Take {
    /// Both kinds of captures.
    pub(crate) const ALL: [Take; 2] = [Take::Everything, Take::Bulk];

    /// Returns the name used in file names.
    pub const fn name(self) -> &'static str {
        match self {
            Take::Everything => "frames",
            Take::Bulk => "bulk",
        }
    }

    /// Returns the filter for the capture.
    pub(crate) fn filter(self) -> String {
        let bulk =
            format!("(tcp port {0} or udp port {0} or udp port {1})", iperf::PORT, gap::PORT);
        match self {
            Take::Everything => format!("not {bulk}"),
            Take::Bulk => bulk,
        }
    }
}

/// Runs dumpcap until stdin is closed, which also happens if the demo is killed. A signal would not
/// work, because a process between the demo and a host's processes forwards none.
const UNTIL_CLOSED: &str = r#"dumpcap "$@" & read -r _; kill -TERM $!; wait $!"#;

/// Returns the command that captures `port` to `file` for as long as its stdin is open.
pub(crate) fn command(take: Take, port: &str, file: &Path) -> Vec<String> {
    let snap = match take {
        Take::Everything => 65_535,
        Take::Bulk => BULK_SNAP_BYTES,
    };
    let (snap, buffer) = (snap.to_string(), BUFFER_MIB.to_string());
    let file = file.display().to_string();
    let filter = take.filter();
    let shell = ["sh", "-c", UNTIL_CLOSED, "dumpcap"];
    let options = ["-q", "-P", "-i", port, "-s", &snap, "-B", &buffer, "-w", &file, "-f", &filter];
    shell.iter().chain(&options).map(|word| (*word).to_owned()).collect()
}

/// Running capture, with its output file.
#[derive(Debug)]
pub struct Capture {
    process: Process,
    take: Take,
    /// Output file of the capture.
    pub file: PathBuf,
    host: String,
}

impl Capture {
    /// Starts `command`, which `command` has made for the same `take`.
    ///
    /// # Errors
    /// The command cannot be started.
    pub fn start(
        command: Command,
        take: Take,
        host: &str,
        file: PathBuf,
        logs: &Path,
    ) -> Result<Capture> {
        let stem = file.file_stem().context("a capture needs a file name")?;
        let name = format!("dumpcap-{}", stem.to_string_lossy());
        let process = Process::start(command, logs, &name)?;
        Ok(Capture { process, take, file, host: host.to_owned() })
    }

    /// Waits until dumpcap has opened the port.
    ///
    /// # Errors
    /// dumpcap is missing or ends at once, or the user stops the run.
    pub(crate) fn wait_open(&mut self, stop: &Stop) -> Result<()> {
        for _ in 0..1000 {
            if self.process.complaint().contains(OPEN) {
                return Ok(());
            }
            if !self.process.is_running() {
                break;
            }
            stop.sleep(Duration::from_millis(10))?;
        }
        bail!("no capture of {}: {}", self.host, self.process.complaint().trim())
    }

    /// Ends the capture. Returns the result, with the host and the number of missed frames.
    ///
    /// # Errors
    /// dumpcap does not end, or does not report the number of missed frames.
    pub(crate) fn end(self) -> Result<Captured> {
        let said = self.process.close(Duration::from_secs(10))?;
        let missed = missed(&said).with_context(|| {
            format!("dumpcap on {} does not say what it missed: {said}", self.host)
        })?;
        Ok(Captured { host: self.host, take: self.take, file: self.file, missed })
    }
}

/// Capture that has been completed.
#[derive(Clone, Debug)]
pub struct Captured {
    /// Host of the port.
    pub host: String,
    /// Kind of frames that were captured.
    pub take: Take,
    /// File with the frames, in pcap format.
    pub file: PathBuf,
    /// Number of frames that the kernel or dumpcap dropped.
    pub missed: u64,
}

/// Parses the second number in `Packets received/dropped on interface 'h1-p0': 10/0 (...)`.
fn missed(said: &str) -> Option<u64> {
    let line = said.lines().find(|line| line.starts_with("Packets received/dropped"))?;
    let counts = line.split("': ").nth(1)?.split(' ').next()?;
    counts.split('/').nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_dumpcap_missed_is_read_from_what_it_says() {
        let said = "Capturing on 'h1-p0'\nFile: x.pcap\nPackets captured: 10\n\
            Packets received/dropped on interface 'h1-p0': 10/3 \
            (pcap:3/dumpcap:0/flushed:0/ps_ifdrop:0) (76.9%)\n";
        assert_eq!(missed(said), Some(3));
        assert_eq!(missed("Capturing on 'h1-p0'"), None);
    }

    #[test]
    fn no_frame_escapes_both_captures() {
        let [everything, bulk] = Take::ALL.map(Take::filter);
        assert_eq!(everything, format!("not {bulk}"));
    }
}
