//! The sending half: transmission and retransmission (RFC 9293 §3.8).
//!
//! Lost data is sent before new data, both within the congestion window. New data is also limited
//! by the receiver's window. Small segments are avoided as in RFC 9293 §3.8.6.2.1. A closed window
//! is probed with an empty segment one number before the first unacknowledged one; the receiver
//! answers such a segment outside its window with its current window.

mod acknowledge;
mod duplicates;
mod probe;
mod usage;

use crate::config::{Algorithm, Config};
use crate::congestion::Congestion;
use crate::peer_window::PeerWindow;
use crate::prr::Prr;
use crate::rack::Rack;
use crate::rtt::Rtt;
use crate::scoreboard::Scoreboard;
use crate::segment::{Segment, Seq};
use crate::stats::Stats;
use crate::stream::Stream;
use axon_wire::{Span, Time};
use duplicates::Duplicates;
use probe::TailProbe;
use usage::Usage;

/// Recovery state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Recovery {
    /// No known loss.
    Open,
    /// Fast recovery after a detected loss, until `point` is acknowledged (RFC 6675 §5).
    Fast { point: Seq, prr: Prr },
    /// Recovery after a timeout, until `point` is acknowledged.
    Timeout { point: Seq },
}

/// Options in use, from both SYNs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Agreed {
    /// Maximum payload of a segment, in bytes.
    pub(crate) mss: u32,
    pub(crate) sack: bool,
    pub(crate) ecn: bool,
}

/// Data to send in one segment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Chunk {
    pub(crate) seq: Seq,
    pub(crate) bytes: u32,
    pub(crate) fin: bool,
    /// True if to set CWR: the window was reduced (RFC 3168 §6.1.2).
    pub(crate) cwr: bool,
    /// True if the data was sent before.
    pub(crate) again: bool,
}

/// Transmission counters.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    segments: u64,
    again: u64,
    timeouts: u32,
    probes: u32,
    recoveries: u32,
    reductions: u32,
    /// Time of the last transmission.
    last: Time,
}

/// Expiry times of the timers.
#[derive(Clone, Debug, Default)]
struct Timers {
    rto: Option<Time>,
    probe: Option<Time>,
    reorder: Option<Time>,
    persist: Option<Time>,
    /// Consecutive timeouts without an answer.
    tries: u8,
}

/// Reduction of the congestion window by ECE or a repaired loss (RFC 3168 §6.1.2).
#[derive(Clone, Debug, Default)]
struct Reduction {
    /// End of the reduced window; ECE is ignored until this number is acknowledged.
    until: Option<Seq>,
    /// True if the next new data carries CWR.
    cwr: bool,
}

/// Sender of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    stream: Stream,
    board: Scoreboard,
    peer: PeerWindow,
    agreed: Agreed,
    control: Congestion,
    usage: Usage,
    reduction: Reduction,
    rtt: Rtt,
    rack: Rack,
    recovery: Recovery,
    duplicates: Duplicates,
    probe: TailProbe,
    timers: Timers,
    /// True if a timeout has expired since the last transmission.
    timed_out: bool,
    sent: Sent,
}

impl Sender {
    /// Returns a sender before the handshake. `start` is the number of the first byte.
    pub(crate) fn new(start: Seq, config: &Config) -> Sender {
        let mss = u32::from(config.mss);
        Sender {
            stream: Stream::new(),
            board: Scoreboard::new(start),
            peer: PeerWindow::default(),
            agreed: Agreed { mss, sack: false, ecn: false },
            control: Congestion::new(config.congestion, mss),
            usage: Usage::new(start),
            reduction: Reduction::default(),
            rtt: Rtt::default(),
            rack: Rack::new(start),
            recovery: Recovery::Open,
            duplicates: Duplicates::default(),
            probe: TailProbe::default(),
            timers: Timers::default(),
            timed_out: false,
            sent: Sent::default(),
        }
    }

    /// Initializes the sender from the peer's SYN.
    pub(crate) fn begin(&mut self, agreed: Agreed, algorithm: Algorithm, syn: &Segment) {
        self.agreed = agreed;
        self.control = Congestion::new(algorithm, agreed.mss);
        self.peer.begin(syn);
    }

    /// Returns the timeout of a SYN that was sent `tries` times before.
    pub(crate) fn syn_timeout(&mut self, tries: u8, config: &Config) -> Span {
        self.rtt.backoff = tries;
        self.rtt.timeout(config)
    }

    /// Begins transmission. `opened` is the time of the SYN, unless it was retransmitted.
    pub(crate) fn establish(&mut self, now: Time, opened: Option<Time>) {
        self.rtt.backoff = 0;
        match opened {
            Some(at) => self.rtt.sample(now, now.since(at)),
            // RFC 6298 §5.7, RFC 5681 §3.1.
            None => self.control.set(self.agreed.mss),
        }
    }

    /// Sets the peer's window from the segment that establishes the connection.
    pub(crate) fn set_window(&mut self, segment: &Segment) {
        self.peer.set(segment);
    }

    /// Returns the outgoing stream.
    pub(crate) fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Returns the outgoing stream, to write to it and to close it.
    pub(crate) fn stream_mut(&mut self) -> &mut Stream {
        &mut self.stream
    }

    /// Returns the sent data that is not acknowledged.
    pub(crate) fn board(&self) -> &Scoreboard {
        &self.board
    }

    /// Returns the options in use.
    pub(crate) fn agreed(&self) -> Agreed {
        self.agreed
    }

    /// Returns whether a chunk is sent ECN-capable. Retransmissions are not (RFC 3168 §6.1.5),
    /// except with DCTCP, as in Linux.
    pub(crate) fn may_mark(&self, chunk: &Chunk) -> bool {
        let markable = !chunk.again || self.control.is_dctcp();
        chunk.bytes > 0 && self.agreed.ecn && markable
    }

    /// Returns the bytes written and not acknowledged.
    pub(crate) fn queued(&self) -> u64 {
        let fin = u32::from(self.stream.fin_sent() && !self.is_finished());
        self.stream.unsent() + u64::from(self.board.outstanding().saturating_sub(fin))
    }

    /// Returns whether the FIN was sent and is acknowledged.
    pub(crate) fn is_finished(&self) -> bool {
        self.stream.ends_at(self.board.start())
    }

    /// Returns the current statistics.
    pub(crate) fn stats(&self) -> Stats {
        Stats {
            segments: self.sent.segments,
            retransmits: self.sent.again,
            timeouts: self.sent.timeouts,
            probes: self.sent.probes,
            recoveries: self.sent.recoveries,
            reductions: self.sent.reductions,
            window: self.control.window(),
            threshold: self.control.threshold(),
            rtt: self.rtt.smoothed,
            rtt_min: self.rtt.shortest(),
            alpha: self.control.alpha(),
        }
    }

    /// Returns when the next timer expires.
    pub(crate) fn deadline(&self) -> Option<Time> {
        let Timers { rto, probe, reorder, persist, .. } = self.timers;
        [rto, probe, reorder, persist].into_iter().flatten().min()
    }

    /// Returns the next chunk to send, with at most `room` bytes of payload. `config` has the
    /// buffers and timeouts.
    pub(crate) fn next(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if self.peer.take_probe() {
            return Some(Chunk { seq: self.board.start() - 1, ..Chunk::default() });
        }
        if core::mem::take(&mut self.probe.due) {
            return self.tail_probe(now, room, config);
        }
        let chunk =
            self.lost_chunk(now, room, config).or_else(|| self.new_chunk(now, room, config));
        let is_held =
            chunk.is_none() && self.board.pipe() + self.agreed.mss > self.control.window();
        self.usage.note(is_held, &self.board);
        chunk
    }

    /// Returns whether `bytes` more fit the congestion window.
    fn fits(&self, bytes: u32) -> bool {
        let pipe = self.board.pipe();
        pipe == 0 || pipe.saturating_add(bytes) <= self.control.window()
    }

    fn lost_chunk(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        let (from, to) = self.board.first_lost()?;
        let to = to.min(from + room);
        // After a timeout the first lost range is sent regardless of the flight size (RFC 6298
        // §5.4).
        let may = core::mem::take(&mut self.timed_out) || self.fits(to.since(from));
        may.then(|| self.again(from, to, now, config))
    }

    /// Retransmits a range.
    fn again(&mut self, from: Seq, to: Seq, now: Time, config: &Config) -> Chunk {
        self.board.resend(from, to, now);
        let fin = self.stream.ends_at(to);
        let bytes = to.since(from) - u32::from(fin);
        self.sent.again += 1;
        self.left(now, to.since(from), config);
        Chunk { seq: from, bytes, fin, cwr: false, again: true }
    }

    /// Returns the bytes of new data that the receiver's window allows, and whether a FIN goes with
    /// them.
    fn offered(&self, room: u32) -> Option<(u32, bool)> {
        let unsent = self.stream.unsent();
        let wanted = u32::try_from(unsent).unwrap_or(u32::MAX).min(room);
        let (bytes, has_room, few) = self.peer.usable(wanted, self.board.outstanding());
        let fin = has_room && u64::from(bytes) == unsent && self.stream.wants_fin();
        ((bytes > 0 && !few) || fin).then_some((bytes, fin))
    }

    fn new_chunk(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if self.stream.unsent() == 0 && !self.stream.wants_fin() {
            return None;
        }
        let idle = self.board.outstanding() == 0;
        let Some((bytes, fin)) = self.offered(room) else {
            if idle && self.timers.persist.is_none() {
                self.timers.persist = Some(now + self.rtt.timeout(config));
            }
            return None;
        };
        if idle && now.since(self.sent.last) > self.rtt.timeout(config) && self.sent.segments > 0 {
            self.control.idle(now);
        }
        let waits = config.nagle && bytes < self.agreed.mss && !idle && !fin;
        if waits || !self.fits(bytes) {
            return None;
        }
        Some(self.fresh(now, bytes, fin, config))
    }

    /// Sends new data.
    fn fresh(&mut self, now: Time, bytes: u32, fin: bool, config: &Config) -> Chunk {
        let (seq, numbers) = (self.board.end(), bytes + u32::from(fin));
        self.board.push(numbers, now);
        self.stream.sent(bytes, fin.then(|| self.board.end()));
        self.timers.persist = None;
        self.peer.sent();
        self.left(now, numbers, config);
        self.arm_probe(now, config);
        let cwr = bytes > 0 && core::mem::take(&mut self.reduction.cwr);
        Chunk { seq, bytes, fin, cwr, again: false }
    }

    /// Records sent or retransmitted numbers.
    fn left(&mut self, now: Time, numbers: u32, config: &Config) {
        if let Recovery::Fast { prr, .. } = &mut self.recovery {
            prr.sent(numbers);
        }
        self.sent.last = now;
        self.sent.segments += 1;
        if self.timers.rto.is_none() {
            self.timers.rto = Some(now + self.rtt.timeout(config));
        }
    }

    /// Returns a segment of new data regardless of the congestion window.
    fn beyond(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        let (bytes, fin) = self.offered(room)?;
        Some(self.fresh(now, bytes, fin, config))
    }

    /// Processes the timers that are due. Returns whether to give the connection up.
    pub(crate) fn expire(&mut self, now: Time, config: &Config) -> bool {
        let due = |at: &mut Option<Time>| at.take_if(|at| *at <= now).is_some();
        if due(&mut self.timers.reorder) {
            let was_open = self.recovery == Recovery::Open;
            self.detect(now);
            self.begin_recovery();
            if was_open && self.recovery != Recovery::Open {
                // No data was delivered: lost data is retransmitted one segment at a time.
                self.follow(now, (0, None), 0, false);
            }
        }
        if due(&mut self.timers.probe) {
            self.probe.due = true;
            return false;
        }
        let (persist, timeout) = (due(&mut self.timers.persist), due(&mut self.timers.rto));
        if !persist && !timeout {
            return false;
        }
        self.timers.tries = self.timers.tries.saturating_add(1);
        if self.timers.tries > config.retries {
            return true;
        }
        if persist {
            self.peer.persist();
            self.rtt.backoff = self.rtt.backoff.saturating_add(1);
            self.timers.persist = Some(now + self.rtt.timeout(config));
        }
        if timeout && self.board.outstanding() > 0 {
            self.time_out(now, config);
        }
        false
    }

    /// Processes a retransmission timeout (RFC 6298 §5.4 to §5.6, RFC 8985 §6.3).
    fn time_out(&mut self, now: Time, config: &Config) {
        // A timeout during a recovery keeps that recovery's threshold.
        let first = match self.recovery {
            Recovery::Open => true,
            Recovery::Fast { .. } => false,
            Recovery::Timeout { .. } => self.timers.tries == 1,
        };
        self.control.timed_out(first);
        self.recovery = Recovery::Timeout { point: self.board.end() };
        let (start, sack) = (self.board.start(), self.agreed.sack);
        let window = self.reordering_window();
        let old = self.rack.rtt + window;
        self.board.lose(|begin, range| begin == start || !sack || range.sent + old <= now);
        self.probe.in_flight = None;
        (self.timers.probe, self.timers.reorder) = (None, None);
        self.reduction = Reduction { until: None, cwr: self.agreed.ecn };
        self.duplicates = Duplicates::default();
        self.rtt.backoff = self.rtt.backoff.saturating_add(1);
        self.timers.rto = Some(now + self.rtt.timeout(config));
        self.sent.timeouts += 1;
        self.timed_out = true;
    }

    /// Returns the current reordering window.
    fn reordering_window(&self) -> Span {
        let many = self.board.sacked() > 2 * self.agreed.mss;
        let sure = many || self.recovery != Recovery::Open;
        let smoothed = self.rtt.smoothed.unwrap_or(Span::ZERO);
        self.rack.window(sure, self.rtt.shortest(), smoothed)
    }

    /// Arms the probe timer where a probe is useful (RFC 8985 §7.2).
    fn arm_probe(&mut self, now: Time, config: &Config) {
        let useful = self.agreed.sack
            && self.recovery == Recovery::Open
            && self.board.sacked() == 0
            && self.board.outstanding() > 0
            && self.probe.in_flight.is_none()
            && config.probe_min < config.rto_max;
        self.timers.probe = useful.then(|| {
            let after = match self.rtt.smoothed {
                None => Span::from_secs(1),
                Some(smoothed) => {
                    let twice = smoothed + smoothed;
                    let alone = self.board.outstanding() <= self.agreed.mss;
                    let delay = config.ack_delay.filter(|_| alone).unwrap_or(Span::ZERO);
                    (twice + delay).max(config.probe_min)
                }
            };
            let at = now + after;
            self.timers.rto.map_or(at, |rto| at.min(rto))
        });
    }

    /// Sends the probe (RFC 8985 §7.3).
    fn tail_probe(&mut self, now: Time, room: u32, config: &Config) -> Option<Chunk> {
        if self.board.outstanding() == 0 {
            return None;
        }
        let fresh = self.beyond(now, room, config);
        let again = fresh.is_none();
        let chunk = fresh.unwrap_or_else(|| {
            let end = self.board.end();
            let from = (end - room.min(self.board.outstanding())).max(self.board.start());
            self.again(from, end, now, config)
        });
        self.probe.in_flight = Some((self.board.end(), again));
        self.timers.probe = None;
        self.timers.rto = Some(now + self.rtt.timeout(config));
        self.sent.probes += 1;
        Some(chunk)
    }
}
