//! A frame of the reference, its parsed fields, and each change of it, on plain vectors.

use axon_node::Drop;
use axon_pipeline::{FrameType, Label, Modify, Tunnel};
use axon_wire::header::{self, HOPS_MAX, HeaderView, HopWidth, PacketType};
use axon_wire::{MacAddr, PortNo, Priority};

/// A frame in flight, and the number of bytes that may still be prepended.
#[derive(Clone)]
pub struct Frame {
    pub bytes: Vec<u8>,
    pub headroom: usize,
    /// True if the frame begins with an Axon header.
    pub is_axon: bool,
}

/// Parsed fields of an Ethernet frame.
pub struct Read {
    pub outer: FrameType,
    pub inner: FrameType,
    /// Offset of the header behind EtherType and tag.
    pub at: usize,
    pub destination: MacAddr,
    pub source: MacAddr,
    pub address: Option<[u8; 4]>,
    pub label: Option<u32>,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn type_of(ethertype: Option<u16>) -> FrameType {
    match ethertype {
        Some(0x0806) => FrameType::Arp,
        Some(0x0800) => FrameType::Ipv4,
        Some(0x86dd) => FrameType::Ipv6,
        Some(0x8847) => FrameType::Mpls,
        Some(0x8100) => FrameType::Tagged,
        _ => FrameType::Other,
    }
}

/// Parses a frame. The rest of a frame behind an Axon header may be too short for its addresses.
pub fn read(frame: &[u8]) -> Read {
    let outer = type_of(word(frame, 12));
    let (inner, at) = match outer {
        FrameType::Tagged => (type_of(word(frame, 16)), 18),
        outer => (outer, 14),
    };
    let rest = frame.get(at..).unwrap_or(&[]);
    let address = (inner == FrameType::Ipv4 && rest.len() >= 20)
        .then(|| [rest[16], rest[17], rest[18], rest[19]]);
    let label = (inner == FrameType::Mpls && rest.len() >= 4)
        .then(|| u32::from(rest[0]) << 12 | u32::from(rest[1]) << 4 | u32::from(rest[2]) >> 4);
    let byte = |at: usize| frame.get(at).copied().unwrap_or(0);
    let mac = |at: usize| MacAddr(std::array::from_fn(|index| byte(at + index)));
    Read { outer, inner, at, destination: mac(0), source: mac(6), address, label }
}

/// Fields of a frame that begins with an Axon header, of which nothing else is parsed.
pub fn read_axon() -> Read {
    let mac = MacAddr::BROADCAST;
    let outer = FrameType::Axon;
    Read { outer, inner: outer, at: 0, destination: mac, source: mac, address: None, label: None }
}

/// Sums 16-bit words in one's complement.
fn sum(words: impl IntoIterator<Item = u16>) -> u16 {
    words.into_iter().fold(0, |sum: u16, word| {
        let (sum, carry) = sum.overflowing_add(word);
        sum + u16::from(carry)
    })
}

impl Frame {
    fn grow(&mut self, at: usize, count: usize) -> Result<(), Drop> {
        if self.headroom < count {
            return Err(Drop::NoHeadroom);
        }
        self.headroom -= count;
        self.bytes.splice(at..at, vec![0; count]);
        Ok(())
    }

    fn shrink(&mut self, at: usize, count: usize) -> Result<(), Drop> {
        if self.bytes.len() < at + count {
            return Err(Drop::Malformed);
        }
        self.bytes.drain(at..at + count);
        self.headroom += count;
        Ok(())
    }

    fn read(&self) -> Result<Read, Drop> {
        if self.is_axon { Err(Drop::Malformed) } else { Ok(read(&self.bytes)) }
    }

    /// Offset of the IP header, and whether it is IPv4.
    fn ip(&self) -> Result<(usize, bool), Drop> {
        let Read { inner, at, .. } = self.read()?;
        let rest = self.bytes.len().saturating_sub(at);
        match inner {
            FrameType::Ipv4 if rest >= 20 => Ok((at, true)),
            FrameType::Ipv6 if rest >= 40 => Ok((at, false)),
            _ => Err(Drop::Malformed),
        }
    }

    fn ttl(&self) -> Result<u8, Drop> {
        let (at, is_v4) = self.ip()?;
        Ok(self.bytes[at + if is_v4 { 8 } else { 7 }])
    }

    fn set_ttl(&mut self, ttl: u8) -> Result<(), Drop> {
        let (at, is_v4) = self.ip()?;
        if is_v4 {
            self.set_checked(at, 8, ttl)
        } else {
            self.bytes[at + 7] = ttl
        }
        Ok(())
    }

    fn tos(&self) -> Result<u8, Drop> {
        let (at, is_v4) = self.ip()?;
        let [first, second] = [self.bytes[at], self.bytes[at + 1]];
        Ok(if is_v4 { second } else { (first & 0xf) << 4 | second >> 4 })
    }

    fn set_tos(&mut self, tos: u8) -> Result<(), Drop> {
        let (at, is_v4) = self.ip()?;
        if is_v4 {
            self.set_checked(at, 1, tos);
            return Ok(());
        }
        self.bytes[at] = self.bytes[at] & 0xf0 | tos >> 4;
        self.bytes[at + 1] = (tos & 0xf) << 4 | self.bytes[at + 1] & 0xf;
        Ok(())
    }

    /// HC' = ~(~HC + ~m + m') (RFC 1624, equation 3).
    fn set_checked(&mut self, at: usize, place: usize, value: u8) {
        let even = at + place / 2 * 2;
        let before = word(&self.bytes, even).unwrap();
        self.bytes[at + place] = value;
        let after = word(&self.bytes, even).unwrap();
        let old = word(&self.bytes, at + 10).unwrap();
        let new = !sum([!old, !before, after]);
        self.bytes[at + 10..at + 12].copy_from_slice(&new.to_be_bytes());
    }

    fn set_ethertype(&mut self, ethertype: u16) -> Result<(), Drop> {
        let at = self.read()?.at;
        self.bytes[at - 2..at].copy_from_slice(&ethertype.to_be_bytes());
        Ok(())
    }

    /// Sets the EtherType by the version of the IP packet that follows.
    fn uncover(&mut self) -> Result<(), Drop> {
        let at = self.read()?.at;
        match self.bytes.get(at).map(|byte| byte >> 4) {
            Some(4) => self.set_ethertype(0x0800),
            Some(6) => self.set_ethertype(0x86dd),
            _ => Err(Drop::Malformed),
        }
    }

    /// The top label: its offset, traffic class with bottom bit, and TTL.
    fn top(&self) -> Result<(usize, u8, u8), Drop> {
        let Read { label, at, .. } = self.read()?;
        label.ok_or(Drop::Malformed)?;
        Ok((at, self.bytes[at + 2] & 0xf, self.bytes[at + 3]))
    }

    fn write_label(&mut self, at: usize, label: Label, low: u8, ttl: u8) {
        let [_, a, b, c] = (label.0 << 4).to_be_bytes();
        self.bytes[at..at + 4].copy_from_slice(&[a, b, c | low, ttl]);
    }

    fn pop_label(&mut self) -> Result<(), Drop> {
        let (at, low, ttl) = self.top()?;
        if ttl <= 1 {
            return Err(Drop::TtlExpired);
        }
        self.shrink(at, 4)?;
        if low & 1 == 1 {
            self.uncover()?;
            return self.set_ttl(ttl - 1);
        }
        let (at, ..) = self.top()?;
        self.bytes[at + 3] = ttl - 1;
        Ok(())
    }

    fn push_label(&mut self, label: Label) -> Result<(), Drop> {
        let Read { inner, at, .. } = self.read()?;
        let (low, ttl) = match inner {
            FrameType::Mpls => {
                let (_, low, ttl) = self.top()?;
                (low & 0xe, ttl)
            }
            _ => (1, self.ttl()?),
        };
        self.grow(at, 4)?;
        self.write_label(at, label, low, ttl);
        self.set_ethertype(0x8847)
    }

    fn push_tunnel(&mut self, tunnel: &Tunnel) -> Result<(), Drop> {
        let (tos, (at, _)) = (self.tos()?, self.ip()?);
        let added = 20 + tunnel.shim.len();
        let total = u16::try_from(self.bytes.len() - at + added).map_err(|_| Drop::Oversized)?;
        self.grow(at, added)?;
        let [a, b] = total.to_be_bytes();
        let mut header = vec![0x45, tos, a, b, 0, 0, 0x40, 0, tunnel.ttl, tunnel.protocol, 0, 0];
        header.extend(tunnel.source.octets());
        header.extend(tunnel.destination.octets());
        let words = (0..10).map(|index| word(&header, 2 * index).unwrap());
        let checksum = !sum(words);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        header.extend(&tunnel.shim);
        self.bytes[at..at + added].copy_from_slice(&header);
        self.set_ethertype(0x0800)
    }

    fn pop_tunnel(&mut self, shim_bytes: u8) -> Result<(), Drop> {
        let (at, is_v4) = self.ip()?;
        let (version, words) = (self.bytes[at] >> 4, usize::from(self.bytes[at] & 0xf));
        if !is_v4 || version != 4 || words < 5 {
            return Err(Drop::Malformed);
        }
        let outer = self.tos()?;
        self.shrink(at, words * 4 + usize::from(shim_bytes))?;
        self.uncover()?;
        let inner = self.tos()?;
        match (outer & 3, inner & 3) {
            (3, 0) => Err(Drop::Malformed),
            (3, 1 | 2) => self.set_tos(inner | 3),
            _ => Ok(()),
        }
    }

    /// Sets an address: the destination at 0, the source at 6.
    pub fn set_mac(&mut self, at: usize, mac: MacAddr) -> Result<(), Drop> {
        self.read()?;
        let place = self.bytes.get_mut(at..at + 6).ok_or(Drop::Malformed)?;
        place.copy_from_slice(&mac.0);
        Ok(())
    }

    /// Applies one change.
    pub fn modify(
        &mut self,
        change: &Modify,
        (ingress, width): (PortNo, HopWidth),
        tunnel: impl Fn(u16) -> Tunnel,
    ) -> Result<(), Drop> {
        match change {
            Modify::DecrementTtl => match self.ttl()? {
                0 | 1 => Err(Drop::TtlExpired),
                ttl => self.set_ttl(ttl - 1),
            },
            Modify::SetDscp(dscp) => {
                let tos = self.tos()?;
                self.set_tos(dscp << 2 | tos & 3)
            }
            Modify::MplsPush(label) => self.push_label(*label),
            Modify::MplsSwap(label) => match self.top()? {
                (_, _, 0 | 1) => Err(Drop::TtlExpired),
                (at, low, ttl) => {
                    self.write_label(at, *label, low, ttl - 1);
                    Ok(())
                }
            },
            Modify::MplsPop => self.pop_label(),
            Modify::TunnelPush(number) => self.push_tunnel(&tunnel(*number)),
            Modify::TunnelPop { shim_bytes } => self.pop_tunnel(*shim_bytes),
            Modify::SetDestination(mac) => self.set_mac(0, *mac),
            Modify::SetSource(mac) => self.set_mac(6, *mac),
            Modify::AxonPush(route) => {
                self.read()?;
                let mut header = vec![0; width.header_bytes(route.hops.len())];
                header::emit(&mut header, width, PacketType::Ethernet, &route.hops, &[])
                    .map_err(|_| Drop::NoHeadroom)?;
                let layer = Priority::new(route.layer.value()).unwrap();
                header::set_priority(&mut header, width, layer);
                self.grow(0, header.len())?;
                self.bytes[..header.len()].copy_from_slice(&header);
                self.is_axon = true;
                Ok(())
            }
            Modify::AxonHop => self.axon_hop(ingress, width),
            Modify::AxonError => {
                let view = self.axon(width)?;
                let (forward, reverse) = (view.forward(), view.reverse());
                let priority = view.fields().priority;
                self.write_axon(width, PacketType::Error, (&forward, &reverse), priority)
            }
            Modify::AxonStrip => {
                let header_bytes = self.axon(width)?.header_bytes();
                self.is_axon = false;
                self.shrink(0, header_bytes)
            }
        }
    }

    fn axon(&self, width: HopWidth) -> Result<HeaderView<'_>, Drop> {
        let view = HeaderView::parse(&self.bytes, width).map_err(|_| Drop::Malformed);
        if self.is_axon { view } else { Err(Drop::Malformed) }
    }

    fn axon_hop(&mut self, ingress: PortNo, width: HopWidth) -> Result<(), Drop> {
        let view = self.axon(width)?;
        let (forward, reverse) = (view.forward(), view.reverse());
        let Some((_, rest)) = forward.split_first() else { return Err(Drop::Malformed) };
        if reverse.len() == HOPS_MAX {
            return Err(Drop::Malformed);
        }
        let priority = view.fields().priority;
        // A hop keeps as many bits of the ingress as its width has.
        let way_back: Vec<PortNo> = [ingress].iter().chain(reverse.iter()).copied().collect();
        self.write_axon(width, view.packet_type(), (rest, &way_back), priority)
    }

    /// Writes a header over one of the same length.
    fn write_axon(
        &mut self,
        width: HopWidth,
        packet_type: PacketType,
        (forward, reverse): (&[PortNo], &[PortNo]),
        priority: Priority,
    ) -> Result<(), Drop> {
        header::emit(&mut self.bytes, width, packet_type, forward, reverse)
            .map_err(|_| Drop::Malformed)?;
        header::set_priority(&mut self.bytes, width, priority);
        Ok(())
    }
}
