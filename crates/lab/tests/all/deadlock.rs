//! A ring of lossless links among real hosts. With shortest paths it deadlocks permanently, and the
//! lab's status names the cycle; with up*/down* routes the same traffic continues.

use crate::support::{Test, part};
use axon_lab::deadlock::Deadlock;
use axon_lab::{Lab, UpOptions};
use axon_linux::status::NodeStatus;
use axon_node::Drop;
use axon_node::telemetry::Counts;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// The UDP port that the fabric's rule puts into the lossless class.
const PORT: u16 = 4791;
const HOSTS: usize = 10;
/// The cycle that `axon prove` names; `crates/axon/tests/all/deadlock.rs` compares the simulator's.
const CYCLE: [&str; 6] = ["s2-p2", "s3-p2", "s4-p2", "s5-p2", "s1-p3", "s2-p2"];
/// Frames that end for these reasons were processed, not lost.
const CONSUMED: [Drop; 2] = [Drop::Consumed, Drop::MacControl];
/// Limit of every wait, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);
/// Interval between checks.
const LOOK: Duration = Duration::from_millis(100);

pub const TESTS: &[Test] = &[
    ("shortest_paths_deadlock_in_the_cycle_that_was_predicted", end_in_deadlock),
    ("with_up_and_down_the_same_traffic_goes_on_and_loses_nothing", go_on),
];

/// Runs a program on a host.
pub fn run_part(words: &[&str]) -> ExitCode {
    let [to] = *words else { return ExitCode::FAILURE };
    talk(to)
}

/// Sends to one host as fast as the kernel permits, like a program that is unaware of the fabric,
/// and reads the datagrams of another, until it is killed.
fn talk(to: &str) -> ExitCode {
    let socket = UdpSocket::bind(("0.0.0.0", PORT)).expect("a socket");
    let reads = socket.try_clone().expect("the same socket");
    std::thread::spawn(move || {
        let mut bytes = [0; 2048];
        while reads.recv(&mut bytes).is_ok() {}
    });
    println!("ready");
    // Waits until the receivers have reported that they are ready, too.
    let mut line = String::new();
    std::io::stdin().read_line(&mut line).expect("a word");
    loop {
        // A refusal by a closed port appears as an error of a later call.
        let _ = socket.send_to(&[0; 1_400], (to, PORT));
    }
}

/// The lab, with every host sending to a host two links away.
struct Talk {
    lab: Lab,
    talkers: Vec<Child>,
    /// Losses before the first datagram, while ports came up.
    lost_before: Vec<String>,
}

impl Talk {
    fn start(router: Option<&str>) -> Talk {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/deadlock5.yaml");
        let options = UpOptions { router: router.map(str::to_owned), ..UpOptions::default() };
        let (lab, report) = axon_lab::up(&file, &options, |_| ()).expect("it is up");
        assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
        let talker = |host: usize| {
            let to = format!("10.0.77.{}", (host + 3) % HOSTS + 1);
            let mut command = lab.command(&format!("h{host}"), &part("deadlock", [&to]));
            let command = command.as_mut().expect("a command");
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts")
        };
        let mut talkers: Vec<Child> = (1..=HOSTS).map(talker).collect();
        for talker in &mut talkers {
            let mut word = [0; 6];
            let from = talker.stdout.as_mut().expect("it is piped");
            std::io::Read::read_exact(from, &mut word).expect("it is ready");
        }
        let lost_before = Talk::lost(&lab.status().expect("daemons answer"));
        // They begin when their input ends.
        talkers.iter_mut().for_each(|talker| drop(talker.stdin.take()));
        Talk { lab, talkers, lost_before }
    }

    fn look(&self) -> (Vec<NodeStatus>, Option<Deadlock>) {
        let status = self.lab.status().expect("daemons answer");
        let deadlock = self.lab.deadlock(&status).expect("the fabric is there");
        (status, deadlock)
    }

    fn run(&self, host: usize, command: &str) -> String {
        let words: Vec<&str> = command.split(' ').collect();
        let mut command: Command =
            self.lab.command(&format!("h{host}"), &words).expect("a command");
        let output = command.output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{words:?} in h{host}: {text}");
        text
    }

    /// Datagrams that the programs of a host have read.
    fn received(&self, host: usize) -> u64 {
        let text = self.run(host, "cat /proc/net/snmp");
        let mut lines = text.lines().filter_map(|line| line.strip_prefix("Udp: "));
        let (names, values) = (lines.next().expect("names"), lines.next().expect("values"));
        let mut both = names.split(' ').zip(values.split(' '));
        let value = both.find(|(name, _)| *name == "InDatagrams").expect("it is counted").1;
        value.parse().expect("a number")
    }

    /// Frames that the fabric or its ports have lost, by place and reason.
    fn lost(status: &[NodeStatus]) -> Vec<String> {
        let mut lost = Vec::new();
        for node in status {
            let status = node.status().expect("it answers");
            let drops = Counts::of(|reason| status.node.total().dropped(reason));
            let drops = drops.iter().filter(|(reason, _)| !CONSUMED.contains(reason));
            let text = |(reason, count): (Drop, u64)| format!("{}: {}", reason.name(), count);
            lost.extend(drops.map(|drops| format!("{}: {}", status.name, text(drops))));
            for port in &status.ports {
                let (rx, tx) = (port.counters.rx_ring_drops, port.counters.tx_refused);
                if rx + tx > 0 {
                    lost.push(format!("{}: {rx} lost in the ring, {tx} refused", port.name));
                }
            }
        }
        lost
    }

    fn end(self) {
        axon_lab::down(Some(self.lab.name())).expect("it ends");
        for mut talker in self.talkers {
            talker.wait().expect("it has ended with the lab");
        }
    }
}

fn end_in_deadlock() {
    let talk = Talk::start(None);
    let began = Instant::now();
    let found = loop {
        let (status, deadlock) = talk.look();
        if let Some(found) = deadlock {
            break found;
        }
        assert!(began.elapsed() < LIMIT, "no deadlock: {status:#?}");
        std::thread::sleep(LOOK);
    };
    println!("after {:.1} s: {found:?}", began.elapsed().as_secs_f32());
    assert_eq!(found.cycle, CYCLE);
    // Lossy traffic passes all the same, and the cycle stays as it is.
    talk.run(1, "ping -q -c 3 -i 0.2 -W 5 10.0.77.5");
    let (status, later) = talk.look();
    assert_eq!(later.expect("it is there for ever").cycle, CYCLE);
    assert_eq!(Talk::lost(&status), talk.lost_before);
    talk.end();
}

fn go_on() {
    let talk = Talk::start(Some("up_down"));
    let began = Instant::now();
    // In a ring that deadlocks no flow gets that far.
    for datagrams in [200, 300] {
        while (1..=HOSTS).any(|host| talk.received(host) < datagrams) {
            let (status, deadlock) = talk.look();
            assert_eq!(deadlock, None);
            assert!(began.elapsed() < LIMIT, "{datagrams} have not come: {status:#?}");
        }
    }
    println!("300 datagrams of each after {:.1} s", began.elapsed().as_secs_f32());
    assert_eq!(Talk::lost(&talk.look().0), talk.lost_before);
    talk.end();
}
