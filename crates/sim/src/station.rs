//! What stands at the ends of links: switches, the controller, hosts, and test nodes.

use crate::arp_host::ArpHost;
use crate::host::Host;
use crate::links::LinkId;
use axon_control::node::{ControllerNode, SwitchNode};
use axon_plane::{Action, Drop, Input, Node};
use axon_wire::{FrameBuf, Time};

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
    /// Any other node: tests bring their own.
    Other(Box<dyn Node<FrameBuf>>),
}

impl Body {
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
            Body::Other(node) => node.handle(now, input, out),
        }
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        match self {
            Body::Off => None,
            Body::Switch(node) => node.deadline(),
            Body::Controller(node) => node.deadline(),
            Body::Host(node) => node.deadline(),
            Body::ArpHost(node) => node.deadline(),
            Body::Other(node) => node.deadline(),
        }
    }

    /// Whether it has power.
    pub fn is_on(&self) -> bool {
        !matches!(self, Body::Off)
    }
}

/// What a port of a station is doing.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Jack {
    /// The link plugged in, and which end of it.
    pub(crate) link: Option<(LinkId, usize)>,
    /// A frame is on the wire.
    pub(crate) busy: bool,
    /// Counts frames and losses of carrier: a `TxDone` of an older turn is not owed.
    pub(crate) turn: u32,
}

/// What has passed between the world and one life of a station.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Accounts {
    /// Frames handed to it.
    pub received: u64,
    /// Frames it put on a wire.
    pub sent: u64,
    /// Frames it said had ended, by [`Drop`].
    pub dropped: [u64; Drop::ALL.len()],
}

impl Accounts {
    pub(crate) fn add(&mut self, other: &Accounts) {
        self.received += other.received;
        self.sent += other.sent;
        for (sum, count) in self.dropped.iter_mut().zip(other.dropped) {
            *sum += count;
        }
    }
}

/// A place in the world, whatever stands there.
pub struct Station {
    /// `s1`, `h1`, `c1`.
    pub name: String,
    /// What stands there now.
    pub body: Body,
    pub(crate) jacks: Vec<Jack>,
    /// Lives so far: the incarnation of the one that runs, from 1.
    pub(crate) lives: u64,
    /// Events that it has caused.
    pub(crate) sequence: u64,
    /// When its next wake-up is due, if one is in the queue.
    pub(crate) armed: Option<Time>,
    /// Wake-ups in a row that did not move its deadline past them.
    pub(crate) stuck: u32,
    /// Of this life.
    pub(crate) accounts: Accounts,
    /// Of all lives before.
    pub(crate) past: Accounts,
}

impl Station {
    pub(crate) fn new(name: String) -> Station {
        Station {
            name,
            body: Body::Off,
            jacks: Vec::new(),
            lives: 0,
            sequence: 0,
            armed: None,
            stuck: 0,
            accounts: Accounts::default(),
            past: Accounts::default(),
        }
    }

    /// The jack of a port; ports come into being when they are first used.
    pub(crate) fn jack(&mut self, index: usize) -> &mut Jack {
        if index >= self.jacks.len() {
            self.jacks.resize(index + 1, Jack::default());
        }
        &mut self.jacks[index]
    }

    /// What has passed over all its lives.
    pub fn accounts(&self) -> Accounts {
        let mut sum = self.past.clone();
        sum.add(&self.accounts);
        sum
    }
}
