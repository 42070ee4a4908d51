//! What single ports carry, as pcapng files.

use anyhow::{Context, Result, anyhow, bail};
use axon_capture::pcap::{CaptureOptions, Direction, LinkType, Writer};
use axon_fabric::model::{Fabric, Network};
use axon_sim::capture::{Captured, port_by_name};
use axon_sim::links::WireEnd;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

/// Bytes of one file, at most.
const FILE_BYTES_MAX: u64 = 1 << 40;

/// All files of a run.
pub struct Pcaps {
    all: Vec<Pcap>,
    failure: Option<anyhow::Error>,
}

struct Pcap {
    port: WireEnd,
    name: String,
    path: PathBuf,
    /// The link carries Axon packets, not hosts' frames.
    axon: bool,
    writer: Writer,
}

/// A port to capture, and where to.
pub struct Asked {
    port: WireEnd,
    name: String,
    /// The file.
    pub path: PathBuf,
}

/// Reads what `PORT=FILE` ask for.
///
/// # Errors
/// Not of that form, or no such port.
pub fn asked(fabric: &Fabric, asked: &[String]) -> Result<Vec<Asked>> {
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
    /// No such place.
    pub fn create(fabric: &Fabric, asked: Vec<Asked>) -> Result<Pcaps> {
        let create = |Asked { port, name, path }| {
            // Frames of simulated hosts are nobody's secret: a file like all others of the run.
            let file = File::create(&path).map(BufWriter::new);
            let snap_bytes = CaptureOptions::to(&path).snap_bytes;
            let writer = file.and_then(|file| Writer::new(file, snap_bytes, FILE_BYTES_MAX));
            let writer = writer.with_context(|| path.display().to_string())?;
            let axon = between_switches(fabric, port);
            Ok(Pcap { port, name, path, axon, writer })
        };
        let all = asked.into_iter().map(create).collect::<Result<_>>()?;
        Ok(Pcaps { all, failure: None })
    }

    /// The ports.
    pub fn ports(&self) -> Vec<WireEnd> {
        self.all.iter().map(|pcap| pcap.port).collect()
    }

    /// Why a file could not be written, if so.
    pub fn failure(&self) -> Option<String> {
        self.failure.as_ref().map(|error| format!("{error:#}"))
    }

    /// Writes frames, in the order of their times.
    pub fn write(&mut self, frames: &[Captured]) {
        for frame in frames {
            let end = WireEnd { station: frame.station, port: frame.port };
            let Some(index) = self.all.iter().position(|pcap| pcap.port == end) else { continue };
            let pcap = &mut self.all[index];
            let link_type = match pcap.axon {
                true => LinkType::between_switches(&frame.frame),
                false => LinkType::ETHERNET,
            };
            let direction = if frame.outbound { Direction::Outbound } else { Direction::Inbound };
            let port = (index, pcap.name.as_str());
            let nanos = frame.at.as_nanos();
            let written = pcap.writer.record(port, link_type, direction, nanos, &frame.frame);
            if let Err(error) = written.with_context(|| pcap.path.display().to_string()) {
                self.failure.get_or_insert(error);
            }
        }
    }

    /// Brings everything to the files.
    ///
    /// # Errors
    /// What could not be written.
    pub fn finish(mut self) -> Result<()> {
        for pcap in &mut self.all {
            let flushed = pcap.writer.flush();
            flushed.with_context(|| pcap.path.display().to_string())?;
        }
        self.failure.map_or(Ok(()), Err)
    }
}

/// Whether a port's link is between switches, or the controller's: hosts' frames there are
/// inside Axon packets.
fn between_switches(fabric: &Fabric, port: WireEnd) -> bool {
    let hosts = &fabric.hosts;
    let to_host = hosts.iter().any(|host| (host.switch, host.port) == (port.station, port.port));
    fabric.network == Network::Axon && port.station <= fabric.switches.len() && !to_host
}
