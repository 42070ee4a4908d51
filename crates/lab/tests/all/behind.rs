//! Two hosts of two tenants behind a Linux bridge at one port of a lab: each reaches its own tenant
//! and no other, and a revocation for one does not affect its neighbour.

use crate::support::{Test, state_root};
use axon_lab::{Lab, UpOptions};
use axon_linux::policy::change;
use axon_node::telemetry::NodeTelemetry;
use axon_node::{HostPair, PolicyChange};
use axon_wire::MacAddr;
use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "test-behind";
/// Limit of every wait.
const LIMIT: Duration = Duration::from_secs(60);
/// The two hosts behind the bridge, which replaces h1.
const HIDDEN: [MacAddr; 2] = [MacAddr([2, 0, 0, 0, 0x80, 1]), MacAddr([2, 0, 0, 0, 0x80, 2])];

/// Creates the bridge, and a namespace of its own for each host. They end with the standard input.
const BRIDGE: &str = "
ip address flush dev h1-p0
ip link add br0 type bridge
ip link set h1-p0 master br0
ip link set br0 up
here=$(readlink /proc/self/ns/net)
for n in 1 2; do
    unshare -n sleep 100000 &
    pid=$!
    while [ \"$(readlink /proc/$pid/ns/net)\" = \"$here\" ]; do :; done
    ip link add g$n type veth peer name eth0 address 02:00:00:00:80:0$n netns $pid
    ip link set g$n master br0 up
    nsenter -t $pid -n ip link set eth0 up
    nsenter -t $pid -n ip address add 10.0.80.10$n/16 dev eth0
    echo $pid
    all=\"$all $pid\"
done
read end || kill $all
";

pub const TESTS: &[Test] =
    &[("two_tenants_behind_one_port_are_kept_apart_by_their_sources", apart)];

/// Two switches; h1 is alone at s1. The first host behind the bridge and h2 are red, the second and
/// h3 blue.
fn fabric_file(dataplane: &str) -> PathBuf {
    let [first, second] = HIDDEN;
    let text = format!(
        "name: {NAME}\ntopology:\n  listed:\n    switches: [s1, s2]\n    hosts:\n      \
         h1: {{ at: s1, ip: 10.0.80.1 }}\n      h2: {{ at: s2, ip: 10.0.80.2 }}\n      \
         h3: {{ at: s2, ip: 10.0.80.3 }}\n    links: [[s1, s2]]\ndataplane: {dataplane}\n\
         isolation:\n  by_source: true\n  tenants:\n  \
         - {{name: red, hosts: [\"{first}\", h2]}}\n  \
         - {{name: blue, hosts: [\"{second}\", h3]}}\n"
    );
    let root = state_root();
    let path = root.with_extension("yaml");
    std::fs::write(&path, text).expect("a file");
    path
}

/// The hosts behind the bridge, by the processes that hold their namespaces.
struct Hidden {
    shell: Child,
    processes: Vec<String>,
}

impl Hidden {
    fn begin(lab: &Lab) -> Hidden {
        let mut command = lab.command("h1", &["sh", "-ec", BRIDGE]).expect("a command");
        let mut shell =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(shell.stdout.take().expect("it is piped")).lines();
        let processes: Vec<String> = lines.take(2).collect::<Result<_, _>>().expect("two lines");
        assert_eq!(processes.len(), 2, "the bridge is not there");
        Hidden { shell, processes }
    }

    /// True if a hidden host gets an answer from a host.
    fn reaches(&self, lab: &Lab, from: usize, to: u32) -> bool {
        let pid = &self.processes[from];
        let line = format!("nsenter -t {pid} -n ping -c 2 -i 0.2 -W 1 10.0.80.{to}");
        let mut command = lab.command("h1", &["sh", "-c", &line]).expect("a command");
        command.output().expect("it starts").status.success()
    }

    fn end(mut self) {
        drop(self.shell.stdin.take());
        self.shell.wait().expect("it has ended");
    }
}

/// Sources with routes of their own at the port of the bridge.
fn sources(lab: &Lab) -> BTreeSet<MacAddr> {
    let status = lab.status().expect("the lab runs");
    let switches = status.iter().filter_map(|status| match status.node() {
        Some(NodeTelemetry::Switch(switch)) => Some(switch.routes.clone()),
        _ => None,
    });
    switches.flatten().filter_map(|route| route.source).collect()
}

fn apart() {
    for dataplane in ["full", "tc", "pipeline"] {
        let file = fabric_file(dataplane);
        let (lab, report) =
            axon_lab::up(&file, &UpOptions::default(), |_| ()).expect("it comes up");
        assert!(report.missing.is_empty(), "without controller: {:?}", report.missing);
        let hidden = Hidden::begin(&lab);
        for (from, to) in [(0, 2), (1, 3)] {
            let limit = Instant::now() + LIMIT;
            while !hidden.reaches(&lab, from, to) {
                assert!(Instant::now() < limit, "{dataplane}: {from} does not reach h{to}");
            }
        }
        // In parallel: a ping without an answer takes a second.
        std::thread::scope(|scope| {
            for (from, to) in [(0, 3), (1, 2)] {
                let (hidden, lab) = (&hidden, &lab);
                scope.spawn(move || {
                    assert!(!hidden.reaches(lab, from, to), "{dataplane}: {from} reaches h{to}");
                });
            }
        });
        assert_eq!(sources(&lab), BTreeSet::from(HIDDEN), "{dataplane}");
        let blue = lab.fabric().expect("its file is there").hosts[2].mac;
        let deny = PolicyChange::Pair(HostPair::of(HIDDEN[1], blue), false);
        let changed = change(&lab.state().socket("c1"), deny).expect("the controller takes it");
        assert_eq!((changed.done.routes_removed, changed.outstanding), (2, vec![]), "{dataplane}");
        assert!(!hidden.reaches(&lab, 1, 3), "{dataplane}: it is revoked");
        assert!(hidden.reaches(&lab, 0, 2), "{dataplane}: its neighbour goes on");
        hidden.end();
        axon_lab::down(Some(NAME)).expect("it ends");
    }
}
