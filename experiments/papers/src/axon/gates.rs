//! A line of devices in gates, measured at their pins, cycle by cycle.
//!
//! A runtime takes whole frames, so a fabric with `dataplane: rtl` does not show that the gates cut
//! through; their pins do. Frames go one way through a line, so its devices are simulated one after
//! the other: the next gets each frame in the cycle in which its first byte leaves the one before.

use anyhow::{Context, Result, ensure};
use axon_node::{PortKind, RouteKey};
use axon_plane::PlaneConfig;
use axon_rtl::driver::{self, Driver};
use axon_rtl::pins::{Left, Pins};
use axon_rtl::registers::port;
use axon_rtl::{Model, ModelError};
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::{MacAddr, PortNo, Route, Span};

/// Ports of a device towards the first and towards the last host.
const NEAR: PortNo = PortNo(0);
const FAR: PortNo = PortNo(1);
const PORTS: u16 = 4;
const WIDTH: HopWidth = HopWidth::Eight;
const SENDER: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
const RECEIVER: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
/// Length of a cycle: 125 MHz.
const CYCLE: Span = Span::from_nanos(8);

/// Devices between two hosts, or between two Axons.
pub(crate) struct Gates {
    devices: Vec<Pins>,
    has_hosts: bool,
}

/// Returns the reason why nothing can be measured on gates; `None` if it can.
///
/// # Errors
/// There is a library, and it cannot be used.
pub(crate) fn missing() -> Result<Option<&'static str>> {
    match Model::load(WIDTH) {
        Err(ModelError::Missing { .. }) => Ok(Some("not built: make rtl-model")),
        Err(error) => Err(error.into()),
        Ok(_) => Ok(None),
    }
}

/// Returns cycles as a span.
pub(crate) fn span(cycles: u64) -> Span {
    CYCLE * cycles
}

impl Gates {
    /// Makes a line of devices between two hosts.
    ///
    /// # Errors
    /// The model is missing.
    pub(crate) fn between_hosts(devices: usize) -> Result<Gates> {
        Gates::line(devices, true)
    }

    /// Makes a line of devices between two Axons.
    ///
    /// # Errors
    /// The model is missing.
    pub(crate) fn between_axons(devices: usize) -> Result<Gates> {
        Gates::line(devices, false)
    }

    fn line(count: usize, has_hosts: bool) -> Result<Gates> {
        let mut config = PlaneConfig::with_ports(PORTS, MacAddr([2; 6]));
        config.hop_width = WIDTH;
        let mut devices = Vec::new();
        for at in 0..count {
            let model = Model::load(WIDTH)?;
            let (size, mut pins) = (model.size(), Pins::new(model));
            let mut driver = Driver::new(&mut pins, size, &config);
            let host_if =
                |is_end| if is_end && has_hosts { PortKind::Host } else { PortKind::Axon };
            driver.set_kind(&mut pins, NEAR, host_if(at == 0));
            driver.set_kind(&mut pins, FAR, host_if(at + 1 == count));
            [NEAR, FAR].into_iter().for_each(|port| drop(pins.set_link(port, true)));
            if at == 0 && has_hosts {
                let route: Route = (0..count).map(|_| FAR).collect::<axon_wire::Hops>().into();
                let key = RouteKey::to(RECEIVER);
                driver.install(&mut pins, NEAR, key, route).context("a route of a few hops")?;
            }
            devices.push(pins);
        }
        Ok(Gates { devices, has_hosts })
    }

    /// Selects whether frames leave a device only when they are whole.
    pub(crate) fn store_frames(&mut self, is_stored: bool) {
        for pins in &mut self.devices {
            driver::set(pins, NEAR, &port::IS_STORED, is_stored.into());
        }
    }

    /// Sends a frame of this length without FCS through the line, with all outputs idle. Returns
    /// the cycles of each device from the first byte of the preamble in to that out.
    ///
    /// # Errors
    /// The frame does not arrive as it was sent.
    pub(crate) fn pass(&mut self, frame_bytes: usize) -> Result<Vec<u64>> {
        let sent = self.frame(frame_bytes)?;
        let mut frame = sent.clone();
        let mut cycles = Vec::new();
        for pins in &mut self.devices {
            let begin = pins.cycle();
            pins.feed(NEAR, &frame, None);
            pins.run(u64::MAX);
            let left = pins.take_left().context("a frame that leaves")?;
            let Left::Sent { port: FAR, frame: passed, intact: true, began, .. } = left else {
                anyhow::bail!("the frame took another way: {left:?}");
            };
            cycles.push(began - begin);
            frame = passed;
        }
        let is_same = if self.has_hosts { frame == sent } else { frame.len() == sent.len() };
        ensure!(is_same, "a frame of {frame_bytes} bytes was changed");
        Ok(cycles)
    }

    /// Returns a frame as it comes to the first device: of a host, or behind a header with a hop
    /// for each device and one more.
    fn frame(&self, bytes: usize) -> Result<Vec<u8>> {
        let mut frame = Vec::new();
        if !self.has_hosts {
            let hops = vec![FAR; self.devices.len() + 1];
            frame.resize(WIDTH.header_bytes(hops.len()), 0);
            let built = header::emit(&mut frame, WIDTH, PacketType::Control, &hops, &[]);
            built.ok().context("a header of a few hops")?;
        }
        frame.extend(RECEIVER.0.into_iter().chain(SENDER.0).chain([8, 0]));
        frame.resize(bytes, 0);
        Ok(frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_gates_passes_frames_of_hosts_and_of_axons() {
        if let Some(missing) = missing().unwrap() {
            assert!(std::env::var_os("CI").is_none(), "{missing}");
            return;
        }
        let mut line = Gates::between_hosts(3).unwrap();
        let cycles = line.pass(1514).unwrap();
        assert_eq!(cycles[..2], [26, 18]);
        assert_eq!(line.pass(60).unwrap(), cycles, "whatever the length");
        assert_eq!(Gates::between_axons(2).unwrap().pass(60).unwrap(), [18, 18]);
        line.store_frames(true);
        let stored = line.pass(1514).unwrap();
        assert!(stored.iter().all(|&cycles| cycles > 1514), "{stored:?}");
    }
}
