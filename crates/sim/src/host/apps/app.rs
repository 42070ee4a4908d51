//! An application, and all those of a host.

use super::id::AppId;
use super::stats::{FlowStats, Received};
use crate::host::datagram::Datagram;
use crate::host::stack::Stack;
use crate::host::tcp::ConnectionId;
use axon_wire::Time;
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// An application.
pub(crate) trait App: Send {
    /// Does what is due. Says whether the stack has work from it, or it wants to be polled
    /// again after the stack.
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool;

    /// When it has something to do of its own.
    fn deadline(&self) -> Option<Time>;

    /// Stops for good: sends nothing new, and closes what is open.
    fn stop(&mut self, now: Time, stack: &mut Stack);

    /// What it has counted.
    fn stats(&self) -> &FlowStats;

    /// Takes a datagram to one of its ports. Says the same as `poll`.
    fn receive(&mut self, _now: Time, _datagram: &Datagram<'_>, _stack: &mut Stack) -> bool {
        false
    }

    /// Looks at one of its connections, at which something has happened.
    fn connection(&mut self, _now: Time, _id: ConnectionId, _stack: &mut Stack) {}

    /// Whether it is to see every frame that comes in.
    fn watches(&self) -> bool {
        false
    }

    /// Sees a frame that came in, before anybody takes it.
    fn watch(&mut self, _now: Time, _frame: &[u8]) {}

    /// The UDP port that it listens on.
    fn udp_port(&self) -> Option<u16> {
        None
    }

    /// Whether it only counts the datagrams that it receives: it reads no more of the payload than
    /// the stamp, leaves the stack alone, and is never due.
    fn only_counts(&self) -> bool {
        false
    }

    /// The port that a stream or a connection is sent from.
    fn source_port(&self) -> Option<u16> {
        None
    }

    /// What has come in from one sender, of a sink.
    fn received_from(&self, _from: (Ipv4Addr, u16)) -> Option<&Received> {
        None
    }

    /// The connection of this local port was seen to send something again.
    fn count_retransmits(&mut self, _local_port: u16, _segments: u64) {}
}

/// The applications of a host.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Apps {
    deadline: Option<Time>,
    all: Vec<Box<dyn App>>,
    /// Who sees every frame.
    watchers: Vec<usize>,
    /// Who listens on which port, and whether that one only counts.
    udp_ports: BTreeMap<u16, (usize, bool)>,
    /// The applications to stop, by time.
    stops: BTreeMap<Time, Vec<AppId>>,
}

impl Apps {
    /// Adds an application; it is polled when its deadline, or a frame, comes.
    pub(crate) fn add(&mut self, app: Box<dyn App>) -> AppId {
        let id = self.all.len();
        if let Some(port) = app.udp_port() {
            self.udp_ports.insert(port, (id, app.only_counts()));
        }
        if app.watches() {
            self.watchers.push(id);
        }
        self.all.push(app);
        self.find_deadline();
        AppId(id)
    }

    /// The name of the next that is added.
    pub(crate) fn next_id(&self) -> AppId {
        AppId(self.all.len())
    }

    /// Something has happened at a connection of an application.
    pub(crate) fn connection(
        &mut self,
        now: Time,
        (app, connection): (AppId, ConnectionId),
        stack: &mut Stack,
    ) {
        let Some(app) = self.all.get_mut(app.0) else { return };
        let before = app.deadline();
        app.connection(now, connection, stack);
        if app.deadline() != before {
            self.find_deadline();
        }
    }

    pub(crate) fn get(&self, id: AppId) -> Option<&dyn App> {
        self.all.get(id.0).map(|app| &**app)
    }

    /// Reads a little of the first ones, as an event seldom needs more; see `prefetch.rs`.
    pub(crate) fn prefetch(&self) -> u64 {
        const PREFETCHED: usize = 4;
        let deadlines = self.all.iter().take(PREFETCHED).filter_map(|app| app.deadline());
        deadlines.fold(0, |sum, at| sum ^ at.ticks())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Polls all of them; says whether the stack has work.
    pub(crate) fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = self.stop_due(now, stack);
        for app in &mut self.all {
            more |= app.poll(now, stack);
        }
        self.find_deadline();
        more
    }

    /// Polls those whose deadline has come; says whether the stack has work.
    pub(crate) fn poll_due(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = self.stop_due(now, stack);
        for app in &mut self.all {
            if app.deadline().is_some_and(|at| at <= now) {
                more |= app.poll(now, stack);
            }
        }
        self.find_deadline();
        more
    }

    /// Shows a frame to those who want to see all.
    pub(crate) fn watch(&mut self, now: Time, frame: &[u8]) {
        for &app in &self.watchers {
            self.all[app].watch(now, frame);
        }
    }

    /// Whether an application wants to see every frame.
    pub(crate) fn watches(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Whether an application listens on this UDP port; if so, whether it only counts.
    pub(crate) fn listens_on(&self, port: u16) -> Option<bool> {
        self.udp_ports.get(&port).map(|&(_, only_counts)| only_counts)
    }

    /// Has a datagram counted, if the application of its port does no more with it than that.
    #[inline]
    pub(crate) fn count(&mut self, now: Time, datagram: &Datagram<'_>, stack: &mut Stack) -> bool {
        match self.udp_ports.get(&datagram.port) {
            Some(&(app, true)) => {
                self.all[app].receive(now, datagram, stack);
                true
            }
            _ => false,
        }
    }

    /// Hands a datagram to the application of its port. Says whether the stack has work.
    pub(crate) fn receive(
        &mut self,
        now: Time,
        datagram: &Datagram<'_>,
        stack: &mut Stack,
    ) -> bool {
        let Some(&(app, _)) = self.udp_ports.get(&datagram.port) else {
            return false;
        };
        let before = self.all[app].deadline();
        let more = self.all[app].receive(now, datagram, stack);
        if self.all[app].deadline() != before {
            self.find_deadline();
        }
        more
    }

    pub(crate) fn stop(&mut self, id: AppId, now: Time, stack: &mut Stack) {
        if let Some(app) = self.all.get_mut(id.0) {
            app.stop(now, stack);
        }
        self.find_deadline();
    }

    /// Stops an application later.
    pub(crate) fn stop_at(&mut self, id: AppId, at: Time) {
        self.stops.entry(at).or_default().push(id);
        self.find_deadline();
    }

    /// Stops those whose time has come; says whether there was one.
    fn stop_due(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut stopped = false;
        while let Some(entry) = self.stops.first_entry().filter(|entry| *entry.key() <= now) {
            for id in entry.remove() {
                self.stop(id, now, stack);
            }
            stopped = true;
        }
        stopped
    }

    pub(crate) fn count_retransmits(&mut self, local_port: u16, segments: u64) {
        self.all.iter_mut().for_each(|app| app.count_retransmits(local_port, segments));
    }

    /// When the first of them has something to do.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn find_deadline(&mut self) {
        let stop = self.stops.first_key_value().map(|(&at, _)| at);
        self.deadline = self.all.iter().filter_map(|app| app.deadline()).chain(stop).min();
    }
}
