//! Runs that go on from one warmed-up simulation, each in a copy of this process (`fork(2)`):
//! `axon sim --fork` and `axon sweep --warm-up`.

use super::arguments::Arguments;
use super::finish::{finish, json};
use super::needs::check_dataplane;
use super::pcap::Pcaps;
use super::watch::Watcher;
use super::{memory, show};
use crate::cli::say::{INTERRUPTED, UNTRIED, Unwritten, note, print};
use crate::cli::stop;
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::Document;
use axon_fabric::model::{Fabric, ProgramSource};
use axon_linux::fork::{Ended, Forked, first_ended};
use axon_sim::DataplaneKind;
use axon_sim::run::{Options, Unlike};
use axon_sim::warm::Warm;
use axon_wire::{Bytes, Span};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval between checks for an interruption.
const LOOK: Duration = Duration::from_millis(100);
/// Time for a copy to end in order after an interruption.
const GRACE: Duration = Duration::from_secs(2);

/// Simulation whose network is ready and whose traffic has run for some time.
pub struct Base {
    /// Present until a copy of this process goes on with it.
    warm: Option<Warm>,
    /// Name of the fabric file in errors, and its text.
    file: (PathBuf, String),
    seed: u64,
    dataplane: DataplaneKind,
}

/// Options of a run that continues a warmed-up simulation.
pub struct Continuation<'a> {
    /// Fabric of the run: that of the base, whose faults to come may differ.
    pub fabric: &'a Fabric,
    /// Time to run after the network is ready, as for `axon sim --duration`.
    pub duration: Option<Span>,
    /// Number of threads.
    pub threads: usize,
    /// Memory that the process may use.
    pub memory_max: Option<Bytes>,
    /// True if the report is written as JSON, otherwise as text.
    pub is_json: bool,
}

impl Base {
    /// Simulates `fabric`, whose file has this name and text, until its network is ready and
    /// traffic has run for `warm_up`. Returns the exit status if the run was stopped.
    ///
    /// # Errors
    /// `warm_up` is no number of whole milliseconds, or all traffic ends earlier; or a control
    /// program of the fabric runs in a process of its own.
    pub fn up(
        file: (PathBuf, String),
        fabric: &Fabric,
        (seed, dataplane): (u64, DataplaneKind),
        (warm_up, memory_max): (Span, Option<Bytes>),
    ) -> Result<Result<Base, u8>> {
        let whole = Span::from_millis(1);
        ensure!(
            warm_up.ticks().is_multiple_of(whole.ticks()),
            "--warm-up {warm_up}: expected whole milliseconds, such as 5ms"
        );
        if let Some(ProgramSource::Python(program)) = fabric.program.as_ref().map(|one| &one.source)
        {
            bail!(
                "{}: the control program {} runs in a process of its own, which is not copied",
                file.0.display(),
                program.display()
            );
        }
        ensure!(
            warm_up == Span::ZERO || !fabric.traffic.is_empty(),
            "{}: there is no traffic to run for {warm_up}; expected --warm-up 0ms",
            file.0.display()
        );
        let mut options = Options { seed: Some(seed), dataplane, ..Options::default() };
        let mut pcaps = Pcaps::none();
        let mut watcher = Watcher::new(&fabric.name, memory_max, None, &mut pcaps)?;
        let warm = Warm::up(fabric, &mut options, &mut watcher);
        let warm = warm.ahead(fabric, warm_up, &options, &mut watcher);
        let wall = watcher.finish(warm.packet_hops());
        if let Some(reason) = warm.stopped() {
            note!("{} stopped before any run went on: {reason}", fabric.name);
            return Ok(Err(if wall.interrupted { INTERRUPTED } else { UNTRIED }));
        }
        let ran = warm.now().since(warm.ready_at());
        ensure!(
            ran == warm_up,
            "all traffic is done {ran} after it began; expected --warm-up before that"
        );
        Ok(Ok(Base { warm: Some(warm), file, seed, dataplane }))
    }

    /// Checks whether a run may go on with `fabric`, whose file has this name and text.
    ///
    /// # Errors
    /// The fabric differs in more than faults to come, or `duration` is over already.
    pub(crate) fn accepts(
        &self,
        fabric: &Fabric,
        (name, text): (&Path, &str),
        duration: Option<Span>,
    ) -> Result<()> {
        let Some(warm) = &self.warm else { return Ok(()) };
        warm.accepts(fabric).or_else(|unlike| self.refuse(name, text, unlike))?;
        let ran = warm.now().since(warm.ready_at());
        let duration = duration.unwrap_or(ran);
        ensure!(duration >= ran, "--duration {duration}: the warm-up has taken {ran} of it");
        Ok(())
    }

    fn refuse(&self, name: &Path, text: &str, unlike: Unlike) -> Result<()> {
        let (base, name) = (self.file.0.display(), name.display());
        match unlike {
            Unlike::Fabric => {
                let documents = Document::of(text).ok().zip(Document::of(&self.file.1).ok());
                let key = documents.and_then(|(ours, base)| base.difference(&ours, &["faults"]));
                let differs = match key {
                    Some(key) if !key.is_empty() => format!("`{key}` differs"),
                    _ => "a file that it names differs".to_owned(),
                };
                bail!(
                    "{name}: it is not the fabric of {base}, which is warmed up: {differs}; only \
                     `faults` that are still to come may"
                )
            }
            Unlike::Past(at) => {
                bail!(
                    "{name}: faults before the end of the warm-up differ from those of {base}: \
                     first at {at}"
                )
            }
            Unlike::Rates => bail!(
                "{name}: with its faults links have other rates at their slowest or fastest than \
                 with those of {base}, by which switches and hosts are set up; expected the same"
            ),
        }
    }

    /// Starts a copy of this process that goes on; it writes its report to standard output.
    ///
    /// # Errors
    /// The system refuses another process.
    pub(crate) fn fork(&mut self, on: &Continuation) -> Result<Forked> {
        Forked::start(|| {
            self.go_on(on).unwrap_or_else(|error| {
                note!("{error:#}");
                UNTRIED
            })
        })
        .context("cannot start a run")
    }

    fn go_on(&mut self, on: &Continuation) -> Result<u8> {
        let mut warm = self.warm.take().context("this process has gone on already")?;
        let mut options = Options {
            seed: Some(self.seed),
            duration: on.duration,
            threads: on.threads,
            dataplane: self.dataplane,
            ..Options::default()
        };
        let refuse =
            |_| anyhow::anyhow!("the fabric is another one than the one that was warmed up");
        warm.continue_as(on.fabric, &mut options).map_err(refuse)?;
        let mut pcaps = Pcaps::none();
        let mut watcher = Watcher::new(&on.fabric.name, on.memory_max, None, &mut pcaps)?;
        let before = warm.packet_hops();
        let (report, world) = warm.go_to_the_end(on.fabric, &options, &mut watcher);
        std::mem::forget(world);
        let wall = watcher.finish(report.packet_hops - before);
        let mut unwritten = Unwritten::default();
        let text = if on.is_json { json(&report, &wall) } else { Ok(show::text(&report, &wall)) };
        unwritten.take(text.and_then(|text| print(&text)));
        Ok(finish(&report, &wall, &unwritten))
    }
}

/// Runs `axon sim FILE --fork OTHER...`: one report for each of the other files, in their order.
/// The exit status is the highest of all runs.
///
/// # Errors
/// A file is wrong; or it differs from the first in more than faults to come, which is checked
/// after the warm-up and before any run.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    let world = &arguments.world;
    let read = |file: &Path| -> Result<(PathBuf, String, Fabric)> {
        let (text, path) = crate::cli::file::text(file)?;
        let mut fabric = crate::cli::file::parse(&path, &text)?;
        fabric.set_router(world.router.unwrap_or(fabric.controller.router))?;
        check_dataplane(&path, world.dataplane, &fabric)?;
        world.memory_max.map_or(Ok(()), |most| memory::check(&fabric, most))?;
        Ok((path, text, fabric))
    };
    let (path, text, fabric) = read(&arguments.file)?;
    let others = arguments.fork.iter().map(|file| read(file)).collect::<Result<Vec<_>>>()?;
    let seed = world.seed.unwrap_or(fabric.seed);
    let warm_up = arguments.warm_up.unwrap_or_default();
    let of = (seed, world.dataplane);
    let stop = stop::on_signals()?;
    let mut base = match Base::up((path, text), &fabric, of, (warm_up, world.memory_max))? {
        Ok(base) => base,
        Err(status) => return Ok(status.into()),
    };
    for (path, text, fabric) in &others {
        base.accepts(fabric, (path, text), arguments.duration)?;
    }
    let mut worst = 0;
    for (path, _, fabric) in &others {
        let on = Continuation {
            fabric,
            duration: arguments.duration,
            threads: crate::cli::say::threads(world.threads.into()),
            memory_max: world.memory_max,
            is_json: false,
        };
        let Some(ended) = until_end(base.fork(&on)?, &stop)? else {
            note!("interrupted");
            return Ok(INTERRUPTED.into());
        };
        std::io::stderr().write_all(&ended.errors).ok();
        let report = String::from_utf8_lossy(&ended.output);
        print(&format!("{}\n{report}", path.display()))?;
        let status = match ended.status.code() {
            Some(code) => u8::try_from(code).unwrap_or(UNTRIED),
            None => {
                note!("{}: the run ended by {}", path.display(), ended.status);
                UNTRIED
            }
        };
        worst = worst.max(status);
        if stop.load(Ordering::Relaxed) {
            return Ok(INTERRUPTED.into());
        }
    }
    Ok(worst.into())
}

/// Waits for the end of a copy. An interruption of this process alone does not reach the copy:
/// it is killed if it has not ended soon after.
fn until_end(copy: Forked, stop: &AtomicBool) -> Result<Option<Ended>> {
    let copies = [copy];
    while first_ended(&copies, LOOK).context("cannot wait for a run")?.is_none() {
        let interrupted = stop.load(Ordering::Relaxed);
        if interrupted && first_ended(&copies, GRACE).context("cannot wait for a run")?.is_none() {
            return Ok(None);
        }
    }
    let [copy] = copies;
    copy.wait().map(Some).context("a run is lost")
}
