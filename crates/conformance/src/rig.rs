//! What a case needs of the world: ports at a device, time, and what was sent and heard.

use crate::interpretations::Interpretations;
use crate::setup::Setup;
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, Rate, Span, Time};

/// Why a case ends before it has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The device does not do what the standard asks for.
    Failed(String),
    /// This rig, or this device as it is configured, cannot show it.
    NotApplicable(String),
    /// The tester itself was too late to tell.
    Inconclusive(String),
    /// The rig itself has failed.
    Broken(String),
}

/// Which way a frame went, seen from the tester.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device.
    Sent,
    /// From the device.
    Heard,
}

/// A frame on one of the tester's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// When its last bit was there: at the tester's end of the link.
    pub at: Time,
    /// The tester's port, from 0.
    pub port: usize,
    /// Which way.
    pub way: Way,
    /// Without preamble and FCS.
    pub frame: Vec<u8>,
}

/// Frames that the tester sends one after another, from one of its ports to another, through the
/// device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// The tester's port that sends.
    pub from: usize,
    /// The tester's port that they are for.
    pub to: usize,
    /// In their tag.
    pub priority: Priority,
    /// Bytes of each, its tag included and its FCS not: 64 to 1,518.
    pub bytes: usize,
    /// From the start of one to the start of the next; zero for as fast as the line takes.
    pub interval: Span,
    /// When the first one goes.
    pub begin: Time,
    /// When no more go.
    pub end: Time,
    /// Whether it stops when the device says so by PFC.
    pub honours: bool,
    /// The flow that its CN-TAG names; none without.
    pub flow: Option<u16>,
}

/// A tester at a device, which it judges by what its ports send and by nothing else.
pub trait Rig {
    /// How many ports the tester has. Port 0 is where the device is tested; the others bring
    /// traffic through it.
    fn ports(&self) -> usize;

    /// The rate of the links: all have the same.
    fn rate(&self) -> Rate;

    /// How much later than it happened at the device the tester may see something, or the
    /// other way round. Cable, and with real clocks the machine's own delays.
    fn slack(&self) -> Span;

    /// How the case reads what sources differ on.
    fn interpretations(&self) -> &Interpretations;

    /// When the tester itself was away: from when it should have looked at its ports, or have
    /// sent what was due, until it did. By time; none in simulated time.
    fn absences(&self) -> &[(Time, Time)];

    /// Frames that the tester's own machine has lost so far: it was too late to take them in, or
    /// would not send them.
    fn lost(&mut self) -> u64;

    /// What the device is configured for, where the rig cannot change that.
    fn given(&self) -> Option<&Setup>;

    /// A new device, configured so, with links that are up. Where the rig cannot configure the
    /// device, this only begins anew.
    ///
    /// # Errors
    /// The device refuses this, which is [`Halt::Failed`]; or the rig cannot.
    fn set_up(&mut self, setup: &Setup) -> Result<(), Halt>;

    /// The address of the device's port at the tester's port 0, if it is known.
    fn device_mac(&self) -> Option<MacAddr>;

    /// Now.
    fn now(&self) -> Time;

    /// Sends a frame at `at`, or as soon after that as the wire is free.
    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>);

    /// Starts a stream; its number is in its frames.
    fn stream(&mut self, stream: Stream) -> u16;

    /// Lets time pass until `until`, and answers what was sent and heard since the last call, by
    /// time.
    ///
    /// # Errors
    /// The rig has failed.
    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt>;
}
