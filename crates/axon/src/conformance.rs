//! `axon conformance FAMILY...`: requirements of the Data Center Bridging standards, case by case.

use crate::cli::output;
use crate::cli::say::{self, Unwritten};
use anyhow::{Context, Result, anyhow, bail, ensure};
use axon_conformance::case::Case;
use axon_conformance::cases;
use axon_conformance::interpretations::{Ambiguity, Interpretations};
use axon_conformance::linux::{self, Linux};
use axon_conformance::report::{self, Report, text};
use axon_conformance::rig::Rig;
use axon_conformance::setup::{DEFENCES, Dcbx, Form, Setup};
use axon_conformance::simulated::Simulated;
use axon_conformance::simulated::plant::Plant;
use axon_linux::sys;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{MacAddr, Rate, Span};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Test a device, or Axon's own switch, for conformance to Data Center Bridging
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 some cases passed, and none failed or stayed undecided; 1 \
    otherwise; 2 it could not be tried, or wrong usage")]
pub struct Arguments {
    /// Families of cases; all by default
    #[arg(value_name = "FAMILY", value_parser = cases::FAMILIES)]
    families: Vec<String>,
    /// Run only cases whose name contains this word; may be given more than once
    #[arg(long, value_name = "WORD")]
    case: Vec<String>,
    /// List the cases and their requirements, and run none
    #[arg(long)]
    list: bool,
    /// Device under test: axon is Axon's own switch, in simulated time
    #[arg(long, value_parser = ["axon"], default_value = "axon", conflicts_with = "iface")]
    dut: String,
    #[command(flatten)]
    device: Device,
    /// Write the report as JSON to standard output, and no text
    #[arg(long)]
    json: bool,
    /// Write the report as JUnit XML
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// Print the notes of cases that pass as well
    #[arg(long)]
    verbose: bool,
    /// Interpret an ambiguity of the standards this way, such as tie=higher; may be given more than
    /// once. See docs/ambiguities.md
    #[arg(long, value_name = "NAME=VALUE", alias = "reading",
        value_parser = interpretation)]
    interpretation: Vec<String>,
    /// Seed of all random choices of Axon's own switch
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Insert a fault into Axon's own switch
    #[arg(long, value_name = "FAULT", hide = true, value_parser = plant, conflicts_with = "iface")]
    plant: Option<Plant>,
}

/// A device at the other end of an interface, and its configuration.
#[derive(clap::Args)]
struct Device {
    /// Test the device at the other end of this interface, in real time
    #[arg(long, value_name = "IF")]
    iface: Option<String>,
    /// An interface at another port of the device, for cases that need traffic through it; may be
    /// given more than once
    #[arg(long, value_name = "IF", requires = "iface")]
    through: Vec<String>,
    /// Rate of the links in Mb/s, 1 to 800000; that of the interface by default
    #[arg(long, value_name = "MBPS", requires = "iface",
        value_parser = clap::value_parser!(u64).range(1..=800_000))]
    rate: Option<u64>,
    /// Tolerance for this machine's own delays, 0 to 10000000 microseconds; 20000 by default
    #[arg(long, value_name = "US", requires = "iface",
        value_parser = clap::value_parser!(u64).range(..=10_000_000))]
    slack: Option<u64>,
    /// MAC address of the device's port; without it, cases that need it are not applicable
    #[arg(long, value_name = "MAC", requires = "iface", value_parser = mac)]
    device_mac: Option<MacAddr>,
    /// Priorities for which the device has PFC, 0 to 7, such as 3,4; none by default
    #[arg(long, value_name = "PRIORITIES", requires = "iface", value_parser = priorities)]
    pfc: Option<PrioritySet>,
    /// The device pauses its senders by PAUSE, all priorities at once
    #[arg(long, requires = "iface", conflicts_with = "pfc")]
    pause: bool,
    /// Traffic class of each of its eight priorities, such as 0,0,0,1,2,0,0,0; by default each
    /// priority has the class of its own number
    #[arg(long, value_name = "CLASSES", requires = "iface", value_parser = classes)]
    classes: Option<[TrafficClass; PRIORITIES]>,
    /// CLASS:PERCENT of each class with ETS, such as 0:50,1:50, 100 in all; other classes are
    /// strict
    #[arg(long, value_name = "SHARES", requires = "iface", value_parser = shares)]
    shares: Option<[Option<u8>; PRIORITIES]>,
    /// Priorities for which the device has congestion notification, 0 to 7; none by default
    #[arg(long, value_name = "PRIORITIES", requires = "iface", value_parser = priorities)]
    cn: Option<PrioritySet>,
    /// Mode of the device's congestion notification defence at its port to IF; interior-ready by
    /// default
    #[arg(long, value_name = "MODE", requires = "cn",
        value_parser = DEFENCES.map(|(name, _)| name))]
    defence: Option<String>,
    /// Priority, 0 to 7, that the device gives frames that enter the domain at an edge port; by
    /// default the next lower one outside the domain, else the next higher
    #[arg(long, value_name = "PRIORITY", requires = "defence", value_parser = priority)]
    alternate: Option<Priority>,
    /// Version of DCBX that the device uses; none by default
    #[arg(long, requires = "iface", value_parser = ["ieee", "cee"])]
    dcbx: Option<String>,
    /// The device is willing: it adopts its peer's ETS and PFC
    #[arg(long, requires = "dcbx")]
    willing: bool,
    /// The device is an end station, not a switch, and sends at full rate
    #[arg(long, requires = "iface")]
    station: bool,
}

/// Runs the cases; the exit status is 0 if some passed, and none failed or was undecided.
///
/// # Errors
/// An interface that cannot be opened, or a report that cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let all: Vec<String> = cases::FAMILIES.map(String::from).to_vec();
    let families = if arguments.families.is_empty() { &all } else { &arguments.families };
    let chosen = cases::select(families, &arguments.case);
    if chosen.is_empty() {
        bail!("no case has {} in its name; see --list", arguments.case.join(" or "));
    }
    if arguments.list {
        let width = text::NAME_WIDTH;
        let line = |case: &&Case| format!("{:<width$}{} ({})\n", case.name, case.says, case.clause);
        say::print(&chosen.iter().map(line).collect::<String>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let device = arguments.device.iface.clone().unwrap_or_else(|| arguments.dut.clone());
    let mut rig = arguments.rig()?;
    // Reports are created first, so that an unwritable one is an error before the cases run.
    let create = |path: &PathBuf| {
        output::create(path).with_context(|| format!("cannot write {}", output::name(path)))
    };
    let is_quiet = arguments.junit.as_deref().is_some_and(output::is_standard);
    ensure!(
        !(is_quiet && arguments.json),
        "--json and --junit: standard output takes one of them; expected a file for --junit"
    );
    let junit = arguments.junit.as_ref().map(create).transpose()?;
    let mut unwritten = Unwritten::default();
    let mut report = Report { device, cases: Vec::new() };
    for case in chosen {
        let outcome = case.run(&mut *rig);
        if !arguments.json && !is_quiet {
            unwritten.take(say::print(&text::case(&outcome, arguments.verbose)));
        }
        report.cases.push(outcome);
    }
    if arguments.json {
        unwritten.take(say::print(&output::json(&report)?));
    } else if !is_quiet {
        unwritten.take(say::print(&format!("{}\n", text::summary(&report))));
    }
    if let (Some(mut file), Some(path)) = (junit, &arguments.junit) {
        let written = file.write_all(report::junit::document(&report).as_bytes());
        unwritten.take(written.with_context(|| format!("cannot write {}", output::name(path))));
    }
    Ok(unwritten.answer(report.is_good()))
}

impl Arguments {
    fn rig(&self) -> Result<Box<dyn Rig>> {
        let mut interpretations = Interpretations::default();
        for text in &self.interpretation {
            interpretations.say(text).map_err(anyhow::Error::msg)?;
        }
        let Some(interface) = &self.device.iface else {
            let both = [interpretations.clone(), interpretations];
            return Ok(Box::new(Simulated::with_interpretations(self.plant, both, self.seed)));
        };
        let options = self.device.options(interface, interpretations)?;
        Ok(Box::new(Linux::open(options).map_err(|(name, error)| refused(&name, error))?))
    }
}

impl Device {
    fn options(&self, interface: &str, interpretations: Interpretations) -> Result<linux::Options> {
        let interfaces = [interface.to_owned()].into_iter().chain(self.through.iter().cloned());
        let interfaces: Vec<String> = interfaces.collect();
        let twice = |(at, name): (usize, &String)| interfaces[..at].contains(name);
        if interfaces.iter().enumerate().any(twice) {
            bail!("each interface once: --iface and --through");
        }
        if let Some(name) = interfaces.iter().find(|name| !is_there(name)) {
            return Err(unknown(name));
        }
        let said = match self.rate {
            Some(megabits) => Rate::from_bits_per_second(megabits.saturating_mul(1_000_000)),
            None => linux::rate_of(interface),
        };
        let no_rate = || anyhow!("{interface} has no rate; expected --rate");
        let form = self.dcbx.as_deref().map(|form| match form {
            "cee" => Form::Cee,
            _ => Form::Ieee,
        });
        let dcbx = form.map(|form| Dcbx {
            form,
            ets_willing: self.willing,
            pfc_willing: self.willing,
            higher_keeps: interpretations.is_other(Ambiguity::Tie),
        });
        let defence = DEFENCES.iter().find(|(name, _)| Some(*name) == self.defence.as_deref());
        let own = Setup::default();
        Ok(linux::Options {
            interfaces,
            rate: said.ok_or_else(no_rate)?,
            slack: self.slack.map_or(linux::SLACK, Span::from_micros),
            given: Setup {
                pfc: self.pfc.unwrap_or_default(),
                pause: self.pause,
                prio_tc: self.classes.unwrap_or(own.prio_tc),
                shares: self.shares.unwrap_or(own.shares),
                congestion: self.cn.unwrap_or_default(),
                defence: defence.map_or(own.defence, |&(_, mode)| mode),
                alternate: self.alternate,
                dcbx,
                station: self.station,
            },
            device_mac: self.device_mac,
            interpretations,
        })
    }
}

/// Returns whether this network namespace has such an interface.
fn is_there(name: &str) -> bool {
    sys::device_flags(name).is_ok()
}

fn unknown(name: &str) -> anyhow::Error {
    anyhow!("there is no interface {name}")
}

/// Returns the error for an interface that cannot be opened, with a remedy.
fn refused(name: &str, error: io::Error) -> anyhow::Error {
    if !is_there(name) {
        return unknown(name);
    }
    let help = match error.kind() {
        io::ErrorKind::PermissionDenied => "packet sockets need CAP_NET_RAW; run this as root",
        io::ErrorKind::NetworkDown => "it is down; see ip link set up",
        _ => return anyhow!(error).context(format!("cannot open {name}")),
    };
    anyhow!("cannot open {name}: {help}")
}

fn plant(name: &str) -> Result<Plant, String> {
    let names: Vec<&str> = Plant::ALL.iter().map(|plant| plant.name()).collect();
    Plant::named(name).ok_or_else(|| format!("there are: {}", names.join(", ")))
}

fn mac(text: &str) -> Result<MacAddr, String> {
    let wrong = || "expected six octets such as 02:73:00:00:00:01".to_owned();
    let octets: Result<Vec<u8>, _> =
        text.split(':').map(|octet| u8::from_str_radix(octet, 16)).collect();
    let octets: Option<[u8; 6]> = octets.ok().and_then(|octets| octets.try_into().ok());
    octets.map(MacAddr).ok_or_else(wrong)
}

fn number(text: &str, most: u8) -> Result<u8, String> {
    let number = text.trim().parse().ok().filter(|&number: &u8| number <= most);
    number.ok_or_else(|| format!("{text}: expected a number from 0 to {most}"))
}

fn priority(text: &str) -> Result<Priority, String> {
    Ok(Priority::from_low_bits(number(text, 7)?))
}

fn interpretation(text: &str) -> Result<String, String> {
    Interpretations::default().say(text)?;
    Ok(text.into())
}

fn priorities(text: &str) -> Result<PrioritySet, String> {
    let mut set = PrioritySet::EMPTY;
    for one in text.split(',') {
        set.insert(priority(one)?);
    }
    Ok(set)
}

fn classes(text: &str) -> Result<[TrafficClass; PRIORITIES], String> {
    let classes: Result<Vec<TrafficClass>, String> =
        text.split(',').map(|one| Ok(TrafficClass::ALL[usize::from(number(one, 7)?)])).collect();
    let wrong = |_| format!("expected {PRIORITIES} classes, one for each priority");
    classes?.try_into().map_err(wrong)
}

fn shares(text: &str) -> Result<[Option<u8>; PRIORITIES], String> {
    let mut shares = [None; PRIORITIES];
    for one in text.split(',') {
        let (class, percent) =
            one.split_once(':').ok_or_else(|| format!("{one}: expected CLASS:PERCENT"))?;
        shares[usize::from(number(class, 7)?)] = Some(number(percent, 100)?);
    }
    let sum: u32 = shares.iter().flatten().map(|&percent| u32::from(percent)).sum();
    if sum != 100 {
        return Err(format!("the shares add up to {sum}, not to 100"));
    }
    Ok(shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_device_is_configured_for_can_be_said() {
        assert_eq!(priorities("3,4").unwrap().bits(), 0b0001_1000);
        assert!(priorities("8").is_err() && priorities("").is_err());
        assert_eq!(classes("0,0,0,1,2,0,0,7").unwrap()[7], TrafficClass::MAX);
        assert!(classes("0,1").is_err());
        assert_eq!(shares("0:30,2:70").unwrap()[..3], [Some(30), None, Some(70)]);
        assert!(shares("0:30").unwrap_err().contains("30"));
        assert_eq!(mac("02:73:00:00:00:0a").unwrap(), MacAddr([2, 0x73, 0, 0, 0, 10]));
        assert!(mac("02:73").is_err());
    }
}
