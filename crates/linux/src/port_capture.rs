//! Captures the frames at a node's ports and writes them to a file. A write error ends the capture,
//! but the node continues.

use anyhow::Context;
use axon_capture::pcap::{CaptureOptions, Direction, LinkType, Writer};
use axon_wire::{Span, Time};
use std::io;

/// Longest time before captured frames are written to the file, while frames arrive.
const FLUSH: Span = Span::from_secs(1);

/// Capture of a node, or none.
#[derive(Default)]
pub(crate) struct PortCapture {
    writer: Option<Writer>,
    flushed: Time,
}

impl PortCapture {
    /// Creates the capture file, if configured.
    ///
    /// # Errors
    /// The file cannot be created.
    pub(crate) fn open(options: Option<&CaptureOptions>) -> anyhow::Result<PortCapture> {
        let create = |options: &CaptureOptions| {
            let created = Writer::create(options);
            created.with_context(|| format!("cannot write {}", options.path.display()))
        };
        Ok(PortCapture { writer: options.map(create).transpose()?, flushed: Time::ZERO })
    }

    /// Returns whether frames are captured.
    #[inline]
    pub(crate) const fn is_on(&self) -> bool {
        self.writer.is_some()
    }

    /// Writes a frame of `node` at port number `port.0` with device `port.1`, at `unix_nanos`
    /// nanoseconds since 1970.
    pub(crate) fn record(
        &mut self,
        node: &str,
        port: (usize, &str),
        (link_type, direction): (LinkType, Direction),
        unix_nanos: u64,
        frame: &[u8],
    ) {
        let written = (self.writer.as_mut())
            .map_or(Ok(()), |w| w.record(port, link_type, direction, unix_nanos, frame));
        self.keep(node, written);
    }

    /// Flushes the file if that is due.
    pub(crate) fn round(&mut self, node: &str, now: Time) {
        if self.is_on() && now.since(self.flushed) >= FLUSH {
            self.flushed = now;
            self.finish(node);
        }
    }

    /// Flushes the file and ends the capture.
    pub(crate) fn finish(&mut self, node: &str) {
        let flushed = self.writer.as_mut().map_or(Ok(()), Writer::flush);
        self.keep(node, flushed);
    }

    fn keep(&mut self, node: &str, written: io::Result<()>) {
        if let Err(error) = written {
            tracing::error!(node, %error, "ALARM: the capture ends here");
            self.writer = None;
        }
    }
}
