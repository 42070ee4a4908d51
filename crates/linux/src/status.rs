//! Status of a daemon, and the socket that serves it.

use crate::agent_port::AgentStatus;
use crate::dataplane_choice::DataplaneChoice;
use crate::port::PortCounters;
use crate::socket;
use crate::store::StoreStatus;
use axon_node::PortKind;
use axon_node::telemetry::NodeTelemetry;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::Duration;

/// Time limit for writing to a slow reader, in a separate thread.
const WRITE_TIMEOUT: Duration = Duration::from_secs(1);
/// Time limit for an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Status of a daemon: its run loop, its ports, its node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Name of the node, `s1`.
    pub name: String,
    /// Time since the daemon was started, in microseconds.
    pub uptime_us: u64,
    /// Counters of the run loop.
    #[serde(rename = "loop")]
    pub run_loop: LoopCounters,
    /// Ports, by port number.
    pub ports: Vec<PortStatus>,
    /// Store of a controller, if it has one.
    pub store: Option<StoreStatus>,
    /// Data plane of a switch, and the reason for its selection.
    pub dataplane: Option<DataplaneChoice>,
    /// Telemetry of the node.
    pub node: NodeTelemetry,
}

/// Status of one port of a daemon and its device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortStatus {
    /// Name of the device, `s1-p0`.
    pub name: String,
    /// True if the port is open and has carrier.
    pub up: bool,
    /// Kind of the peer.
    pub kind: PortKind,
    /// Transmit rate in bits per second; unlimited if `None`.
    pub rate_bps: Option<u64>,
    /// MTU of the device in bytes; `None` before there was a device.
    pub mtu_bytes: Option<u64>,
    /// MTU that the longest frame needs with the current peer, in bytes; `None` if any will do. If
    /// the device has less, longer frames are lost.
    pub mtu_needed_bytes: Option<u64>,
    /// Counters of the port.
    pub counters: PortCounters,
    /// Agent at the far end, if the port is for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentStatus>,
}

/// Counters of a run loop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopCounters {
    /// Rounds of the run loop since the daemon started.
    pub rounds: u64,
    /// Wake-ups more than 1 ms late.
    pub late: u64,
    /// Latest wake-up, in microseconds after its time.
    pub latest_us: u64,
}

/// Node of a lab: its status, or the reason for its absence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// Restarts of the daemon after crashes.
    pub restarts: u32,
    /// Answer of the daemon.
    #[serde(flatten)]
    pub answer: Answer,
}

/// Answer of a daemon.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Answer {
    /// Status that the daemon reported.
    Status(Box<Status>),
    /// No answer, or an invalid one.
    Failed {
        /// Name of the node, `s1`.
        name: String,
        /// Reason for which there is no status.
        error: String,
    },
}

impl NodeStatus {
    /// Requests the status of node `name` from the daemon that listens at `path`.
    pub fn ask(name: &str, path: &Path, restarts: u32) -> NodeStatus {
        let answer = ask(path).map_or_else(
            |error| Answer::Failed {
                name: name.to_owned(),
                error: crate::log::without_os_numbers(&error.to_string()),
            },
            |status| Answer::Status(Box::new(status)),
        );
        NodeStatus { restarts, answer }
    }

    /// Returns the name of the node.
    pub fn name(&self) -> &str {
        match &self.answer {
            Answer::Status(status) => &status.name,
            Answer::Failed { name, .. } => name,
        }
    }

    /// Returns the status, if the daemon has answered.
    pub fn status(&self) -> Option<&Status> {
        match &self.answer {
            Answer::Status(status) => Some(status),
            Answer::Failed { .. } => None,
        }
    }

    /// Returns the telemetry of the node, if the daemon has answered.
    pub fn node(&self) -> Option<&NodeTelemetry> {
        self.status().map(|status| &status.node)
    }
}

/// Listening status socket.
pub struct StatusServer {
    listener: UnixListener,
}

impl StatusServer {
    /// Listens at `path`. A socket that a dead process has left there is replaced.
    ///
    /// # Errors
    /// Another process listens there, the path is not a socket, the directory does not exist, or
    /// there is no permission to write there.
    pub(crate) fn open(path: &Path) -> io::Result<StatusServer> {
        Ok(StatusServer { listener: socket::listen(path)? })
    }

    /// Returns the descriptor to poll for readability.
    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Sends the status to all connected clients. Separate threads write it, so that a slow reader
    /// does not delay the fabric.
    pub(crate) fn answer<T: Serialize>(&self, status: &T) {
        let text = match serde_json::to_string(status) {
            Ok(text) => format!("{text}\n"),
            Err(error) => return tracing::error!(%error, "no JSON of the status"),
        };
        while let Ok((mut stream, _)) = self.listener.accept() {
            let text = text.clone();
            let write = move || {
                let timeout = stream.set_write_timeout(Some(WRITE_TIMEOUT));
                if let Err(error) = timeout.and_then(|()| stream.write_all(text.as_bytes())) {
                    tracing::debug!(%error, "status not delivered");
                }
            };
            if let Err(error) = std::thread::Builder::new().name("status".into()).spawn(write) {
                tracing::warn!(%error, "no thread for status");
            }
        }
    }
}

/// Requests the status from the daemon that listens at `path`.
///
/// # Errors
/// No listener, no answer within two seconds, or an invalid answer.
pub fn ask(path: &Path) -> io::Result<Status> {
    ask_at(path)
}

/// Reads the status that is served at `path`; see [`ask`].
pub(crate) fn ask_at<T: DeserializeOwned>(path: &Path) -> io::Result<T> {
    let mut stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(READ_TIMEOUT))?;
    stream.shutdown(Shutdown::Write)?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;
    use axon_node::probe::{PlanKind, ProbeId, ProbePlan, ProbeReport, ProbeReturn};
    use axon_node::telemetry::{BlockedBuffer, EdgeHost, FlowControl, PausedQueue};
    use axon_node::{Drop, PortEvent};
    use axon_wire::probe::{ProbeRecord, ProbeUnit};
    use axon_wire::{Bytes, Hops, MacAddr, PortNo, Priority, PrioritySet, Time};

    /// Returns the status of a switch with one of every value whose JSON differs from its
    /// representation in memory.
    fn telling() -> NodeStatus {
        let three = Priority::ALL[3];
        let queue = PausedQueue { egress: PortNo::CONTROL, paused: PrioritySet::ALL };
        let blocked =
            BlockedBuffer { priority: three, left_frames: 1, blocked_us: 2, queues: vec![queue] };
        let mut switch = testing::switch(1);
        let mac = MacAddr([2, 0, 0, 0, 0, 0xab]);
        switch.hosts = vec![EdgeHost { mac, vlan: Default::default(), port: PortNo(0), ip: None }];
        switch.plane.total.count_many(PortEvent::Drop(Drop::QueueFull), 1);
        switch.plane.total.count_many(PortEvent::Drop(Drop::Consumed), 2);
        switch.plane.ports[0].flow_control = Some(FlowControl {
            paused: PrioritySet::only(three),
            blocked: vec![blocked],
            ..FlowControl::default()
        });
        let record = ProbeRecord {
            unit: ProbeUnit::Egress,
            port: PortNo(4),
            queued: Bytes(99),
            time: Time::MAX,
        };
        let (sent_at, back_at) = (Time::from_nanos(1), Time::from_nanos(2));
        switch.probes = vec![ProbeReport {
            id: ProbeId(7),
            plan: ProbePlan::new(PlanKind::Circuit(Hops::to_control())),
            sent: 1,
            lost: 0,
            learned: true,
            returns: vec![ProbeReturn { number: 0, sent_at, back_at, records: vec![record] }],
        }];
        testing::status("s1", switch)
    }

    #[test]
    fn a_status_survives_its_json_whose_keys_say_their_units() {
        let status = telling();
        let text = serde_json::to_string(&status).unwrap();
        for part in [
            r#""drops":{"queue_full":1},"ended":{"consumed":2}"#,
            r#""mac":"02:00:00:00:00:ab""#,
            r#""paused":[3]"#,
            r#""blocked_us":2"#,
            r#""time_ticks":18446744073709551615"#,
            r#""role":"switch""#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert_eq!(serde_json::from_str::<NodeStatus>(&text).unwrap(), status);
        for (right, wrong) in [("queue_full", "queue_fool"), ("00:ab", "00:ag"), ("[3]", "[8]")] {
            let text = text.replace(right, wrong);
            assert!(serde_json::from_str::<NodeStatus>(&text).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_socket_of_a_live_daemon_is_left_to_it_and_that_of_a_dead_one_is_taken() {
        let path = std::env::temp_dir().join(format!("axon-taken-{}.sock", std::process::id()));
        let first = StatusServer::open(&path).unwrap();
        let error = StatusServer::open(&path).err().expect("somebody listens there");
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        assert!(UnixStream::connect(&path).is_ok(), "the first one is still reached");
        drop(first);
        drop(StatusServer::open(&path).unwrap());
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a letter").unwrap();
        let error = StatusServer::open(&path).err().expect("that is no socket");
        assert!(error.to_string().contains("no socket"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"a letter");
        std::fs::remove_file(&path).unwrap();
    }

    #[test]
    fn whoever_connects_reads_the_same_status_that_was_given() {
        let path = std::env::temp_dir().join(format!("axon-status-{}.sock", std::process::id()));
        let server = StatusServer::open(&path).unwrap();
        let asker = std::thread::spawn({
            let path = path.clone();
            move || NodeStatus::ask("s1", &path, 2)
        });
        let mut fds = [nix::poll::PollFd::new(server.fd(), nix::poll::PollFlags::POLLIN)];
        nix::poll::poll(&mut fds, nix::poll::PollTimeout::from(2000u16)).unwrap();
        let given = testing::status("s1", testing::switch(2));
        server.answer(given.status().unwrap());
        let read = asker.join().unwrap();
        assert_eq!(read, NodeStatus { restarts: 2, ..given });
        std::fs::remove_file(&path).unwrap();
        assert!(NodeStatus::ask("s1", &path, 0).node().is_none(), "nobody listens any more");
    }
}
