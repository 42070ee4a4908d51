//! The application trait, and the applications of a host.

use super::id::AppId;
use super::stats::{FlowStats, Received};
use crate::datagram::{self, Datagram};
use crate::stack::Stack;
use crate::tcp::ConnectionId;
use axon_wire::{Contents, Time};
use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Application on a host.
pub(crate) trait App: Send {
    /// Does what is due. Returns whether the stack has work, or the application needs another poll
    /// after the stack.
    fn poll(&mut self, now: Time, stack: &mut Stack) -> bool;

    /// Returns when the application next has something to do by itself.
    fn deadline(&self) -> Option<Time>;

    /// Stops permanently: sends nothing new, and closes what is open.
    fn stop(&mut self, now: Time, stack: &mut Stack);

    /// Returns the application's statistics.
    fn stats(&self) -> &FlowStats;

    /// Receives a datagram for one of the application's ports. Returns as `poll` does.
    fn receive(&mut self, _now: Time, _datagram: &Datagram<'_>, _stack: &mut Stack) -> bool {
        false
    }

    /// Handles a change on one of the application's connections.
    fn connection(&mut self, _now: Time, _id: ConnectionId, _stack: &mut Stack) {}

    /// Returns whether the application observes every received frame.
    fn watches(&self) -> bool {
        false
    }

    /// Observes a received frame before it is processed.
    fn watch(&mut self, _now: Time, _frame: &[u8]) {}

    /// Returns the UDP port on which the application listens.
    fn udp_port(&self) -> Option<u16> {
        None
    }

    /// Returns whether the application only counts datagrams: it reads no payload beyond the stamp,
    /// does not use the stack, and is never due.
    fn only_counts(&self) -> bool {
        false
    }

    /// Returns the source port of the stream or connection.
    fn source_port(&self) -> Option<u16> {
        None
    }

    /// Returns what a sink has received from one sender.
    fn received_from(&self, _from: (Ipv4Addr, u16)) -> Option<&Received> {
        None
    }
}

/// Applications of a host.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Apps {
    deadline: Option<Time>,
    all: Vec<Box<dyn App>>,
    /// Applications that observe every frame.
    watchers: Vec<usize>,
    /// Listening applications by UDP port, and whether each only counts.
    udp_ports: BTreeMap<u16, (usize, bool)>,
    /// Applications to stop, by time.
    stops: BTreeMap<Time, Vec<AppId>>,
}

impl Apps {
    /// Adds an application. It is polled at its deadline, and called when a datagram or a
    /// change of a connection arrives for it.
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

    /// Returns the ID of the next application.
    pub(crate) fn next_id(&self) -> AppId {
        AppId(self.all.len())
    }

    /// Passes a change on a connection to its application.
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

    /// Prefetch hint for the first applications, as an event seldom needs more; see the simulator's
    /// `prefetch.rs`.
    pub(crate) fn prefetch(&self) -> u64 {
        const PREFETCHED: usize = 4;
        let deadlines = self.all.iter().take(PREFETCHED).filter_map(|app| app.deadline());
        deadlines.fold(0, |sum, at| sum ^ at.ticks())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Polls all applications. Returns whether the stack has work.
    pub(crate) fn poll(&mut self, now: Time, stack: &mut Stack) -> bool {
        let mut more = self.stop_due(now, stack);
        for app in &mut self.all {
            more |= app.poll(now, stack);
        }
        self.find_deadline();
        more
    }

    /// Polls the applications whose deadline has come. Returns whether the stack has work.
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

    /// Passes a frame to the applications that observe all frames.
    pub(crate) fn watch(&mut self, now: Time, frame: &[u8]) {
        for &app in &self.watchers {
            self.all[app].watch(now, frame);
        }
    }

    /// Returns whether any application observes every frame.
    pub(crate) fn watches(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// Returns whether the application that listens for a frame to the host's address only counts
    /// it; `None` if no application listens.
    #[inline]
    pub(crate) fn listener(&self, frame: Contents<'_>, own: Option<Ipv4Addr>) -> Option<bool> {
        let datagram = datagram::parse(frame).filter(|datagram| Some(datagram.target) == own)?;
        self.udp_ports.get(&datagram.port).map(|&(_, only_counts)| only_counts)
    }

    /// Counts a datagram if the application of its port only counts. Returns whether it did.
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

    /// Delivers a datagram to the application of its port. Returns whether the stack has work.
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

    /// Stops the applications whose stop time has come. Returns whether there was one.
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

    /// Returns when the first application is due.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    fn find_deadline(&mut self) {
        let stop = self.stops.first_key_value().map(|(&at, _)| at);
        self.deadline = self.all.iter().filter_map(|app| app.deadline()).chain(stop).min();
    }
}
