//! Captures of single ports as pcapng files.

use crate::cli::output::{self, Output};
use crate::cli::say::Unwritten;
use anyhow::{Context, Result, anyhow, bail};
use axon_capture::pcap::{CaptureOptions, Direction, LinkType, Writer};
use axon_fabric::model::{Fabric, Network};
use axon_sim::capture::{Captured, port_by_name};
use axon_sim::links::WireEnd;
use std::io::BufWriter;
use std::path::PathBuf;

/// Maximum bytes of one file.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// All capture files of a run.
pub struct Pcaps {
    all: Vec<Pcap>,
}

struct Pcap {
    port: WireEnd,
    name: String,
    path: PathBuf,
    /// True if the link carries Axon packets rather than hosts' frames.
    axon: bool,
    writer: Writer<BufWriter<Output>>,
    /// First write error; the file takes no more frames afterwards.
    failure: Option<anyhow::Error>,
}

/// A port to capture, and its file.
pub struct Asked {
    port: WireEnd,
    name: String,
    /// Path of the file.
    pub path: PathBuf,
}

/// Parses `PORT=FILE` arguments.
///
/// # Errors
/// An argument is not of that form, or there is no such port.
pub(crate) fn asked(fabric: &Fabric, asked: &[String]) -> Result<Vec<Asked>> {
    let mut all: Vec<Asked> = Vec::new();
    for asked in asked {
        let form = || anyhow!("--pcap {asked}: expected PORT=FILE, such as s1-p0=s1.pcapng");
        let (name, path) = asked.split_once('=').ok_or_else(form)?;
        let Some(port) = port_by_name(fabric, name) else {
            bail!("--pcap {asked}: there is no port {name}; `axon check FILE` lists all ports");
        };
        if all.iter().any(|other| other.port == port) {
            bail!("--pcap {asked}: {name} is there twice; expected each port once");
        }
        all.push(Asked { port, name: name.to_owned(), path: PathBuf::from(path) });
    }
    Ok(all)
}

impl Pcaps {
    /// Creates the files.
    ///
    /// # Errors
    /// A file cannot be created.
    pub(crate) fn create(fabric: &Fabric, asked: Vec<Asked>) -> Result<Pcaps> {
        let create = |Asked { port, name, path }| {
            // Frames of simulated hosts are not secret: a file like all others of the run.
            let file = output::create(&path).map(BufWriter::new);
            let snap_bytes = CaptureOptions::to(&path).snap_bytes;
            let writer = file.and_then(|file| Writer::new(file, snap_bytes, FILE_BYTES_MAX));
            let writer = writer.with_context(|| format!("cannot write {}", output::name(&path)))?;
            let axon = between_switches(fabric, port);
            Ok(Pcap { port, name, path, axon, writer, failure: None })
        };
        let all = asked.into_iter().map(create).collect::<Result<_>>()?;
        Ok(Pcaps { all })
    }

    /// Returns captures without files.
    pub(crate) const fn none() -> Pcaps {
        Pcaps { all: Vec::new() }
    }

    /// Returns the ports.
    pub(crate) fn ports(&self) -> Vec<WireEnd> {
        self.all.iter().map(|pcap| pcap.port).collect()
    }

    /// Writes frames, in the order of their times. Skips files after a write error.
    pub(crate) fn write(&mut self, frames: &[Captured]) {
        for frame in frames {
            let end = WireEnd { station: frame.station, port: frame.port };
            let Some(index) = self.all.iter().position(|pcap| pcap.port == end) else { continue };
            let pcap = &mut self.all[index];
            if pcap.failure.is_some() {
                continue;
            }
            let link_type = match pcap.axon {
                true => LinkType::between_switches(&frame.frame),
                false => LinkType::ETHERNET,
            };
            let direction = if frame.outbound { Direction::Outbound } else { Direction::Inbound };
            let port = (index, pcap.name.as_str());
            let nanos = frame.at.as_nanos();
            let written = pcap.writer.record(port, link_type, direction, nanos, &frame.frame);
            pcap.failure = written.err().map(|error| pcap.not_whole(error));
        }
    }

    /// Flushes all files.
    pub(crate) fn finish(self, unwritten: &mut Unwritten) {
        for mut pcap in self.all {
            let failure = pcap.failure.take();
            let flushed = || pcap.writer.flush().err().map(|error| pcap.not_whole(error));
            unwritten.take(failure.or_else(flushed).map_or(Ok(()), Err));
        }
    }
}

impl Pcap {
    fn not_whole(&self, error: std::io::Error) -> anyhow::Error {
        anyhow!("{}: the capture is not whole: {error}", output::name(&self.path))
    }
}

/// Returns whether a port's link is between switches, or the controller's: hosts' frames there are
/// inside Axon packets.
fn between_switches(fabric: &Fabric, port: WireEnd) -> bool {
    let hosts = &fabric.hosts;
    let to_host = hosts.iter().any(|host| (host.switch, host.port) == (port.station, port.port));
    fabric.network == Network::Axon && port.station <= fabric.switches.len() && !to_host
}
