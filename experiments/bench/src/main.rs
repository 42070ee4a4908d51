//! `axon-bench`: compares the data planes with bridges, Open vSwitch and a bare redirect. `axon
//! bench` runs it.

#![forbid(unsafe_code)]
// Both macros panic if the reader has gone or the disk is full, see `say`.
#![deny(clippy::print_stdout, clippy::print_stderr)]

use anyhow::{Result, ensure};
use axon_bench::report::{MachineJson, Report};
use axon_bench::run;
use axon_bench::selection::Settings;
use axon_bench::traffic::{data, datagrams, inside, packets};
use axon_cli::output::{self, is_standard};
use axon_cli::reserve::{Reserved, apart};
use axon_cli::say::{self, Unwritten};
use axon_demo::machine;
use axon_demo::process::Stop;
use axon_plot::Plot;
use axon_wire::MacAddr;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Settings of `--quick`: rounds, seconds, numbers of switches.
const QUICK: (u32, u32, &[u32]) = (1, 1, &[3]);
/// Default settings.
const USUAL: (u32, u32, &[u32]) = (3, 1, &[1, 3, 5]);

/// Measure the data planes of this machine beside bridges, Open vSwitch and a bare redirect
#[derive(clap::Parser)]
#[command(
    name = "axon-bench",
    version,
    after_help = "Exit status: 0 all that this machine has was measured, noisy or not; 1 a \
    measurement failed, or data did not arrive as it was sent; 2 it could not be tried, or wrong \
    usage; 130 interrupted",
    args_conflicts_with_subcommands = true
)]
struct Arguments {
    /// Number of rounds, 1 to 1000; 3 by default
    #[arg(long, value_name = "N")]
    rounds: Option<u32>,
    /// Approximate duration of each measurement, 1 to 600 whole seconds; 1 by default
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u32>,
    /// Numbers of switches in a line, 1 to 16 each; 1,3,5 by default
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    switches: Vec<u32>,
    /// One round through three switches, unless other options say otherwise
    #[arg(long)]
    quick: bool,
    /// Subjects and measurements: bridges, redirect, ovs, full, tc, xdp, and tcp, ping, packets,
    /// intact, shares; without one of a kind, all of that kind
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    only: Vec<String>,
    /// Write all figures as JSON; `-` writes only JSON to standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Plot the gain over bridges, and in NAME-packets.svg the time between frames
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    #[command(subcommand)]
    part: Option<Part>,
}

/// Command run on a host.
#[derive(clap::Subcommand)]
enum Part {
    /// Become a command that ends with its parent
    #[command(hide = true)]
    Inside {
        /// The command
        #[arg(last = true)]
        argv: Vec<String>,
    },
    /// Send frames of 64 bytes
    #[command(hide = true)]
    PacketsSend {
        /// The device to send from
        device: String,
        /// IPv4 address of the sender
        from: Ipv4Addr,
        /// MAC address of the receiver
        mac: String,
        /// IPv4 address of the receiver
        to: Ipv4Addr,
        /// Duration in milliseconds
        millis: u64,
        /// Frames per second; as fast as possible if omitted
        rate: Option<u64>,
    },
    /// Count frames that arrive
    #[command(hide = true)]
    PacketsReceive,
    /// Send a TCP stream
    #[command(hide = true)]
    DataSend {
        /// Address of the receiver
        to: Ipv6Addr,
        /// Number of bytes
        bytes: u64,
    },
    /// Receive a TCP stream
    #[command(hide = true)]
    DataReceive,
    /// Send UDP super-packets
    #[command(hide = true)]
    DatagramsSend {
        /// Address of the receiver
        to: Ipv4Addr,
        /// Number of super-packets
        packets: u64,
    },
    /// Receive the datagrams of UDP super-packets
    #[command(hide = true)]
    DatagramsReceive {
        /// Number of super-packets
        packets: u64,
    },
}

fn main() -> ExitCode {
    // This must precede any thread, because the process may belong to a lab.
    if let Some(code) = axon_lab::part() {
        return code;
    }
    axon_cli::program::run(run, |error| error.is::<axon_lab::Interrupted>())
}

/// Runs the measurements. Returns whether all of them succeeded.
///
/// # Errors
/// The run could not start, or it was stopped. Everything that was started is stopped again.
fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(part) = &arguments.part {
        return run_part(part).map(|()| ExitCode::SUCCESS);
    }
    let (rounds, seconds, switches) = if arguments.quick { QUICK } else { USUAL };
    let switches =
        if arguments.switches.is_empty() { switches } else { arguments.switches.as_slice() };
    let rounds = arguments.rounds.unwrap_or(rounds);
    let seconds = arguments.seconds.unwrap_or(seconds);
    let settings = Settings::new(rounds, seconds, switches, &arguments.only)?;
    let is_quiet = reserve(arguments)?;
    let stop = Stop::on_signals()?;
    let began = Instant::now();
    let found = match run::run(&settings, &stop) {
        Err(error) if stop.check().is_err() => {
            say::note!("{error:#}");
            return Ok(say::INTERRUPTED.into());
        }
        found => found?,
    };
    let of = machine::describe();
    let machine = MachineJson {
        date: machine::date()?,
        commit: axon_cli::COMMIT.into(),
        cpu: of.cpu,
        cpus: of.cpus,
        kernel: of.kernel,
        wall_seconds: began.elapsed().as_secs_f64(),
    };
    let report = Report::new(&settings, found, machine);
    let mut unwritten = Unwritten::default();
    if !is_quiet {
        unwritten.take(say::print(&report.text()));
    }
    if let Some(path) = &arguments.json {
        unwritten.take(output::json(&report).and_then(|text| output::write(path, &text)));
    }
    if let Some(path) = &arguments.plot {
        draw(&report, path, &mut unwritten);
    }
    ensure!(!report.figures.is_empty() || !report.failed.is_empty(), "nothing could be measured");
    Ok(unwritten.answer(report.is_good()))
}

/// Checks that the results can be written. Returns whether one of them goes to standard output.
fn reserve(arguments: &Arguments) -> Result<bool> {
    let named = [("--json", &arguments.json), ("--plot", &arguments.plot)];
    let named = named.into_iter().filter_map(|(what, path)| Some((what, path.as_deref()?)));
    let named: Vec<(&str, &Path)> = named.collect();
    let is_quiet = output::standard(named.iter().copied())?;
    let mut files: Vec<(String, PathBuf)> = Vec::new();
    for (what, path) in named.into_iter().filter(|(_, path)| !is_standard(path)) {
        files.push((what.to_owned(), path.to_owned()));
        if what == "--plot" {
            files.push((what.to_owned(), beside(path)));
        }
    }
    apart(&[], &files)?;
    let mut reserved = Reserved::default();
    files.iter().try_for_each(|(_, path)| reserved.file(path))?;
    reserved.keep();
    Ok(is_quiet)
}

/// Returns the path for the plot of the time between frames.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{name}-packets.svg"))
}

/// Draws the plots. A failure leaves an empty file and is reported.
fn draw(report: &Report, path: &Path, unwritten: &mut Unwritten) {
    let mut write = |path: &Path, plot: Option<Plot>| match plot {
        Some(plot) => {
            unwritten.take(plot.svg().and_then(|svg| output::write(path, &svg)));
        }
        None => say::note!("{}: nothing was measured that it shows", output::name(path)),
    };
    write(path, report.speeds());
    if !is_standard(path) {
        write(&beside(path), report.packets());
    }
}

fn run_part(part: &Part) -> Result<()> {
    let text = match part {
        Part::Inside { argv } => return inside::become_command(argv),
        Part::PacketsSend { device, from, mac, to, millis, rate } => {
            let (device, mac) = (device.clone(), read_mac(mac)?);
            let ends = packets::Ends { device, from: *from, mac, to: *to };
            serde_json::to_string(&packets::send(&ends, *rate, Duration::from_millis(*millis))?)?
        }
        Part::PacketsReceive => return packets::receive(std::io::stdout()),
        Part::DataSend { to, bytes } => serde_json::to_string(&data::send(*to, *bytes)?)?,
        Part::DataReceive => serde_json::to_string(&data::receive()?)?,
        Part::DatagramsSend { to, packets } => {
            datagrams::send(*to, *packets)?;
            return Ok(());
        }
        Part::DatagramsReceive { packets } => {
            serde_json::to_string(&datagrams::receive(*packets)?)?
        }
    };
    say::print(&text)
}

/// Parses a MAC address such as `02:00:00:00:00:01`.
fn read_mac(text: &str) -> Result<MacAddr> {
    let bytes: Vec<u8> =
        text.split(':').filter_map(|part| u8::from_str_radix(part, 16).ok()).collect();
    let bytes: Option<[u8; 6]> = bytes.try_into().ok();
    ensure!(bytes.is_some(), "{text}: expected a MAC such as 02:00:00:00:00:01");
    Ok(MacAddr(bytes.unwrap_or_default()))
}
