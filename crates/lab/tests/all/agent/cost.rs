//! Cost of an agent: TCP from one host to another over a switch, alternately with agents at both
//! and without any. Not a test; `docs/agent.md` has the results:
//!
//! ```sh
//! AXON_COST=1Gbps cargo test -p axon-lab --test all -- --ignored --nocapture agent::cost
//! ```

use super::{finish, raise, start, wait_for_sockets};
use axon_lab::Lab;
use serde_json::Value;

/// The variable with the rate of the links.
const RATE: &str = "AXON_COST";

const ROUNDS: usize = 5;
const PORT: &str = "5201";

/// Measures, and prints the result.
pub fn measure() {
    let rate = std::env::var(RATE).expect("a rate");
    let network = |name: &str, subnet: u8, agents: &str| {
        raise(&format!(
            "name: {name}
topology:
  listed:
    switches: [s1]
    hosts:
      h1: {{ at: s1, ip: 10.0.{subnet}.1 }}
      h3: {{ at: s1, ip: 10.0.{subnet}.3 }}
    links: []
links: {{ rate: {rate} }}
dcb:
  classes:
    - {{ priorities: [0, 1, 2, 4, 5, 6], ets: 50 }}
    - {{ priorities: [3], ets: 50, lossless: true }}
    - {{ priorities: [7] }}
  buffers: {{ reaction: 20ms, lossless_pool: 8MiB, lossy_pool: 8MiB }}
{agents}"
        ))
    };
    let with = network("cost-with", 78, "  applications: [tcp:5201=3]\n");
    let without = network("cost-without", 79, "");
    let mut sums = [0.0; 2];
    for _ in 0..ROUNDS {
        let mbps = [(&with, "10.0.78.3"), (&without, "10.0.79.3")].map(|(lab, to)| run(lab, to));
        println!("Mb/s: {:.0} with agents, {:.0} without", mbps[0], mbps[1]);
        (0..2).for_each(|which| sums[which] += mbps[which]);
    }
    println!("with agents {:.2} of what goes without", sums[0] / sums[1]);
    for lab in [with, without] {
        axon_lab::down(Some(lab.name())).expect("it ends");
    }
}

/// Returns the throughput of TCP in three seconds, in Mb/s.
fn run(lab: &Lab, to: &str) -> f64 {
    let server = start(lab, "h3", &["iperf3", "-s", "-4", "-1", "-p", PORT]);
    wait_for_sockets(lab, "h3", "/proc/net/tcp", &[PORT]);
    let client = start(lab, "h1", &["iperf3", "-c", to, "-p", PORT, "-t", "3", "-J"]);
    let report: Value = serde_json::from_str(&finish(client)).expect("iperf3 speaks JSON");
    finish(server);
    report["end"]["sum_received"]["bits_per_second"].as_f64().expect("a rate") / 1e6
}
