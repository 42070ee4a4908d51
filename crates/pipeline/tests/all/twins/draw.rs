//! Frames and entries drawn from bytes, of a random number generator or of a fuzzer.
//!
//! All are drawn from small ranges, so that frames match entries and entries overlap; some are
//! invalid.

use super::super::reference::{Reference, value_of};
use axon_pipeline::{
    Action, Change, Field, FrameType, Group, Interface, Label, MacKey, Mirror, Modify, PortOptions,
    Prefix, Target, TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::header::{self, HopWidth, PacketType};
use axon_wire::{MacAddr, PortNo, Priority, Route};
use std::net::Ipv4Addr;

/// Ports of the switch.
pub const PORTS: u16 = 4;

/// Draws from bytes; returns `None` at their end.
pub struct Draw<'a>(pub &'a mut dyn FnMut() -> Option<u8>);

impl Draw<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        (self.0)()
    }

    /// Draws a number below `bound`, which is 256 at most.
    pub fn below(&mut self, bound: u16) -> Option<u16> {
        Some(u16::from(self.byte()?) % bound)
    }

    pub fn one_in(&mut self, bound: u16) -> Option<bool> {
        Some(self.below(bound)? == 0)
    }

    pub fn of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        Some(all[usize::from(self.below(all.len() as u16)?)])
    }

    /// Draws a port, mostly an existing one.
    pub fn port(&mut self) -> Option<PortNo> {
        Some(PortNo(if self.one_in(60)? { PORTS + self.below(2)? } else { self.below(PORTS)? }))
    }

    fn mac(&mut self) -> Option<MacAddr> {
        Some(match self.below(20)? {
            0 => MacAddr([0xff; 6]),
            1 => MacAddr([1, 0x80, 0xc2, 0, 0, 0x0e]),
            index => MacAddr([2, 0, 0, 0, 0, index as u8 % 6]),
        })
    }

    fn address(&mut self) -> Option<Ipv4Addr> {
        let third = self.of(&[0, 0, 1, 128])?;
        Some(Ipv4Addr::new(10, self.of(&[0, 0, 0, 1])?, third, self.of(&[0, 1, 2, 3, 255])?))
    }

    fn label(&mut self) -> Option<u32> {
        self.of(&[0, 1, 2, 3, 16, (1 << 20) - 1])
    }

    /// Draws a frame of any kind; some are truncated or too long.
    pub fn frame(&mut self) -> Option<Vec<u8>> {
        let mut frame = if self.one_in(6)? { self.axon()? } else { Vec::new() };
        frame.extend(self.mac()?.0);
        frame.extend(self.mac()?.0);
        match self.below(16)? {
            0..4 => frame.extend([0x81, 0, self.byte()? & 0xe1, 5]),
            4 => frame.extend([0x88, 0xa8, self.byte()? & 0xe1, 5]),
            _ => {}
        }
        match self.below(16)? {
            0..6 => {
                frame.extend([8, 0]);
                self.ipv4(&mut frame, 2)?;
            }
            6 | 7 => {
                frame.extend([0x86, 0xdd]);
                self.ipv6(&mut frame)?;
            }
            8..12 => self.labels(&mut frame)?,
            12 => frame.extend([8, 6, 0, 1, 8, 0, 6, 4]),
            13 => frame.extend([0x88, 8, 0, 1, 0, 0]),
            14 => frame.extend([0x81, 0, 0, 5, 0x81, 0, 0, 6, 8, 0]),
            _ => frame.extend([0x88, 0xb5, self.byte()?]),
        }
        match self.below(24)? {
            0 => frame.truncate(usize::from(self.byte()?) % (frame.len() + 1)),
            1 => frame.resize(1508 + usize::from(self.below(20)?), 0x55),
            _ => frame.extend(std::iter::repeat_n(0x55, usize::from(self.below(40)?))),
        }
        Some(frame)
    }

    /// Draws an Axon header with a few hops of 8 bits.
    fn axon(&mut self) -> Option<Vec<u8>> {
        let hops = |draw: &mut Self| -> Option<Vec<PortNo>> {
            let count = 0..draw.below(4)?;
            count.map(|_| Some(PortNo(draw.of(&[0, 1, 2, 254])?))).collect()
        };
        let (forward, reverse) = (hops(self)?, hops(self)?);
        let width = HopWidth::Eight;
        let mut header = vec![0; width.header_bytes(forward.len() + reverse.len())];
        let packet_type = self.of(&[PacketType::Ethernet, PacketType::Control])?;
        header::emit(&mut header, width, packet_type, &forward, &reverse).ok()?;
        header::set_priority(&mut header, width, Priority::from_low_bits(self.byte()?));
        Some(header)
    }

    /// Draws an IPv4 packet, with another one in it as far as `depth` allows.
    fn ipv4(&mut self, frame: &mut Vec<u8>, depth: u8) -> Option<()> {
        let at = frame.len();
        let first = if self.one_in(16)? { self.byte()? } else { self.of(&[0x45, 0x45, 0x46])? };
        frame.extend([first, self.of(&[0, 1, 2, 3, 0xb8, 0xbb, 0xff])?, 0, 60, 0, 1, 0, 0]);
        frame.extend([self.of(&[0, 1, 2, 64, 255])?, self.of(&[4, 6, 17])?, 0, 0]);
        frame.extend([192, 168, 0, self.byte()?]);
        frame.extend(self.address()?.octets());
        let checksum = match self.one_in(12)? {
            true => u16::from(self.byte()?) * 257,
            false => {
                let words =
                    frame[at..].chunks(2).map(|two| u64::from(two[0]) << 8 | u64::from(two[1]));
                let rest = (words.sum::<u64>() % 0xffff) as u16;
                !rest
            }
        };
        frame[at + 10..at + 12].copy_from_slice(&checksum.to_be_bytes());
        frame.extend(std::iter::repeat_n(0, (usize::from(first & 0xf) * 4).saturating_sub(20)));
        if depth > 0 && self.one_in(3)? {
            frame.extend(std::iter::repeat_n(7, self.of(&[0, 0, 4, 8])?));
            return if self.one_in(4)? { self.ipv6(frame) } else { self.ipv4(frame, depth - 1) };
        }
        frame.extend([0, self.below(4)? as u8, 0, 80]);
        Some(())
    }

    fn ipv6(&mut self, frame: &mut Vec<u8>) -> Option<()> {
        frame.extend([0x60 | self.of(&[0, 0xf])?, self.byte()?, 0, 0, 0, 0, 17]);
        frame.push(self.of(&[0, 1, 2, 64])?);
        frame.extend([0xfd; 32]);
        Some(())
    }

    fn labels(&mut self, frame: &mut Vec<u8>) -> Option<()> {
        frame.extend([0x88, 0x47]);
        let count = self.below(3)? + 1;
        for left in (0..count).rev() {
            let [_, a, b, c] = (self.label()? << 4).to_be_bytes();
            let bottom = u8::from(left == 0) ^ u8::from(self.one_in(20)?);
            let traffic_class = self.of(&[0, 2, 0xe])?;
            frame.extend([a, b, c | traffic_class | bottom, self.of(&[0, 1, 2, 64])?]);
        }
        match self.below(4)? {
            0 => self.ipv6(frame),
            1 => {
                frame.push(self.byte()?);
                Some(())
            }
            _ => self.ipv4(frame, 1),
        }
    }

    fn target(&mut self) -> Option<Target> {
        Some(match self.below(16)? {
            0 if self.one_in(6)? => Target::Tables,
            0 => Target::Drop,
            1 => Target::Cpu,
            2..5 => Target::Port(self.port()?),
            5..10 => Target::Interface(self.below(6)?),
            10..13 => Target::Group(self.below(4)?),
            _ => Target::Spread(self.below(4)?),
        })
    }

    fn action(&mut self) -> Option<Action> {
        let mut action = Action::from(self.target()?);
        let count = match self.below(16)? {
            0..6 => 0,
            6..12 => 1,
            12..15 => 2 + self.below(3)?,
            _ => 5 + self.below(5)?,
        };
        for _ in 0..count {
            action = action.with(self.modify()?);
        }
        Some(match self.below(10)? {
            0 => action.mirrored(Mirror::Cpu),
            1 => action.mirrored(Mirror::Port(self.port()?)),
            _ => action,
        })
    }

    fn modify(&mut self) -> Option<Modify> {
        let label =
            |draw: &mut Self| Some(Label(if draw.one_in(40)? { 1 << 20 } else { draw.label()? }));
        Some(match self.below(24)? {
            0..6 => Modify::DecrementTtl,
            6 => Modify::SetDscp(if self.one_in(12)? { 64 } else { self.byte()? % 64 }),
            7 | 8 => Modify::MplsPush(label(self)?),
            9 | 10 => Modify::MplsSwap(label(self)?),
            11..14 => Modify::MplsPop,
            14 | 15 => Modify::TunnelPush(self.below(3)?),
            16 | 17 => {
                let shim_bytes = self.of(&[0, 0, 0, 4, 4, 8, 32, 33])?;
                Modify::TunnelPop { shim_bytes }
            }
            18 => Modify::SetDestination(self.mac()?),
            19 => Modify::SetSource(self.mac()?),
            20 | 21 => {
                // 122 hops take all the room before a frame; 255 is not a port.
                let hops = 0..self.of(&[0, 1, 2, 9, 122, 122, 123])?;
                let last = if self.one_in(20)? { 255 } else { 254 };
                let hop = |_| Some(PortNo(self.of(&[0, 1, 63, last])?));
                Modify::AxonPush(hops.map(hop).collect::<Option<Route>>()?)
            }
            22 if self.one_in(3)? => Modify::AxonError,
            22 => Modify::AxonHop,
            _ => Modify::AxonStrip,
        })
    }

    pub fn udlk(&mut self) -> Option<Udlk> {
        let bytes = |first, last| Field::Bytes { first, last };
        let fields = match self.below(9)? {
            0 => vec![bytes(0, 5)],
            1 => vec![Field::Ingress, bytes(12, 13)],
            2 => vec![bytes(30, 33), bytes(22, 22)],
            3 => vec![Field::Priority, bytes(6, 7)],
            4 => vec![bytes(14, 17), Field::Ingress, Field::Priority],
            5 => vec![bytes(26, 37)],
            6 => vec![bytes(124, 127), bytes(12, 12)],
            7 => vec![bytes(34, 36), bytes(14, 23)],
            _ => {
                let field = |draw: &mut Self| {
                    Some(match draw.below(8)? {
                        0 => Field::Ingress,
                        1 => Field::Priority,
                        _ => {
                            let first = draw.byte()? % 130;
                            let length = draw.of(&[0, 0, 1, 3, 5, 15, 255])?;
                            bytes(first, first.wrapping_add(length))
                        }
                    })
                };
                let count = self.below(4)?;
                (0..count).map(|_| field(self)).collect::<Option<Vec<Field>>>()?
            }
        };
        let frame_type = match self.one_in(3)? {
            true => None,
            false => Some(self.of(&FrameType::ALL)?),
        };
        Some(Udlk { frame_type, fields })
    }

    /// Draws an entry, mostly one that a frame drawn now would match.
    fn tcam_entry(&mut self, tables: &Reference) -> Option<TcamEntry> {
        let udlk = UdlkId(if self.one_in(80)? { 15 + self.byte()? % 2 } else { self.byte()? % 4 });
        let frame = self.frame()?;
        let (ingress, priority) = (PortNo(self.below(PORTS)?), self.byte()? % 8);
        let mut value = match tables.udlk(udlk) {
            Some(udlk) => value_of(udlk, &frame, ingress, priority),
            None => vec![0; 6],
        };
        let mut mask = Vec::new();
        for value in &mut value {
            mask.push(match self.below(8)? {
                0..5 => 0,
                5 => 0xf0,
                6 => self.byte()?,
                _ => 0xff,
            });
            *value &= mask[mask.len() - 1];
        }
        match self.below(90)? {
            0 => value.push(0),
            1 => mask.truncate(1),
            2..5 => value.iter_mut().for_each(|byte| *byte |= 1),
            _ => {}
        }
        let mut action = self.action()?;
        if self.one_in(5)? {
            action.target = Target::Tables;
            action.modify.truncate(usize::from(self.one_in(8)?));
            if self.one_in(2)? {
                action.mirror = Some(Mirror::Port(self.port()?));
            }
        }
        Some(TcamEntry { udlk, value, mask, action })
    }

    fn tcam_index(&mut self) -> Option<u16> {
        let index = self.of(&[0, 1, 2, 63, 64, 65, 511, 512, 513, 1023, 1024, 1099])?;
        Some(if self.one_in(100)? { 1100 } else { index })
    }

    /// Draws a change of the tables as they are in `tables`.
    pub fn change(&mut self, tables: &Reference) -> Option<Change> {
        let is_removal = self.one_in(6)?;
        macro_rules! some {
            ($value:expr) => {
                if is_removal { None } else { Some($value) }
            };
        }
        Some(match self.below(32)? {
            0 => Change::Udlk(UdlkId(self.byte()? % 4), some!(self.udlk()?)),
            1 => Change::Udlk(UdlkId(self.of(&[4, 15, 16])?), some!(self.udlk()?)),
            2 | 3 => self.interface(is_removal)?,
            4 => self.group(is_removal)?,
            5 => self.tunnel(is_removal)?,
            6..15 => Change::Tcam(self.tcam_index()?, some!(self.tcam_entry(tables)?)),
            15..18 => {
                let key = MacKey { bridge: self.below(2)?, mac: self.mac()? };
                Change::Mac(key, some!(self.action()?))
            }
            18..22 => Change::Ipv4(self.address()?, some!(self.action()?)),
            22..25 => {
                let label = if self.one_in(40)? { 1 << 20 } else { self.label()? };
                Change::Mpls(label, some!(self.action()?))
            }
            25..29 => Change::Prefix(self.prefix()?, some!(self.action()?)),
            29 => Change::Miss(some!(self.action()?)),
            _ => {
                let options = PortOptions {
                    bridge: self.below(2)?,
                    routed: !self.one_in(4)?,
                    learn: self.one_in(3)?,
                    axon: self.one_in(4)?,
                };
                Change::Port(self.port()?, some!(options))
            }
        })
    }

    fn prefix(&mut self) -> Option<Prefix> {
        let length = self.of(&[0, 8, 15, 16, 17, 23, 24, 30, 31, 32])?;
        let mask = u32::MAX.checked_shl(32 - u32::from(length)).unwrap_or(0);
        let address = self.address()?;
        Some(match self.below(60)? {
            0 => Prefix { address, length: 33 },
            1 => Prefix { address, length },
            _ => Prefix { address: Ipv4Addr::from_bits(address.to_bits() & mask), length },
        })
    }

    /// Draws a change of an interface, mostly of an existing one.
    pub fn interface(&mut self, is_removal: bool) -> Option<Change> {
        let number = if self.one_in(30)? { 6 } else { self.below(6)? };
        let port = self.port()?;
        let mac = |draw: &mut Self| Some(if draw.one_in(2)? { Some(draw.mac()?) } else { None });
        let interface = Interface { port, destination: mac(self)?, source: mac(self)? };
        Some(Change::Interface(number, (!is_removal).then_some(interface)))
    }

    pub fn group(&mut self, is_removal: bool) -> Option<Change> {
        let number = if self.one_in(30)? { 4 } else { self.below(4)? };
        let count = self.of(&[0, 1, 1, 2, 3, 4])?;
        let first = self.below(6)?;
        let mut interfaces: Vec<u16> = (0..count).map(|index| (first + index) % 6).collect();
        if self.one_in(30)? {
            interfaces.push(first);
        }
        Some(Change::Group(number, (!is_removal).then_some(Group { interfaces })))
    }

    pub fn tunnel(&mut self, is_removal: bool) -> Option<Change> {
        let number = if self.one_in(30)? { 3 } else { self.below(3)? };
        let tunnel = Tunnel {
            source: self.address()?,
            destination: self.address()?,
            protocol: 4,
            ttl: if self.one_in(30)? { 0 } else { self.of(&[1, 64, 255])? },
            shim: vec![7; if self.one_in(30)? { 36 } else { self.of(&[0, 0, 4, 8, 32])? }],
        };
        Some(Change::Tunnel(number, (!is_removal).then_some(tunnel)))
    }
}
