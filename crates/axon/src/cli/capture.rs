//! Options of a capture, shared by every daemon.

use axon_capture::pcap::CaptureOptions;
use std::path::PathBuf;

/// Capture of all ports as pcapng.
#[derive(clap::Args)]
#[group(id = "capture", multiple = true)]
pub struct Arguments {
    /// Capture all frames at the ports into this pcapng file; one that exists is overwritten if it
    /// is yours alone
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,
    /// Keep at most this many bytes of each frame; 65535 by default
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pcap_snap_bytes: Option<u32>,
    /// Stop before the file is larger than this many bytes; 256 MiB by default
    #[arg(long, value_name = "BYTES", requires = "pcap")]
    pcap_bytes_max: Option<u64>,
}

impl Arguments {
    /// Returns the options of the capture, if one is requested.
    pub(crate) fn options(&self) -> Option<CaptureOptions> {
        let mut options = CaptureOptions::to(self.pcap.as_ref()?);
        options.snap_bytes = self.pcap_snap_bytes.unwrap_or(options.snap_bytes);
        options.file_bytes_max = self.pcap_bytes_max.unwrap_or(options.file_bytes_max);
        Some(options)
    }
}
