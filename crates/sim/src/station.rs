//! What stands at the ends of links: switches, the controller, hosts, and test nodes.

use crate::arp_host::ArpHost;
use crate::baseline::Baseline;
use crate::capture::Taps;
use crate::device::Timing;
use crate::host::Host;
use crate::jack::Jack;
use crate::trace::StationTrace;
use axon_control::node::{ControllerNode, SwitchNode};
use axon_plane::{Action, Drop, Input, Node};
use axon_wire::{FrameBuf, PortNo, Time};

/// A node in one of its lives, or the lack of one.
pub enum Body {
    /// Without power.
    Off,
    /// A switch.
    Switch(Box<SwitchNode<FrameBuf>>),
    /// The controller.
    Controller(Box<ControllerNode<FrameBuf>>),
    /// A host.
    Host(Box<Host>),
    /// A host that speaks ARP only.
    ArpHost(Box<ArpHost>),
    /// A switch of another network, or PortLand's fabric manager.
    Baseline(Box<Baseline>),
    /// Any other node: tests bring their own.
    Other(Box<dyn Node<FrameBuf> + Send>),
}

impl Body {
    #[inline]
    pub(crate) fn handle(
        &mut self,
        now: Time,
        input: Input<FrameBuf>,
        out: &mut Vec<Action<FrameBuf>>,
    ) {
        match self {
            Body::Off => {}
            Body::Switch(node) => node.handle(now, input, out),
            Body::Controller(node) => node.handle(now, input, out),
            Body::Host(node) => node.handle(now, input, out),
            Body::ArpHost(node) => node.handle(now, input, out),
            Body::Baseline(node) => node.handle(now, input, out),
            Body::Other(node) => node.handle(now, input, out),
        }
    }

    #[inline]
    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Body::Off => None,
            Body::Switch(node) => node.deadline(),
            Body::Controller(node) => node.deadline(),
            Body::Host(node) => node.deadline(),
            Body::ArpHost(node) => node.deadline(),
            Body::Baseline(node) => node.deadline(),
            Body::Other(node) => node.deadline(),
        }
    }

    #[inline]
    pub(crate) fn waits_for(&self, port: PortNo) -> bool {
        match self {
            Body::Off => false,
            Body::Switch(node) => node.waits_for(port),
            Body::Controller(node) => node.waits_for(port),
            Body::Host(node) => node.waits_for(port),
            Body::ArpHost(node) => node.waits_for(port),
            Body::Baseline(node) => node.waits_for(port),
            Body::Other(node) => node.waits_for(port),
        }
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !matches!(self, Body::Off)
    }

    /// Whether it is in the middle of ways: a switch or a controller.
    pub(crate) fn is_transit(&self) -> bool {
        matches!(self, Body::Switch(_) | Body::Controller(_) | Body::Baseline(_))
    }

    /// Whether it is a host, whose network card drops a frame with a bad FCS.
    pub(crate) fn is_host(&self) -> bool {
        matches!(self, Body::Host(_) | Body::ArpHost(_))
    }
}

/// What has passed between the world and one life of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Frames handed to it, or dropped by its network card.
    pub received: u64,
    /// Frames it put on a wire.
    pub sent: u64,
    /// Of those, frames on a port with nothing plugged in.
    pub nowhere: u64,
    /// Frames that had ended, by [`Drop`], as it said; [`Drop::BadFcs`] of a host is its
    /// network card's. [`Drop::PowerLost`] is what it held when its power went.
    pub dropped: [u64; Drop::ALL.len()],
}

impl Accounts {
    pub(crate) fn add(&mut self, other: &Accounts) {
        self.received += other.received;
        self.sent += other.sent;
        self.nowhere += other.nowhere;
        for (sum, count) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += count;
        }
    }
}

/// A `TxDone` that is owed to a station.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Owed {
    pub(crate) due: Time,
    pub(crate) port: PortNo,
    /// An event will see to it; otherwise it is seen to before the next input.
    pub(crate) planned: bool,
}

/// A place in the world, whatever stands there.
pub struct Station {
    /// `s1`, `h1`, `c1`.
    pub name: String,
    /// What stands there now.
    pub body: Body,
    pub(crate) jacks: Vec<Jack>,
    /// Wires that are busy.
    pub(crate) owed: Vec<Owed>,
    /// The earliest of them.
    pub(crate) owed_first: Time,
    /// Its number in the world.
    pub(crate) number: u32,
    /// Events that it has caused.
    pub(crate) sequence: u64,
    /// When its next wake-up is due, if one is in the queue.
    pub(crate) armed: Option<Time>,
    /// Wake-ups in a row that did not move its deadline past them.
    pub(crate) stuck: u32,
    pub(crate) trace: StationTrace,
    pub(crate) timing: Timing,
    /// Of this life.
    pub(crate) accounts: Accounts,
    /// Of all lives before.
    pub(crate) past: Accounts,
    /// What did not balance when the first life with such a fault ended.
    pub(crate) fault: Option<String>,
    /// Lives so far: the incarnation of the one that runs, from 1.
    pub(crate) lives: u64,
    /// Its frames look like a host's to the pipeline of a switch.
    pub(crate) host: bool,
    /// Ports that somebody looks at.
    pub(crate) taps: Option<Box<Taps>>,
}

impl Station {
    pub(crate) fn new(name: String, number: usize) -> Station {
        Station {
            name,
            body: Body::Off,
            jacks: Vec::new(),
            owed: Vec::new(),
            owed_first: Time::MAX,
            number: u32::try_from(number).expect("fewer than 2^32 stations"),
            sequence: 0,
            armed: None,
            stuck: 0,
            trace: StationTrace::default(),
            timing: Timing::default(),
            accounts: Accounts::default(),
            past: Accounts::default(),
            fault: None,
            lives: 0,
            host: false,
            taps: None,
        }
    }

    /// The jack of a port; ports come into being when they are first used.
    pub(crate) fn jack(&mut self, port: PortNo) -> &mut Jack {
        let index = port.index();
        if index >= self.jacks.len() {
            self.jacks.resize_with(index + 1, Jack::default);
        }
        &mut self.jacks[index]
    }

    /// No `TxDone` is owed for this port any more.
    pub(crate) fn forgive(&mut self, port: PortNo) {
        self.owed.retain(|owed| owed.port != port);
        self.owed_first = self.owed.iter().map(|owed| owed.due).min().unwrap_or(Time::MAX);
    }

    /// Takes the earliest `TxDone` that is due at or before `now`: by time, then by port.
    #[inline]
    pub(crate) fn take_due(&mut self, now: Time) -> Option<Owed> {
        if self.owed_first > now {
            return None;
        }
        let (index, _) = self.owed.iter().enumerate().min_by_key(|&(_, &owed)| owed)?;
        let owed = self.owed.swap_remove(index);
        self.owed_first = self.owed.iter().map(|owed| owed.due).min().unwrap_or(Time::MAX);
        Some(owed)
    }

    /// What has passed over all its lives.
    pub fn accounts(&self) -> Accounts {
        let mut sum = self.past.clone();
        sum.add(&self.accounts);
        sum
    }
}
