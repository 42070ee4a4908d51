//! Available bandwidth on a server's ports (paper 004 §5.1).

use crate::server::HostPorts;
use crate::site::Site;
use alloc::collections::BTreeMap;
use axon_pipeline::{Control, Register};
use axon_wire::{PortNo, Rate, Span, Time};

/// Averaging window for port traffic.
const WINDOW: Span = Span::from_millis(100);
/// Nanoseconds per second.
const SECOND: u128 = 1_000_000_000;

/// Traffic on the ports to other servers, read from their registers.
#[derive(Clone, Debug)]
pub(super) struct Bandwidth {
    ports: BTreeMap<PortNo, Meter>,
    read_at: Time,
}

/// Meter of a port, one entry for each direction: out, in.
#[derive(Clone, Copy, Debug)]
struct Meter {
    rate: Rate,
    bytes: [u64; 2],
    available: [u64; 2],
}

impl Bandwidth {
    /// Creates meters for the links of a server, without traffic.
    pub(super) fn of(site: &Site) -> Bandwidth {
        let rate = |port: PortNo| site.own().ports[port.index()].rate;
        let meter =
            |rate: Rate| Meter { rate, bytes: [0; 2], available: [rate.bits_per_second(); 2] };
        let ports = HostPorts::links(site).map(|(port, _)| (port, meter(rate(port)))).collect();
        Bandwidth { ports, read_at: Time::ZERO }
    }

    /// Reads the registers if the averaging window has passed.
    pub(super) fn read(&mut self, now: Time, control: &dyn Control) {
        let elapsed = now.since(self.read_at);
        if elapsed < WINDOW {
            return;
        }
        for (&port, meter) in &mut self.ports {
            let registers = [Register::TxBytes(port), Register::RxBytes(port)];
            for (direction, register) in registers.into_iter().enumerate() {
                let bytes = control.read_register(register).unwrap_or(0);
                let used = bits_per_second(bytes.wrapping_sub(meter.bytes[direction]), elapsed);
                meter.available[direction] = meter.rate.bits_per_second().saturating_sub(used);
                meter.bytes[direction] = bytes;
            }
        }
        self.read_at = now;
    }

    /// Returns the available egress bandwidth on a port in bits per second.
    pub(super) fn to_send(&self, port: PortNo) -> u64 {
        self.ports.get(&port).map_or(0, |meter| meter.available[0])
    }

    /// Returns the available ingress bandwidth on a port in bits per second.
    pub(super) fn to_receive(&self, port: PortNo) -> u64 {
        self.ports.get(&port).map_or(0, |meter| meter.available[1])
    }
}

/// Returns a rate in bits per second, or 0 if no time has elapsed.
pub(super) fn bits_per_second(bytes: u64, elapsed: Span) -> u64 {
    let nanos = u128::from(elapsed.as_nanos()).max(1);
    u64::try_from(u128::from(bytes) * 8 * SECOND / nanos).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_bytes_over_time() {
        assert_eq!(bits_per_second(12_500_000, Span::from_millis(100)), 1_000_000_000);
        assert_eq!(bits_per_second(u64::MAX, Span::ZERO), u64::MAX);
    }
}
