//! Interface that the cases use: the rig, the frames seen so far, and the notes for the report.

mod late;
mod log;
mod seen;

use crate::frames;
use crate::interpretations::Interpretations;
use crate::rig::{Halt, Rig, Seen, Stream, Way};
use crate::setup::Setup;
use crate::station::{self, AROUND_FRAME_BYTES};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, Rate, Span, Time};
use log::Log;

/// Default length of the frames in a stream, in bytes, including the tag but not the FCS.
pub(crate) const FRAME_BYTES: usize = 1_000;
/// Length of the longest frame, in bytes, including the tag but not the FCS.
pub const FRAME_BYTES_MAX: usize = 1_518;
/// Longest time that the device may take to learn the tester's addresses.
const ACQUAINT_MAX: Span = Span::from_secs(10);
/// Interval between attempts to make the tester known.
const ACQUAINT_STEP: Span = Span::from_millis(50);
/// Longest delay before an ARP reply is sent.
const ANSWER_STEP: Span = Span::from_millis(20);
/// Minimum length of a pause that can be measured, in multiples of the rig's slack and in frames.
const PAUSE_SLACKS: u64 = 6;
const PAUSE_FRAMES: u64 = 200;

/// Rig together with a log of the frames seen.
pub struct Bench<'a> {
    rig: &'a mut dyn Rig,
    /// Start of the first stream, from which on the tester's absences count.
    timed_from: Option<Time>,
    /// Longest absence of the tester that is tolerated after `timed_from`.
    away_max: Span,
    /// Number of frames that the tester's machine lost before the case.
    lost_before: u64,
    /// Elapsed time over all devices, because the rig's clock may restart with each device.
    took: Span,
    log: Log,
    did: Vec<String>,
    saw: Vec<String>,
}

impl<'a> Bench<'a> {
    /// Creates a bench on a rig that is not set up yet.
    pub(crate) fn new(rig: &'a mut dyn Rig) -> Bench<'a> {
        let (away_max, lost_before) = (rig.slack(), rig.lost());
        Bench {
            rig,
            timed_from: None,
            away_max,
            lost_before,
            took: Span::ZERO,
            log: Log::default(),
            did: Vec::new(),
            saw: Vec::new(),
        }
    }

    /// Returns the interpretations of the standards for this case.
    pub(crate) fn interpretations(&self) -> &Interpretations {
        self.rig.interpretations()
    }

    /// Returns the notes for the report: actions and observations.
    pub(crate) fn notes(self) -> (Vec<String>, Vec<String>) {
        (self.did, self.saw)
    }

    /// Returns the elapsed time on the rig's clock.
    pub(crate) fn took(&self) -> Span {
        self.took
    }

    /// Records an action.
    pub(crate) fn did(&mut self, what: impl Into<String>) {
        self.did.push(what.into());
    }

    /// Records an observation.
    pub(crate) fn saw(&mut self, what: impl Into<String>) {
        self.saw.push(what.into());
    }

    /// Fails the case unless `good`.
    ///
    /// # Errors
    /// [`Halt::Failed`] if `good` is false.
    pub(crate) fn expect(
        &self,
        good: bool,
        otherwise: impl FnOnce() -> String,
    ) -> Result<(), Halt> {
        if good { Ok(()) } else { Err(Halt::Failed(otherwise())) }
    }

    /// Returns the rate of the rig's links.
    pub fn rate(&self) -> Rate {
        self.rig.rate()
    }

    /// Returns the slack of the rig; see [`Rig::slack`].
    pub(crate) fn slack(&self) -> Span {
        self.rig.slack()
    }

    /// Returns the current time.
    pub(crate) fn now(&self) -> Time {
        self.rig.now()
    }

    /// Returns the number of ports that the tester has.
    pub(crate) fn ports(&self) -> usize {
        self.rig.ports()
    }

    /// Returns the fixed configuration of the device; see [`Rig::given`].
    pub(crate) fn given(&self) -> Option<&Setup> {
        self.rig.given()
    }

    /// Returns the address of the device's port.
    ///
    /// # Errors
    /// The address is unknown.
    pub(crate) fn device_mac(&self) -> Result<MacAddr, Halt> {
        let unknown = "the address of the device's port is not known (--device-mac)";
        self.rig.device_mac().ok_or_else(|| Halt::NotApplicable(unknown.into()))
    }

    /// Ends the case as not applicable if the tester has fewer ports than this.
    ///
    /// # Errors
    /// The tester has fewer ports.
    pub(crate) fn need_ports(&self, ports: usize, why: &str) -> Result<(), Halt> {
        if self.ports() >= ports {
            return Ok(());
        }
        let there = self.ports();
        Err(Halt::NotApplicable(format!("{why}: {ports} ports, and there are {there} (--through)")))
    }

    /// Sets up the device and makes the tester known to it.
    ///
    /// # Errors
    /// The device refuses the setup, or it is configured differently and the rig cannot change
    /// that, or it forwards no traffic.
    pub(crate) fn set_up(&mut self, setup: &Setup) -> Result<(), Halt> {
        let lacks = self.given().map(|given| given.lacks(setup)).filter(|text| !text.is_empty());
        if let Some(lacks) = lacks {
            return Err(Halt::NotApplicable(format!("the device would have to have {lacks}")));
        }
        self.rig.set_up(setup)?;
        self.log.forget_streams();
        if !setup.station {
            self.acquaint()?;
        }
        self.log.forget_frames();
        Ok(())
    }

    /// Sets up a device with PFC for some priorities, by default for all, and returns its setup.
    ///
    /// # Errors
    /// See [`Bench::set_up`]. It is also an error if the device has no PFC.
    pub(crate) fn set_up_pfc(&mut self) -> Result<Setup, Halt> {
        let all = Setup::with_pfc(PrioritySet::ALL);
        let setup = self.given().cloned().unwrap_or(all);
        if setup.pfc.is_empty() {
            return Err(Halt::NotApplicable("the device has PFC for no priority (--pfc)".into()));
        }
        self.set_up(&setup)?;
        Ok(setup)
    }

    /// Sets up a device without PFC, so that PAUSE may be in use.
    ///
    /// # Errors
    /// See [`Bench::set_up`]. It is also an error if the device has PFC.
    pub(crate) fn set_up_pause(&mut self) -> Result<Setup, Halt> {
        let setup = self.given().cloned().unwrap_or_default();
        if !setup.pfc.is_empty() {
            let why = "the device has PFC (--pfc), and PAUSE is not in use beside it";
            return Err(Halt::NotApplicable(why.into()));
        }
        self.set_up(&setup)?;
        Ok(setup)
    }

    /// Announces each port by ARP, and requests the addresses of the ports that it will send to,
    /// until all are resolved.
    fn acquaint(&mut self) -> Result<(), Halt> {
        let pairs: Vec<(usize, usize)> =
            (1..self.ports()).flat_map(|port| [(port, 0), (0, port)]).collect();
        let end = self.now() + ACQUAINT_MAX;
        loop {
            let known = |&(from, to): &(usize, usize)| {
                let own = |seen: &&Seen| seen.port == from && seen.way == Way::Heard;
                self.log
                    .frames()
                    .iter()
                    .filter(own)
                    .any(|seen| frames::is_arp_answer(&seen.frame, to))
            };
            let unknown: Vec<(usize, usize)> =
                pairs.iter().filter(|pair| !known(pair)).copied().collect();
            let Some(&(from, to)) = unknown.first() else { break };
            if self.now() >= end {
                let ports = format!("port {from} receives no answer to its ARP for port {to}");
                return Err(Halt::Broken(format!("nothing comes through the device: {ports}")));
            }
            let now = self.now();
            for port in 0..self.ports() {
                self.rig.send(port, now, frames::arp_request(port, port));
            }
            for (from, to) in unknown {
                self.rig.send(from, now, frames::arp_request(from, to));
            }
            self.pass(ACQUAINT_STEP)?;
        }
        self.pass(ANSWER_STEP)
    }

    /// Lets time pass, and answers ARP requests for the tester's ports.
    ///
    /// # Errors
    /// The rig has failed.
    pub(crate) fn pass(&mut self, span: Span) -> Result<(), Halt> {
        let end = self.now() + span;
        while self.now() < end {
            let begun = self.now();
            let seen = self.rig.pass(end.min(begun + ANSWER_STEP))?;
            self.took = self.took + self.now().since(begun);
            for one in seen.iter().filter(|one| one.way == Way::Heard) {
                if let Some(answer) = frames::arp_answer(one.port, &one.frame) {
                    let now = self.rig.now();
                    self.rig.send(one.port, now, answer);
                }
            }
            self.log.extend(seen);
        }
        Ok(())
    }

    /// Sends a frame now.
    pub(crate) fn send(&mut self, port: usize, frame: Vec<u8>) {
        let now = self.now();
        self.rig.send(port, now, frame);
    }

    /// Sends a frame at a given time.
    pub(crate) fn send_at(&mut self, port: usize, at: Time, frame: Vec<u8>) {
        self.rig.send(port, at, frame);
    }

    /// Sends a frame and returns the time at which its last bit was sent.
    ///
    /// # Errors
    /// The rig has failed.
    pub(crate) fn send_now(&mut self, port: usize, frame: Vec<u8>) -> Result<Time, Halt> {
        let (begun, from) = (self.now(), self.log.frames().len());
        self.send(port, frame.clone());
        let step = self.time_for(FRAME_BYTES_MAX);
        let own = |seen: &&Seen| seen.port == port && seen.way == Way::Sent && seen.frame == frame;
        loop {
            self.pass(step)?;
            if let Some(seen) = self.log.frames()[from..].iter().find(own) {
                return Ok(seen.at);
            }
            if self.now().since(begun) > Span::from_secs(1) {
                return Err(Halt::Broken(format!("port {port} could not send a frame")));
            }
        }
    }

    /// Starts a stream and returns its number.
    pub(crate) fn stream(&mut self, stream: Stream) -> u16 {
        self.timed();
        let id = self.rig.stream(stream);
        self.log.begin(id, stream);
        id
    }

    /// Returns a stream that runs from now on for `span`, with frames of the default size at line
    /// rate.
    pub(crate) fn full_rate(&self, from: usize, priority: Priority, span: Span) -> Stream {
        let begin = self.now();
        Stream {
            from,
            to: 0,
            priority,
            bytes: FRAME_BYTES,
            interval: Span::ZERO,
            begin,
            end: begin + span,
            honours: true,
            flow: None,
        }
    }

    /// Loads port 0 to 80 % from port 1 for `span`, with all these priorities equally, and lets the
    /// load begin. Returns the time in which each priority sends one frame.
    ///
    /// # Errors
    /// There is no second port, or the rig has failed.
    pub fn load(&mut self, priorities: PrioritySet, span: Span) -> Result<Span, Halt> {
        self.need_ports(2, "traffic has to come through the device")?;
        let turn = self.time_for(FRAME_BYTES) * priorities.len() as u64;
        let interval = Span::from_ticks(turn.ticks() * 5 / 4);
        for priority in priorities.iter() {
            let whole = span + interval * 10;
            self.stream(Stream { interval, ..self.full_rate(1, priority, whole) });
        }
        self.pass(interval * 10)?;
        Ok(interval)
    }

    /// Returns the time that a frame of `bytes`, without FCS, takes on the line, including the gap.
    pub(crate) fn time_for(&self, bytes: usize) -> Span {
        self.rate().time_for(Bytes(bytes as u64 + AROUND_FRAME_BYTES))
    }

    /// Returns a pause that is long enough to be measured, in quanta and as a time.
    ///
    /// # Errors
    /// The longest pause is too short to be measured with this rig's clock.
    pub(crate) fn pause(&self) -> Result<(u16, Span), Halt> {
        let least = self.slack() * PAUSE_SLACKS;
        let least = least.max(self.time_for(FRAME_BYTES) * PAUSE_FRAMES);
        let quantum = station::quanta(1, self.rate());
        let quanta = least.ticks().div_ceil(quantum.ticks());
        let Some(quanta) = u16::try_from(quanta).ok().filter(|&quanta| quanta < u16::MAX / 2)
        else {
            let (rate, longest) = (self.rate(), station::quanta(u16::MAX, self.rate()));
            return Err(Halt::NotApplicable(format!(
                "a pause of {least} is wanted, to be seen by this clock (--slack), and at {rate} \
                 twice that is more than the longest, {longest}"
            )));
        };
        Ok((quanta, station::quanta(quanta, self.rate())))
    }
}
