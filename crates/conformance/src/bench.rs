//! What cases act through: the rig, what was seen so far, and what is to be told of it.

use crate::frames;
use crate::rig::{Counters, Halt, Rig, Seen, Stream, Way};
use crate::setup::Setup;
use crate::station::{self, AROUND_FRAME_BYTES, REACTION};
use axon_wire::priority::{Priority, PrioritySet};
use axon_wire::{Bytes, MacAddr, Rate, Span, Time};

/// Bytes of a frame of a stream, if a case has no reason for others: its tag included, its FCS
/// not.
pub const FRAME_BYTES: usize = 1_000;
/// The longest, with a tag and without FCS.
pub const FRAME_BYTES_MAX: usize = 1_518;
/// How long the tester tries to be known to the device.
const ACQUAINT_MAX: Span = Span::from_secs(10);
/// From try to try.
const ACQUAINT_STEP: Span = Span::from_millis(50);
/// Answers to ARP are at most so late.
const ANSWER_STEP: Span = Span::from_millis(20);
/// A pause that is measured lasts for so many of the rig's slack, and for so many frames.
const PAUSE_SLACKS: u64 = 6;
const PAUSE_FRAMES: u64 = 200;

/// A rig with a memory.
pub struct Bench<'a> {
    rig: &'a mut dyn Rig,
    log: Vec<Seen>,
    streams: Vec<(u16, Stream)>,
    did: Vec<String>,
    saw: Vec<String>,
}

impl<'a> Bench<'a> {
    /// On a rig that is not set up yet.
    pub fn new(rig: &'a mut dyn Rig) -> Bench<'a> {
        Bench { rig, log: Vec::new(), streams: Vec::new(), did: Vec::new(), saw: Vec::new() }
    }

    /// What was done and seen, to be told.
    pub fn notes(self) -> (Vec<String>, Vec<String>) {
        (self.did, self.saw)
    }

    /// Tells what was done.
    pub fn did(&mut self, what: impl Into<String>) {
        self.did.push(what.into());
    }

    /// Tells what was seen.
    pub fn saw(&mut self, what: impl Into<String>) {
        self.saw.push(what.into());
    }

    /// Ends the case as failed unless `good`.
    ///
    /// # Errors
    /// If not.
    pub fn expect(&self, good: bool, otherwise: impl FnOnce() -> String) -> Result<(), Halt> {
        if good { Ok(()) } else { Err(Halt::Failed(otherwise())) }
    }

    /// The rig's links.
    pub fn rate(&self) -> Rate {
        self.rig.rate()
    }

    /// See [`Rig::slack`].
    pub fn slack(&self) -> Span {
        self.rig.slack()
    }

    /// Now.
    pub fn now(&self) -> Time {
        self.rig.now()
    }

    /// How many ports the tester has.
    pub fn ports(&self) -> usize {
        self.rig.ports()
    }

    /// See [`Rig::given`].
    pub fn given(&self) -> Option<&Setup> {
        self.rig.given()
    }

    /// See [`Rig::counters`].
    pub fn counters(&mut self) -> Option<Counters> {
        self.rig.counters()
    }

    /// The address of the device's port.
    ///
    /// # Errors
    /// It is not known.
    pub fn device_mac(&self) -> Result<MacAddr, Halt> {
        let unknown = "the address of the device's port is not known (--device-mac)";
        self.rig.device_mac().ok_or_else(|| Halt::NotApplicable(unknown.into()))
    }

    /// Not applicable with fewer ports.
    ///
    /// # Errors
    /// There are fewer.
    pub fn need_ports(&self, ports: usize, why: &str) -> Result<(), Halt> {
        if self.ports() >= ports {
            return Ok(());
        }
        let there = self.ports();
        Err(Halt::NotApplicable(format!("{why}: {ports} ports, and there are {there} (--through)")))
    }

    /// Sets the device up, and makes the tester known to it.
    ///
    /// # Errors
    /// It refuses; or it is configured otherwise and the rig cannot change that; or no traffic
    /// comes through it.
    pub fn set_up(&mut self, setup: &Setup) -> Result<(), Halt> {
        let lacks = self.given().map(|given| given.lacks(setup)).filter(|text| !text.is_empty());
        if let Some(lacks) = lacks {
            return Err(Halt::NotApplicable(format!("the device would have to have {lacks}")));
        }
        self.rig.set_up(setup)?;
        self.streams.clear();
        if !setup.station {
            self.acquaint()?;
        }
        self.log.clear();
        Ok(())
    }

    /// Sets a device up that has PFC for some priorities, and says which: all, if nobody says
    /// otherwise.
    ///
    /// # Errors
    /// As [`Bench::set_up`]; it has none.
    pub fn set_up_pfc(&mut self) -> Result<Setup, Halt> {
        let all = Setup::with_pfc(PrioritySet::ALL);
        let setup = self.given().cloned().unwrap_or(all);
        if setup.pfc.is_empty() {
            return Err(Halt::NotApplicable("the device has PFC for no priority (--pfc)".into()));
        }
        self.set_up(&setup)?;
        Ok(setup)
    }

    /// Sets a device up that has PFC for no priority, so that PAUSE may be in use.
    ///
    /// # Errors
    /// As [`Bench::set_up`]; it has.
    pub fn set_up_pause(&mut self) -> Result<Setup, Halt> {
        let setup = self.given().cloned().unwrap_or_default();
        if !setup.pfc.is_empty() {
            let why = "the device has PFC (--pfc), and PAUSE is not in use beside it";
            return Err(Halt::NotApplicable(why.into()));
        }
        self.set_up(&setup)?;
        Ok(setup)
    }

    /// Each port says who it is, and asks for those that it will send to, as hosts do, until all
    /// have been found.
    fn acquaint(&mut self) -> Result<(), Halt> {
        let pairs: Vec<(usize, usize)> =
            (1..self.ports()).flat_map(|port| [(port, 0), (0, port)]).collect();
        let end = self.now() + ACQUAINT_MAX;
        loop {
            let known = |&(from, to): &(usize, usize)| {
                let own = |seen: &&Seen| seen.port == from && seen.way == Way::Heard;
                self.log.iter().filter(own).any(|seen| frames::is_arp_answer(&seen.frame, to))
            };
            let unknown: Vec<(usize, usize)> =
                pairs.iter().filter(|pair| !known(pair)).copied().collect();
            let Some(&(from, to)) = unknown.first() else { break };
            if self.now() >= end {
                let ports = format!("port {from} hears no answer to its ARP for port {to}");
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

    /// Lets time pass. Who asks for a port by ARP is answered.
    ///
    /// # Errors
    /// The rig has failed.
    pub fn pass(&mut self, span: Span) -> Result<(), Halt> {
        let end = self.now() + span;
        while self.now() < end {
            let until = end.min(self.now() + ANSWER_STEP);
            let seen = self.rig.pass(until)?;
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
    pub fn send(&mut self, port: usize, frame: Vec<u8>) {
        let now = self.now();
        self.rig.send(port, now, frame);
    }

    /// Sends a frame at a time.
    pub fn send_at(&mut self, port: usize, at: Time, frame: Vec<u8>) {
        self.rig.send(port, at, frame);
    }

    /// Sends a frame and answers when its last bit left.
    ///
    /// # Errors
    /// The rig has failed.
    pub fn tell(&mut self, port: usize, frame: Vec<u8>) -> Result<Time, Halt> {
        let (begun, from) = (self.now(), self.log.len());
        self.send(port, frame.clone());
        let step = self.time_for(FRAME_BYTES_MAX);
        let own = |seen: &&Seen| seen.port == port && seen.way == Way::Sent && seen.frame == frame;
        loop {
            self.pass(step)?;
            if let Some(seen) = self.log[from..].iter().find(own) {
                return Ok(seen.at);
            }
            if self.now().since(begun) > Span::from_secs(1) {
                return Err(Halt::Broken(format!("port {port} could not send a frame")));
            }
        }
    }

    /// Starts a stream.
    pub fn stream(&mut self, stream: Stream) -> u16 {
        let id = self.rig.stream(stream);
        self.streams.push((id, stream));
        id
    }

    /// A stream from now on for `span`, of frames of the usual size, as fast as the line takes.
    pub fn full_rate(&self, from: usize, priority: Priority, span: Span) -> Stream {
        let begin = self.now();
        Stream {
            from,
            to: 0,
            priority,
            bytes: FRAME_BYTES,
            interval: Span::ZERO,
            begin,
            end: begin + span,
            obeys: true,
            flow: None,
        }
    }

    /// Loads port 0 to four fifths from port 1, with all these priorities alike, for `span`, and
    /// lets that begin. Answers how long it takes until each has sent a frame.
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

    /// How long a frame of so many bytes, without FCS, takes the line, gap included.
    pub fn time_for(&self, bytes: usize) -> Span {
        self.rate().time_for(Bytes(bytes as u64 + AROUND_FRAME_BYTES))
    }

    /// A pause that is long enough to be measured: in quanta, and as time.
    ///
    /// # Errors
    /// A pause that can be said twice over is too short for this rig's clock.
    pub fn pause(&self) -> Result<(u16, Span), Halt> {
        let least = self.slack() * PAUSE_SLACKS;
        let least = least.max(self.time_for(FRAME_BYTES) * PAUSE_FRAMES);
        let quantum = station::quanta(1, self.rate());
        let quanta = least.ticks().div_ceil(quantum.ticks());
        let Some(quanta) = u16::try_from(quanta).ok().filter(|&quanta| quanta < u16::MAX / 2)
        else {
            let longest = station::quanta(u16::MAX, self.rate());
            return Err(Halt::NotApplicable(format!(
                "the longest pause at {} is {longest}, and this rig's clock is good to {} only",
                self.rate(),
                self.slack()
            )));
        };
        Ok((quanta, station::quanta(quanta, self.rate())))
    }

    /// All that was seen since the device was set up.
    pub fn log(&self) -> &[Seen] {
        &self.log
    }

    /// What was heard at a port since `from`.
    pub fn heard(&self, port: usize, from: Time) -> impl Iterator<Item = &Seen> {
        let own =
            move |seen: &&Seen| seen.port == port && seen.way == Way::Heard && seen.at >= from;
        self.log.iter().filter(own)
    }

    /// When frames of a priority began to come out at port 0.
    pub fn starts(&self, priority: Priority) -> Vec<Time> {
        let of_priority = |id: u16| {
            self.streams.iter().any(|(own, s)| *own == id && s.to == 0 && s.priority == priority)
        };
        let start = |seen: &Seen| {
            frames::traffic_of(&seen.frame).filter(|known| of_priority(known.id))?;
            // Preamble, frame and FCS; the gap comes after it.
            Some(seen.at - self.rate().time_for(Bytes(seen.frame.len() as u64 + 12)))
        };
        self.heard(0, Time::ZERO).filter_map(start).collect()
    }

    /// Fails if a frame of one of these priorities begins to come out within a stop that was told
    /// at `told` and lasts until `until`.
    ///
    /// # Errors
    /// One does.
    pub fn silent(&self, priorities: PrioritySet, told: Time, until: Time) -> Result<(), Halt> {
        let (from, to) = (told + REACTION + self.slack(), until - self.slack());
        for priority in priorities.iter() {
            let late: Vec<Time> =
                self.starts(priority).into_iter().filter(|&at| at > from && at < to).collect();
            self.expect(late.is_empty(), || {
                let (count, after) = (late.len(), late[0].since(told));
                format!("{count} frames of priority {priority} in a stop, the first {after} after it was told")
            })?;
        }
        Ok(())
    }

    /// Fails if one of these priorities does not come out between two times.
    ///
    /// # Errors
    /// One does not.
    pub fn flows(&self, priorities: PrioritySet, from: Time, to: Time) -> Result<(), Halt> {
        for priority in priorities.iter() {
            let flows = self.starts(priority).into_iter().any(|at| at >= from && at <= to);
            self.expect(flows, || {
                let span = to.since(from);
                format!("no frame of priority {priority} for {span}, and nothing has stopped it")
            })?;
        }
        Ok(())
    }

    /// Fails if none of these priorities comes out between two times.
    ///
    /// # Errors
    /// None does.
    pub fn goes_again(&self, priorities: PrioritySet, from: Time, to: Time) -> Result<(), Halt> {
        let mut starts = priorities.iter().flat_map(|priority| self.starts(priority));
        let goes = starts.any(|at| at >= from && at <= to);
        self.expect(goes, || format!("nothing for {} after a stop was over", to.since(from)))
    }

    /// How long a priority stood still after it was told to stop at `told`; `None` if it never went
    /// on.
    pub fn stood_still(&self, priority: Priority, told: Time) -> Option<Span> {
        let from = told + REACTION + self.slack();
        let next = self.starts(priority).into_iter().find(|&at| at > from);
        next.map(|at| at.since(told))
    }

    /// How long the line would take for what port 0 was sent between two times.
    pub fn offered(&self, from: Time, to: Time) -> Span {
        let sent = self.log.iter().filter(|seen| {
            let within = seen.way == Way::Sent && seen.port > 0 && seen.at >= from && seen.at < to;
            within && seen.frame[..6] == frames::mac(0).0
        });
        sent.fold(Span::ZERO, |sum, seen| sum + self.time_for(seen.frame.len()))
    }

    /// Of a stream: frames sent and frames that came out.
    pub fn carried(&self, id: u16) -> (u64, u64) {
        self.count(|own| own == id)
    }

    /// The same of all streams of a priority.
    pub fn of_priority(&self, priority: Priority) -> (u64, u64) {
        self.count(|id| self.streams.iter().any(|(own, s)| *own == id && s.priority == priority))
    }

    fn count(&self, wanted: impl Fn(u16) -> bool) -> (u64, u64) {
        let own = |seen: &&Seen| frames::traffic_of(&seen.frame).is_some_and(|f| wanted(f.id));
        let known: Vec<Way> = self.log.iter().filter(own).map(|seen| seen.way).collect();
        let of = |way: Way| known.iter().filter(|&&own| own == way).count() as u64;
        (of(Way::Sent), of(Way::Heard))
    }
}
