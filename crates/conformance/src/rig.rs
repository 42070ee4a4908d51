//! Rig of a case: ports at a device, time, and the frames sent and received.

use crate::interpretations::Interpretations;
use crate::setup::Setup;
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, Rate, Span, Time};

/// Reason why a case ends before it has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The device violates the requirement.
    Failed(String),
    /// This rig, or this device as configured, cannot show the behaviour.
    NotApplicable(String),
    /// The tester was too late to decide.
    Inconclusive(String),
    /// The rig has failed.
    Broken(String),
}

/// Direction of a frame, from the tester's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// To the device.
    Sent,
    /// From the device.
    Heard,
}

/// Frame on one of the tester's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Time of its last bit at the tester's end of the link.
    pub at: Time,
    /// Port of the tester, from 0.
    pub port: usize,
    /// Direction.
    pub way: Way,
    /// Frame without preamble and FCS.
    pub frame: Vec<u8>,
}

/// Sequence of frames from one port of the tester through the device to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Sending port of the tester.
    pub from: usize,
    /// Receiving port of the tester.
    pub to: usize,
    /// Priority of the tag.
    pub priority: Priority,
    /// Frame length in bytes, tag included, FCS excluded: 64 to 1,518.
    pub bytes: usize,
    /// Interval between frame starts; zero for line rate.
    pub interval: Span,
    /// Time of the first frame.
    pub begin: Time,
    /// End of the stream.
    pub end: Time,
    /// True if the stream honours PFC.
    pub honours: bool,
    /// Flow of the CN-TAG; `None` without a CN-TAG.
    pub flow: Option<u16>,
}

/// Tester at a device. It judges the device only by the frames of its ports.
pub trait Rig {
    /// Returns the number of ports of the tester. Port 0 is at the tested port; the others bring
    /// traffic through the device.
    fn ports(&self) -> usize;

    /// Returns the rate of the links, equal for all.
    fn rate(&self) -> Rate;

    /// Returns the largest difference between the time of an event at the device and at the tester:
    /// cable latency and, with real clocks, the machine's own delays.
    fn slack(&self) -> Span;

    /// Returns the interpretations of the standards for this case.
    fn interpretations(&self) -> &Interpretations;

    /// Returns the absences of the tester by time: from a due poll or transmission until it
    /// happened. Empty in simulated time.
    fn absences(&self) -> &[(Time, Time)];

    /// Returns the number of frames lost so far by the tester's machine, on reception or
    /// transmission.
    fn lost(&mut self) -> u64;

    /// Returns the fixed configuration of the device, where the rig cannot change it.
    fn given(&self) -> Option<&Setup>;

    /// Provides a new device with this configuration and links that are up. Where the rig cannot
    /// configure the device, only the log restarts.
    ///
    /// # Errors
    /// The device refuses the configuration, which is [`Halt::Failed`]; or the rig cannot apply it.
    fn set_up(&mut self, setup: &Setup) -> Result<(), Halt>;

    /// Returns the address of the device's port at the tester's port 0, if known.
    fn device_mac(&self) -> Option<MacAddr>;

    /// Returns the current time.
    fn now(&self) -> Time;

    /// Sends a frame at `at`, or as soon after that as the wire is free.
    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>);

    /// Starts a stream and returns its number, which its frames carry.
    fn stream(&mut self, stream: Stream) -> u16;

    /// Lets time pass until `until`, and returns the frames sent and received since the last call,
    /// by time.
    ///
    /// # Errors
    /// The rig has failed.
    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt>;
}
