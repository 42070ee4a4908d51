//! Rig of a case: the ports at a device, the time, and the frames sent and received.

use crate::interpretations::Interpretations;
use crate::setup::Setup;
use axon_wire::priority::Priority;
use axon_wire::{MacAddr, Rate, Span, Time};

/// Reason why a case ends before it has passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Halt {
    /// The device violates the requirement.
    Failed(String),
    /// The rig, or the device as configured, cannot show the behaviour.
    NotApplicable(String),
    /// The tester was too late to decide.
    Inconclusive(String),
    /// The rig has failed.
    Broken(String),
}

/// Direction of a frame, from the tester's point of view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// From the tester to the device.
    Sent,
    /// From the device to the tester.
    Heard,
}

/// Frame on one of the tester's links.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Time at which its last bit was at the tester's end of the link.
    pub at: Time,
    /// Port of the tester, counted from 0.
    pub port: usize,
    /// Direction of the frame.
    pub way: Way,
    /// Bytes of the frame, without preamble and FCS.
    pub frame: Vec<u8>,
}

/// Sequence of frames from one port of the tester through the device to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    /// Sending port of the tester.
    pub from: usize,
    /// Receiving port of the tester.
    pub to: usize,
    /// Priority in the tag.
    pub priority: Priority,
    /// Length of each frame in bytes, including the tag but not the FCS: 64 to 1,518.
    pub bytes: usize,
    /// Interval between the starts of frames, or zero for line rate.
    pub interval: Span,
    /// Time of the first frame.
    pub begin: Time,
    /// End of the stream.
    pub end: Time,
    /// True if the stream honours PFC.
    pub honours: bool,
    /// Flow in the CN-TAG, or `None` for frames without a CN-TAG.
    pub flow: Option<u16>,
}

/// Tester that is connected to a device. It judges the device only by the frames at its ports.
pub trait Rig {
    /// Returns the number of ports that the tester has. Port 0 is connected to the tested port, and
    /// the others send traffic through the device.
    fn ports(&self) -> usize;

    /// Returns the rate of the links, which is the same for all of them.
    fn rate(&self) -> Rate;

    /// Returns the largest difference between the times of an event at the device and at the
    /// tester. It comes from cable latency and, with real clocks, from delays in the tester's
    /// machine.
    fn slack(&self) -> Span;

    /// Returns the interpretations of the standards for this case.
    fn interpretations(&self) -> &Interpretations;

    /// Returns the absences of the tester in the order of time. Each lasts from the time at which a
    /// poll or transmission was due until it happened. In simulated time, there are none.
    fn absences(&self) -> &[(Time, Time)];

    /// Returns the number of frames that the tester's machine has lost so far, on reception or
    /// transmission.
    fn lost(&mut self) -> u64;

    /// Returns the fixed configuration of the device, if the rig cannot change it.
    fn given(&self) -> Option<&Setup>;

    /// Provides a new device with this configuration, and with links that are up. If the rig cannot
    /// configure the device, only the log is restarted.
    ///
    /// # Errors
    /// [`Halt::Failed`] if the device refuses the configuration. It is also an error if the rig
    /// cannot apply it.
    fn set_up(&mut self, setup: &Setup) -> Result<(), Halt>;

    /// Returns the address of the device's port that is connected to port 0 of the tester, if
    /// known.
    fn device_mac(&self) -> Option<MacAddr>;

    /// Returns the current time.
    fn now(&self) -> Time;

    /// Sends a frame at the time `at`, or as soon after that as the wire is free.
    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>);

    /// Starts a stream and returns its number, which its frames carry.
    fn stream(&mut self, stream: Stream) -> u16;

    /// Lets time pass until `until`. Returns the frames sent and received since the last call, in
    /// the order of time.
    ///
    /// # Errors
    /// The rig has failed.
    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt>;
}
