//! Runs iperf3 and parses its results.
//!
//! The figures come from the receivers. Each server prints its own JSON, and only data that its
//! application has read counts. All six flows run at once, but six pairs of processes do not start
//! in the same instant. So only whole intervals between a warm-up and the end count, when every
//! flow is certainly active.

use crate::table1::Transport;
use anyhow::{Context, Result, anyhow, bail};
use serde::Deserialize;

/// TCP and UDP port of every server.
pub const PORT: u16 = 5201;
/// MTU of the hosts' links in bytes of IP packet, as in the demo's fabric files. Twelve iperf3
/// processes with datagrams of 1500 bytes need more than two CPUs. With our switches and with Linux
/// bridges alike, the load would then determine the figure instead of the links.
pub(crate) const MTU: u32 = 9000;
/// Number of bytes of application data in a UDP datagram that fills the MTU, less 8 for UDP and 20
/// for IPv4.
pub(crate) const UDP_PAYLOAD_BYTES: u32 = MTU - 8 - 20;
/// Number of bytes that such a datagram takes on a host's wire: UDP 8, IPv4 20, Ethernet 14, FCS 4,
/// preamble 8, gap 12 (IEEE 802.3 clause 4.4.2).
pub(crate) const UDP_WIRE_BYTES: u32 = UDP_PAYLOAD_BYTES + 8 + 20 + 14 + 4 + 8 + 12;

/// Run of all flows at once.
#[derive(Clone, Copy, Debug)]
pub struct Load {
    /// Transport of the flows.
    pub transport: Transport,
    /// Duration for which the senders run, in whole seconds.
    pub seconds: u32,
    /// Time at the beginning that is excluded, in seconds.
    pub warm_up: f64,
    /// Time at the end that is excluded, in seconds.
    pub cool_down: f64,
    /// Rate of a host's link, in bits per second.
    pub link_bits_per_second: u64,
}

impl Load {
    /// Returns the rate that a UDP sender offers, in bits of payload per second. It is exactly the
    /// rate of its link, as if the host's device paced it.
    pub(crate) const fn udp_offer(&self) -> u64 {
        self.link_bits_per_second * UDP_PAYLOAD_BYTES as u64 / UDP_WIRE_BYTES as u64
    }

    /// Returns the command for a receiver, which ends after one test.
    pub(crate) fn server(&self) -> Vec<String> {
        words(&format!("iperf3 -s -1 -J -i 0.5 -p {PORT}"))
    }

    /// Returns the command for a sender. `congestion` names the congestion control that TCP uses.
    pub(crate) fn client(&self, receiver: std::net::Ipv4Addr, congestion: &str) -> Vec<String> {
        let common =
            format!("iperf3 -c {receiver} -p {PORT} -t {} -J --connect-timeout 3000", self.seconds);
        match self.transport {
            Transport::Udp => words(&format!(
                "{common} -u -b {} -l {UDP_PAYLOAD_BYTES} --pacing-timer 500",
                self.udp_offer()
            )),
            Transport::Tcp => words(&format!("{common} -C {congestion}")),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// Result for one receiver in the measured part of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Received {
    /// Goodput in 10^6 bits of application data per second.
    pub mbps: f64,
    /// Length of the measured part in seconds.
    pub seconds: f64,
}

#[derive(Deserialize)]
struct Output {
    #[serde(default)]
    intervals: Vec<Interval>,
    error: Option<String>,
}

#[derive(Deserialize)]
struct Interval {
    sum: Sum,
}

#[derive(Deserialize)]
struct Sum {
    start: f64,
    end: f64,
    bytes: f64,
}

/// Parses a server's JSON: the result is the mean over its intervals between `from` and `until`, in
/// seconds after its start.
///
/// # Errors
/// There is no JSON, iperf3 reports an error, or there is no whole interval in that time.
pub fn parse_server(json: &str, from: f64, until: f64) -> Result<Received> {
    let output: Output = serde_json::from_str(json).context("iperf3 printed no JSON")?;
    if let Some(error) = output.error {
        bail!("iperf3: {error}");
    }
    // Intervals each begin some 0.1 ms late, so a twentieth of a second is tolerated at either end.
    let slack = 0.05;
    let (mut bytes, mut seconds) = (0.0, 0.0);
    for Interval { sum } in output.intervals {
        if sum.start >= from - slack && sum.end <= until + slack {
            bytes += sum.bytes;
            seconds += sum.end - sum.start;
        }
    }
    if seconds <= 0.0 {
        return Err(anyhow!("iperf3 measured nothing between {from} s and {until} s"));
    }
    Ok(Received { mbps: bytes * 8.0 / seconds / 1e6, seconds })
}

/// Returns the error in a client's JSON, if the client failed.
pub fn client_error(json: &str) -> Option<String> {
    serde_json::from_str::<Output>(json).ok()?.error
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of `iperf3 -s -1 -J` 3.12, reduced to the keys that are read, for UDP at 20 Mb/s.
    const UDP: &str = r#"{"start":{"version":"iperf 3.12"},"intervals":[
      {"streams":[],"sum":{"start":0,"end":1.000103,"seconds":1.0001029968261719,"bytes":2497984,
       "bits_per_second":19981813.936583374,"jitter_ms":0.008,"lost_packets":0,"packets":1697,
       "lost_percent":0,"omitted":false,"sender":false}},
      {"streams":[],"sum":{"start":1.000103,"end":2.000112,"seconds":1.0000089406967163,
       "bytes":2500928,"bits_per_second":20007245.121289242,"omitted":false,"sender":false}},
      {"streams":[],"sum":{"start":2.000112,"end":3.000084,"seconds":0.99997198581695557,
       "bytes":2499456,"bits_per_second":19996208.177436076,"omitted":false,"sender":false}}],
      "end":{}}"#;

    fn load(transport: Transport) -> Load {
        Load {
            transport,
            seconds: 6,
            warm_up: 1.0,
            cool_down: 1.0,
            link_bits_per_second: 100_000_000,
        }
    }

    #[test]
    fn only_the_intervals_that_lie_within_the_time_count() {
        let all = parse_server(UDP, 0.0, 3.0).unwrap();
        assert!((all.mbps - 19.995).abs() < 0.001 && (all.seconds - 3.0).abs() < 0.001);
        let middle = parse_server(UDP, 1.0, 2.0).unwrap();
        assert!((middle.mbps - 20.0072).abs() < 0.001, "{middle:?}");
        assert!(parse_server(UDP, 1.5, 2.2).is_err());
    }

    #[test]
    fn an_error_of_iperf3_is_an_error_here() {
        let json = r#"{"start":{},"intervals":[],"end":{},"error":"unable to connect"}"#;
        let error = parse_server(json, 0.0, 1.0).unwrap_err().to_string();
        assert!(error.contains("unable to connect"));
        assert_eq!(client_error(json).as_deref(), Some("unable to connect"));
        assert!(parse_server("iperf3: command not found", 0.0, 1.0).is_err());
        assert_eq!(client_error(UDP), None);
    }

    #[test]
    fn a_udp_sender_offers_what_fills_its_link() {
        let offer = load(Transport::Udp).udp_offer();
        assert!((99_200_000..99_300_000).contains(&offer), "8972 of 9038: {offer}");
        let command = load(Transport::Udp).client([10, 0, 0, 2].into(), "cubic").join(" ");
        assert!(command.contains(&format!("-u -b {offer} -l 8972")), "{command}");
    }

    #[test]
    fn tcp_has_no_rate_and_names_its_congestion_control() {
        let command = load(Transport::Tcp).client([10, 0, 0, 2].into(), "cubic").join(" ");
        assert!(command.contains("-C cubic") && !command.contains("-b"), "{command}");
    }
}
