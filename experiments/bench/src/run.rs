//! Run of several rounds. In each round, every subject is built, measured and removed.

use crate::measure;
use crate::quantity::{Figures, Quantity};
use crate::report::{Failed, Found, Skipped};
use crate::selection::{Part, Settings, Subject};
use crate::statistics::slope;
use crate::subject::World;
use crate::subject::fabric::lacking;
use crate::subject::shape::Shape;
use anyhow::{Result, ensure};
use axon_demo::machine::has_program;
use axon_demo::process::Stop;
use axon_demo::progress::Progress;
use axon_lab::Interrupted;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Required programs, with the Debian packages that contain them.
const PROGRAMS: [(&str, &str); 3] =
    [("ip", "iproute2"), ("ss", "iproute2"), ("ping", "iputils-ping")];
/// Rates of the shared egress in Mb/s, with the figures that are measured there.
const SHARED: [(u32, [Quantity; 2]); 2] = [
    (200, [Quantity::SharesTwoHundredMbps, Quantity::TotalTwoHundredMbps]),
    (1000, [Quantity::SharesOneGbps, Quantity::TotalOneGbps]),
];

/// Temporary folder of a run, which is removed on drop.
struct Folder(PathBuf);

impl Folder {
    fn make() -> Result<Folder> {
        let path = std::env::temp_dir().join(format!("axon-bench-{}", std::process::id()));
        fs::create_dir_all(&path)?;
        Ok(Folder(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Any leftovers are a few kilobytes in a temporary folder.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs the selected measurements. Everything that was started is stopped again, also on an error
/// and on Ctrl-C. Progress goes to standard error.
///
/// # Errors
/// The user has no right to create network namespaces, a required program is missing, or the user
/// stops the run. Missing features and failures of single subjects are not errors but part of the
/// result.
pub fn run(settings: &Settings, stop: &Stop) -> Result<Found> {
    ensure!(
        nix::unistd::geteuid().is_root(),
        "`axon bench` makes network namespaces: run it as root"
    );
    for (program, package) in PROGRAMS {
        ensure!(has_program(program), "{program} is missing: install the package {package}");
    }
    let mut run = Run { found: Found::default(), active: Vec::new(), parts: Vec::new() };
    run.parts = settings.parts.iter().copied().filter(|&part| run.can_measure(part)).collect();
    run.active = settings.subjects.iter().copied().filter(|&one| run.can_build(one)).collect();
    let folder = Folder::make()?;
    let mut progress = Progress::new(u64::from(settings.rounds) * run.steps(settings) as u64);
    for round in 0..settings.rounds {
        run.round(settings, round, (&folder.0, stop), &mut progress)?;
    }
    drop(progress);
    Ok(run.found)
}

struct Run {
    found: Found,
    /// Subjects that this machine supports.
    active: Vec<Subject>,
    /// Measurements that this machine supports.
    parts: Vec<Part>,
}

impl Run {
    /// Returns the number of subjects that a round builds if no feature is missing.
    fn steps(&self, settings: &Settings) -> usize {
        let lines = if settings.has_line() { settings.switches.len() } else { 0 };
        let shared = if self.parts.contains(&Part::Shares) { self.with_rates().count() } else { 0 };
        lines * self.active.len() + shared
    }

    /// Returns the subjects whose links enforce a rate.
    fn with_rates(&self) -> impl Iterator<Item = Subject> {
        let rated = [Subject::Bridges, Subject::Full, Subject::Tc];
        self.active.iter().copied().filter(move |subject| rated.contains(subject))
    }

    fn can_measure(&mut self, part: Part) -> bool {
        let can = !matches!(part, Part::Tcp | Part::Shares) || has_program("iperf3");
        if !can {
            let reason = "iperf3 is missing: install the package iperf3".into();
            self.found.skipped.push(Skipped { what: part.name().into(), reason });
        }
        can
    }

    fn can_build(&mut self, subject: Subject) -> bool {
        let can = subject != Subject::Ovs || has_program("ovs-vswitchd");
        if !can {
            let reason = "ovs-vswitchd is missing: install the package openvswitch-switch";
            self.skip(subject, reason.into());
        }
        can
    }

    fn skip(&mut self, subject: Subject, reason: String) {
        self.active.retain(|&one| one != subject);
        self.found.skipped.push(Skipped { what: subject.name().into(), reason });
    }

    fn fail(&mut self, subject: Subject, (switches, part): (u32, Option<Part>), why: String) {
        self.found.failed.push(Failed { subject, switches, part, why });
    }

    fn round(
        &mut self,
        settings: &Settings,
        round: u32,
        (folder, stop): (&Path, &Stop),
        progress: &mut Progress,
    ) -> Result<()> {
        let mut peaks: BTreeMap<Subject, Peaks> = BTreeMap::new();
        let order = |active: &[Subject]| {
            let mut order = active.to_vec();
            let first = round as usize % order.len().max(1);
            order.rotate_left(first);
            order
        };
        for &switches in settings.switches.iter().filter(|_| settings.has_line()) {
            for subject in order(&self.active) {
                let name = subject.name();
                progress.step(&format!("round {}: {name}, {switches} switches", round + 1));
                let folder = folder.join(format!("{name}-{switches}-{round}"));
                let shape = Shape::line(switches);
                let figures = self.line(settings, (subject, switches), &shape, &folder, stop)?;
                peaks.entry(subject).or_default().add(switches, &figures);
                self.found.samples.add(subject, switches, &figures);
            }
        }
        for (subject, peaks) in peaks {
            self.found.samples.add(subject, 0, &peaks.per_hop());
        }
        let shared = self.parts.contains(&Part::Shares);
        let rated: Vec<Subject> = self.with_rates().collect();
        for subject in order(&rated).into_iter().filter(|_| shared) {
            progress.step(&format!("round {}: {}, shares", round + 1, subject.name()));
            for (rate, [ratio, total]) in SHARED {
                let folder = folder.join(format!("{}-shares-{rate}-{round}", subject.name()));
                let shape = Shape::shares(rate);
                let Some(world) = self.up((subject, 2), &shape, &folder, stop)? else { break };
                let shares = measure::shares(&world, settings.seconds);
                let shares = shares.map(|got| vec![(ratio, got.ratio), (total, got.total_mbps)]);
                let figures = self.kept((subject, 2, Part::Shares), shares, stop)?;
                self.found.samples.add(subject, 0, &figures);
            }
        }
        Ok(())
    }

    /// Builds a subject. Returns `None` if that fails, and the subject is then not tried again.
    fn up<'a>(
        &mut self,
        (subject, switches): (Subject, u32),
        shape: &Shape,
        folder: &Path,
        stop: &'a Stop,
    ) -> Result<Option<World<'a>>> {
        stop.check()?;
        self.found.calibration.run();
        let error = match World::up(subject, shape, folder, stop) {
            Ok(world) => return Ok(Some(world)),
            Err(error) => error,
        };
        stop.check()?;
        // A lab that is starting takes the signals itself.
        if error.is::<Interrupted>() {
            return Err(error);
        }
        match lacking(&error) {
            Some(reason) => self.skip(subject, reason),
            None => {
                self.fail(subject, (switches, None), format!("{error:#}"));
                self.active.retain(|&one| one != subject);
            }
        }
        Ok(None)
    }

    /// Returns all figures for a subject through one line.
    fn line(
        &mut self,
        settings: &Settings,
        of: (Subject, u32),
        shape: &Shape,
        folder: &Path,
        stop: &Stop,
    ) -> Result<Figures> {
        let mut figures = Figures::new();
        let Some(world) = self.up(of, shape, folder, stop)? else { return Ok(figures) };
        for part in self.parts.clone() {
            let found = measure::through(&world, part, settings.seconds);
            figures.extend(self.kept((of.0, of.1, part), found, stop)?);
        }
        Ok(figures)
    }

    /// Returns the figures from a measurement. There are none if it failed, which is recorded.
    fn kept(
        &mut self,
        (subject, switches, part): (Subject, u32, Part),
        found: Result<Figures>,
        stop: &Stop,
    ) -> Result<Figures> {
        stop.check()?;
        Ok(found.unwrap_or_else(|error| {
            self.fail(subject, (switches, Some(part)), format!("{error:#}"));
            Figures::new()
        }))
    }
}

/// Peaks of one subject in one round, by number of switches: the time between two frames, and the
/// CPU time for each frame, in ns.
#[derive(Default)]
struct Peaks {
    between: Vec<(f64, f64)>,
    cpu: Vec<(f64, f64)>,
}

impl Peaks {
    fn add(&mut self, switches: u32, figures: &Figures) {
        let at = f64::from(switches);
        for &(quantity, figure) in figures {
            match quantity {
                Quantity::PacketsPeak if figure > 0.0 => self.between.push((at, 1e6 / figure)),
                Quantity::CpuPerPacket => self.cpu.push((at, figure)),
                _ => {}
            }
        }
    }

    /// Returns the cost of one additional switch.
    fn per_hop(&self) -> Figures {
        let slopes = [
            (Quantity::PacketsPerHop, slope(&self.between)),
            (Quantity::CpuPerHop, slope(&self.cpu)),
        ];
        slopes.into_iter().filter_map(|(quantity, slope)| Some((quantity, slope?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_hop_costs_is_the_slope_over_the_switches_of_one_round() {
        let mut peaks = Peaks::default();
        for (switches, kframes, cpu) in
            [(1, 1000.0, 900.0), (3, 500.0, 1900.0), (5, 1e6 / 3e3, 2900.0)]
        {
            let figures = vec![(Quantity::PacketsPeak, kframes), (Quantity::CpuPerPacket, cpu)];
            peaks.add(switches, &figures);
        }
        let [(_, between), (_, cpu)] = peaks.per_hop()[..] else { panic!("two slopes") };
        assert!((between - 500.0).abs() < 1e-6 && (cpu - 500.0).abs() < 1e-6, "{between} {cpu}");
        let mut one = Peaks::default();
        one.add(3, &vec![(Quantity::PacketsPeak, 10.0), (Quantity::PacketsPeak, 0.0)]);
        assert!(one.per_hop().is_empty(), "one number of switches has no slope");
    }
}
