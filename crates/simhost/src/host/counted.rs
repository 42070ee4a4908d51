//! Fast path for datagrams that are only counted.

use super::Host;
use crate::datagram;
use axon_wire::{FrameBuf, MacAddr, Time};

impl Host {
    /// Counts and consumes a frame for an application that only counts. Returns whether it did;
    /// otherwise nothing has changed.
    pub(super) fn take_counted(
        &mut self,
        now: Time,
        frame: &mut FrameBuf,
        complete_at: Time,
    ) -> bool {
        let nic_looks_at_it = self.bond.is_some() || self.stack.nic.dcb().is_some();
        let is_plain = !nic_looks_at_it && !self.apps.watches();
        if !is_plain || !self.reception.is_free(now, complete_at) {
            return false;
        }
        let contents = frame.contents();
        let Some(datagram) = datagram::parse(contents) else { return false };
        let to = MacAddr::destination_of(contents.stored);
        let ip = &self.stack.ip;
        let is_own = Some(datagram.target) == ip.address() && to == Some(ip.mac());
        if !is_own || !self.apps.count(now, &datagram, &mut self.stack) {
            return false;
        }
        self.reception.count();
        let nothing = FrameBuf::from_vec(Vec::new(), 0);
        self.stack.nic.recycle(std::mem::replace(frame, nothing));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::apps::{Likenesses, Plan};
    use crate::datagram::{self, Addresses};
    use crate::dcb_nic::{HostDcb, HostFlowControl};
    use crate::{HostConfig, HostVlan};
    use axon_node::{Input, Node, Shortcuts};
    use axon_wire::{PortNo, Rate, Span};
    use std::collections::BTreeSet;
    use std::net::Ipv4Addr;

    const MAC: MacAddr = MacAddr([2, 0x68, 0, 0, 0, 1]);
    const IP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
    const NOW: Time = Time::from_nanos(1_000);

    /// Returns a host that counts datagrams to port 9.
    fn host(change: impl FnOnce(&mut HostConfig)) -> Host {
        let mut config = HostConfig {
            mac: MAC,
            fixed: Some((IP, 8)),
            is_gateway: false,
            ipv6: None,
            announces: false,
            mtu: 1500,
            seed: 1,
            retry: Span::from_secs(1),
            dcb: None,
            vlan: HostVlan::default(),
            bond_ports: 0,
        };
        change(&mut config);
        let mut host = Host::new(config);
        host.handle(Time::ZERO, Input::Link { port: PortNo(0), up: true }, &mut Vec::new());
        host.start(Plan::UdpSink { port: 9 }, Time::ZERO);
        host
    }

    fn datagram(mac: MacAddr, ip: Ipv4Addr, port: u16) -> FrameBuf {
        let mut bytes = vec![0; datagram::HEADER_BYTES + 100];
        let source = (MacAddr([2, 0x68, 0, 0, 0, 2]), Ipv4Addr::new(10, 0, 0, 2), 4000);
        let ends = Addresses { source, target: (mac, ip, port) };
        datagram::emit(&mut bytes, ends, |payload| payload.fill(0x61));
        FrameBuf::new(&bytes)
    }

    #[test]
    fn a_datagram_that_is_only_counted_is_taken_and_every_other_is_left() {
        let mut plain = host(|_| ());
        let mut frame = datagram(MAC, IP, 9);
        assert!(plain.absorb(NOW, &mut frame, NOW));
        assert_eq!(plain.received(), 1);
        let refuses = |mut host: Host, sent: FrameBuf, complete_at: Time| {
            let mut frame = sent.clone();
            !host.absorb(NOW, &mut frame, complete_at) && frame == sent && host.received() == 0
        };
        let other = MacAddr([2, 0x68, 0, 0, 0, 3]);
        for (mac, ip, port) in [(other, IP, 9), (MAC, Ipv4Addr::new(10, 0, 0, 3), 9), (MAC, IP, 8)]
        {
            assert!(refuses(host(|_| ()), datagram(mac, ip, port), NOW), "{mac} {ip} {port}");
        }
        assert!(
            refuses(host(|_| ()), datagram(MAC, IP, 9), NOW + Span::from_ticks(1)),
            "not whole"
        );
        let mut slow = host(|_| ());
        slow.rx_ring_mut().set_rate(Some(Rate::gbps(1)));
        assert!(refuses(slow, datagram(MAC, IP, 9), NOW));
        let mut busy = host(|_| ());
        busy.rx_ring_mut().set_processing(Span::from_nanos(1));
        assert!(refuses(busy, datagram(MAC, IP, 9), NOW));
        assert!(refuses(host(|config| config.vlan.remembers = true), datagram(MAC, IP, 9), NOW));
        assert!(refuses(host(|config| config.bond_ports = 2), datagram(MAC, IP, 9), NOW));
        let dcb = HostDcb::new(Rate::gbps(10), HostFlowControl::Pause, Span::ZERO, 1518);
        assert!(refuses(host(|config| config.dcb = Some(dcb)), datagram(MAC, IP, 9), NOW));
        let mut watching = host(|_| ());
        let none = Likenesses::of(&[], 1500);
        let sink = Plan::ReplaySink { frames: none, from: None, to: BTreeSet::new() };
        watching.start(sink, NOW);
        assert!(refuses(watching, datagram(MAC, IP, 9), NOW));
        let mut closed = host(|_| ());
        closed.apps = Default::default();
        assert!(refuses(closed, datagram(MAC, IP, 9), NOW));
    }
}
