//! `axon-model forwarder`: computes the gain from payload caching with the queueing model. `axon
//! model` runs it.

#![forbid(unsafe_code)]
// Both macros panic if the reader has gone or the disk is full, see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use anyhow::{Context, Result, bail, ensure};
use axon_cli::{output, program, say};
use axon_model::hardware::{Bus, HOST_AGENT_US, HOST_MODEL_US, Nic, Overheads};
use axon_model::lanai::Forwarder;
use axon_model::network::{Load, ModelError, Network, Station};
use axon_model::pcie::{Ethernet, Scheme, network as pcie_network};
use serde::Serialize;
use std::fmt::Write;
use std::process::ExitCode;

/// Default arrival rate as a share of saturation.
const USUAL_SHARE: f64 = 0.9;

/// Compute the capacity of a machine, by a queueing model
#[derive(clap::Parser)]
#[command(
    name = "axon-model",
    version,
    propagate_version = true,
    after_help = "Exit status: 0 all is below saturation; 1 the rate saturates a scheme; 2 wrong \
    usage"
)]
struct Arguments {
    #[command(subcommand)]
    machine: Machine,
}

#[derive(clap::Subcommand)]
enum Machine {
    Forwarder(ForwarderArguments),
}

/// Model a host that forwards packets, without and with payload caching in its NIC: demands,
/// bottleneck, saturation, response time and size of the cache
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 all is below saturation; 1 the rate saturates a scheme; 2 wrong \
    usage"
)]
struct ForwarderArguments {
    /// Bytes of a packet, such as 4KiB
    #[arg(long, value_name = "SIZE", default_value = "4KiB", value_parser = size)]
    packet: u64,
    /// The NIC: lanai4, lanai7 or lanai9 of the paper; 100g, 2x100g, 200g, 4x100g or 400g of today
    #[arg(long, default_value = "lanai9")]
    nic: String,
    /// The I/O bus: 33 (PCI, 32 bits at 33 MHz) or 66 (64 bits at 66 MHz) for the paper's NICs,
    /// pcie4 (PCIe 4.0, 16 lanes) for those of today; by default 33 or pcie4
    #[arg(long)]
    bus: Option<String>,
    /// Data that crosses the bus: off, the whole packet in both directions; on, its payload once;
    /// headers, the headers only, as today's NICs can; both, off and on. All that the NIC supports
    /// by default
    #[arg(long, value_parser = ["off", "on", "headers", "both"])]
    caching: Option<String>,
    /// Arrival rate, such as 80MB/s or 10Gb/s; by default 90 % of a scheme's saturation
    #[arg(long, value_parser = rate)]
    rate: Option<f64>,
    /// Include the DMA set-up and the host's service time fitted to the paper's measurements,
    /// instead of its model's
    #[arg(long)]
    measured: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

fn main() -> ExitCode {
    program::run(run, |_| false)
}

/// Prints the results of the model. Returns whether no scheme is saturated.
///
/// # Errors
/// There is no such NIC or bus, or the packet size is not modelled.
fn run(arguments: &Arguments) -> Result<ExitCode> {
    program::end_at_interrupt();
    let Machine::Forwarder(arguments) = &arguments.machine;
    let output = Output::of(arguments)?;
    match arguments.json {
        true => say::print(&output::json(&output)?)?,
        false => say::print(&output.text()?)?,
    }
    Ok(say::answer(output.schemes.iter().all(|scheme| scheme.saturated.is_none())))
}

fn size(text: &str) -> Result<u64, String> {
    let bytes = axon_fabric::units::bytes(text).map_err(|expected| format!("expected {expected}"));
    bytes.map(|bytes| bytes.0)
}

/// Parses a rate in MB/s.
fn rate(text: &str) -> Result<f64, String> {
    if let Ok(rate) = axon_fabric::units::rate(text) {
        return Ok(rate.bits_per_second() as f64 / 8e6);
    }
    let bytes = text.trim().strip_suffix("/s").map(axon_fabric::units::bytes);
    match bytes {
        Some(Ok(bytes)) if bytes.0 > 0 => Ok(bytes.0 as f64 / 1e6),
        _ => Err("expected a rate above zero such as 80MB/s or 10Gb/s".to_owned()),
    }
}

/// Output of `axon model forwarder --json`.
#[derive(Serialize)]
struct Output {
    /// Bytes of a packet, as given.
    packet_bytes: u64,
    /// Name of the NIC, such as `lanai9`.
    nic: String,
    /// Name of the bus: `33`, `66` or `pcie4`.
    bus: String,
    /// The schemes of payload caching, in the order in which they save crossings.
    schemes: Vec<SchemeJson>,
}

/// Scheme of payload caching.
#[derive(Serialize)]
struct SchemeJson {
    /// Bus crossings: `off`, `on` or `headers`.
    caching: String,
    /// The stations that a packet visits.
    stations: Vec<Station>,
    /// Name of the station with the largest demand.
    bottleneck: String,
    /// Time of the bottleneck per packet.
    demand_us: f64,
    /// Latency of a packet without queueing.
    delay_us: f64,
    /// Arrival rate that saturates the bottleneck, in packets per second.
    saturation_pps: f64,
    /// Arrival rate that saturates the bottleneck, in MB/s, where a MB is 1,000,000 bytes.
    saturation_mb_s: f64,
    /// Gain over the first scheme in per cent.
    gain_percent: f64,
    /// Queues at the arrival rate; null if it saturates the scheme.
    load: Option<Load>,
    /// Error of the arrival rate; null if it is below saturation.
    saturated: Option<String>,
}

impl Output {
    fn of(arguments: &ForwarderArguments) -> Result<Output> {
        let ForwarderArguments { packet, nic, .. } = arguments;
        let is_paper = nic.parse::<Nic>().is_ok();
        let bus = arguments.bus.as_deref().unwrap_or(if is_paper { "33" } else { "pcie4" });
        let networks = if is_paper {
            lanai(arguments, nic.parse()?, bus)?
        } else {
            let Ok(nic) = nic.parse::<Ethernet>() else {
                let today = Ethernet::ALL.map(|nic| nic.to_string()).join(", ");
                let paper = Nic::ALL.map(|nic| nic.to_string()).join(", ");
                bail!("--nic: no NIC is named {nic}; expected {paper}, {today}");
            };
            pcie(arguments, nic, bus)?
        };
        let first = networks[0].1.saturation_mb_s();
        let scheme = |(caching, network): &(Scheme, Network)| {
            SchemeJson::of(*caching, network, first, arguments.rate)
        };
        let schemes: Result<Vec<SchemeJson>> = networks.iter().map(scheme).collect();
        let (nic, bus) = (nic.clone(), bus.to_owned());
        Ok(Output { packet_bytes: *packet, nic, bus, schemes: schemes? })
    }

    fn text(&self) -> Result<String> {
        let mut text = String::new();
        let Output { packet_bytes, nic, bus, schemes } = self;
        writeln!(text, "Forwarder of packets of {packet_bytes} bytes, NIC {nic}, bus {bus}.")?;
        for scheme in schemes {
            scheme.write(&mut text)?;
        }
        if let [first, others @ ..] = &schemes[..]
            && !others.is_empty()
        {
            writeln!(text)?;
            for other in others {
                let [from, to] = [&first.caching, &other.caching];
                writeln!(text, "gain, {from} to {to}: {:+.1} %", other.gain_percent)?;
            }
        }
        Ok(text)
    }
}

impl SchemeJson {
    fn of(caching: Scheme, network: &Network, first: f64, rate: Option<f64>) -> Result<SchemeJson> {
        let usual = USUAL_SHARE * network.saturation_pps();
        let arrivals = rate.map_or(usual, |mb_s| network.pps_of_mb_s(mb_s));
        let (load, saturated) = match network.at(arrivals) {
            Ok(load) => (Some(load), None),
            Err(error @ ModelError::Saturated { .. }) => (None, Some(error.to_string())),
            Err(error) => return Err(error.into()),
        };
        let saturation_mb_s = network.saturation_mb_s();
        Ok(SchemeJson {
            caching: caching.to_string(),
            stations: network.stations().to_vec(),
            bottleneck: network.bottleneck().name.clone(),
            demand_us: network.bottleneck().demand_us(),
            delay_us: network.delay_us(),
            saturation_pps: network.saturation_pps(),
            saturation_mb_s,
            gain_percent: 100.0 * (saturation_mb_s / first - 1.0),
            load,
            saturated,
        })
    }

    fn write(&self, text: &mut String) -> Result<()> {
        writeln!(text, "\ncaching {}", self.caching)?;
        writeln!(
            text,
            "  {:<15} {:>6} {:>12} {:>12}",
            "station", "visits", "service, us", "demand, us"
        )?;
        for station in &self.stations {
            let Station { name, visits, service_us } = station;
            let demand = station.demand_us();
            let bottleneck = if *name == self.bottleneck { "  bottleneck" } else { "" };
            let digits = if demand < 1.0 { 4 } else { 2 };
            writeln!(
                text,
                "  {name:<15} {visits:>6} {service_us:>12.digits$} {demand:>12.digits$}{bottleneck}"
            )?;
        }
        let (mb_s, pps) = (self.saturation_mb_s, self.saturation_pps);
        writeln!(text, "  saturation      {mb_s:.2} MB/s, {pps:.0} packets/s")?;
        if let Some(load) = &self.load {
            let mb_s = mb_s * load.arrival_pps / pps;
            writeln!(
                text,
                "  at {mb_s:.2} MB/s    response {:.2} us, {:.2} packets inside, cache {:.1} kB",
                load.response_us,
                load.population,
                load.cache_bytes / 1e3
            )?;
        }
        if let Some(saturated) = &self.saturated {
            writeln!(text, "  saturated       {saturated}")?;
        }
        Ok(())
    }
}

/// Returns the schemes that `--caching` names, or all available ones without it.
fn schemes<'a>(caching: Option<&str>, all: &'a [Scheme]) -> &'a [Scheme] {
    match caching {
        Some("off") => &[Scheme::Off],
        Some("on") => &[Scheme::On],
        Some("headers") => &[Scheme::Headers],
        Some(_) => &[Scheme::Off, Scheme::On],
        None => all,
    }
}

fn lanai(arguments: &ForwarderArguments, nic: Nic, bus: &str) -> Result<Vec<(Scheme, Network)>> {
    let Ok(bus) = bus.parse::<Bus>() else {
        bail!("--bus: {nic} has no bus {bus}; expected 33, 66");
    };
    ensure!(
        arguments.caching.as_deref() != Some("headers"),
        "--caching headers: {nic} sends payloads to the host; expected off, on, both"
    );
    let (host_us, overheads) = match arguments.measured {
        true => (HOST_AGENT_US, Overheads::FITTED),
        false => (HOST_MODEL_US, Overheads::NONE),
    };
    let network = |scheme: &Scheme| {
        let is_caching = *scheme == Scheme::On;
        let forwarder = Forwarder { nic, bus, is_caching, host_us, overheads };
        Ok((*scheme, forwarder.network(arguments.packet).context("--packet")?))
    };
    let schemes = schemes(arguments.caching.as_deref(), &[Scheme::Off, Scheme::On]);
    schemes.iter().map(network).collect()
}

fn pcie(
    arguments: &ForwarderArguments,
    nic: Ethernet,
    bus: &str,
) -> Result<Vec<(Scheme, Network)>> {
    ensure!(bus == "pcie4", "--bus: {nic} has no bus {bus}; expected pcie4");
    ensure!(
        !arguments.measured,
        "--measured: the paper measured lanai4, lanai7, lanai9, not {nic}"
    );
    let network = |scheme: &Scheme| {
        let network = pcie_network(nic, *scheme, arguments.packet).context("--packet")?;
        Ok((*scheme, network))
    };
    schemes(arguments.caching.as_deref(), &Scheme::ALL).iter().map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_read_in_bytes_and_in_bits() {
        assert_eq!(rate("80MB/s"), Ok(80.0));
        assert_eq!(rate("10Gb/s"), Ok(1_250.0));
        for wrong in ["", "80", "80MB", "0MB/s", "-1MB/s", "80 apples/s"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
    }
}
