//! `axon snapshot FILE`: saves a simulation, from which many runs may continue.

use crate::cli::label::Label;
use crate::cli::output::is_standard;
use crate::cli::reserve::apart;
use crate::cli::saved::fix_addresses;
use crate::cli::say::{INTERRUPTED, UNTRIED, note, print};
use crate::cli::world::World;
use crate::sim::{Pcaps, Watcher, check_dataplane, check_memory, size};
use anyhow::{Context, Result, bail, ensure};
use axon_fabric::model::{Fabric, ProgramSource};
use axon_fabric::units;
use axon_sim::run::Options;
use axon_sim::warm::Warm;
use axon_snapshot::Heap;
use axon_wire::Span;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Simulate a fabric until its network is ready, or some time longer, and save the simulation: many
/// runs that differ in later faults continue from there with `axon sim FILE --from SNAPSHOT`
#[derive(clap::Args)]
#[command(
    after_help = "A snapshot is for this build of axon, and as a program: go on only from one that \
    you trust. Exit status: 0 it is saved; 2 it could not be tried, or wrong usage; 130 \
    interrupted"
)]
pub struct Arguments {
    /// Fabric file; `-` is standard input
    pub file: PathBuf,
    /// Snapshot file to write; an existing file is replaced
    #[arg(long, value_name = "SNAPSHOT")]
    pub out: PathBuf,
    /// Time that traffic runs before the snapshot, such as 5ms, in whole milliseconds; by default
    /// it has not begun
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = units::span)]
    pub at: Span,
    /// Settings of the simulation.
    #[command(flatten)]
    pub world: World,
}

/// Saves a snapshot.
///
/// # Errors
/// The file is wrong, the network never becomes ready, all traffic ended before, or the snapshot
/// cannot be written.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    fix_addresses()?;
    let whole = Span::from_millis(1);
    ensure!(
        arguments.at.ticks().is_multiple_of(whole.ticks()),
        "--at {}: expected whole milliseconds, such as 5ms",
        arguments.at
    );
    ensure!(!is_standard(&arguments.out), "--out -: a snapshot is mapped; expected a file");
    let (input, output) = (arguments.file.clone(), arguments.out.clone());
    apart(&[("the fabric file".to_owned(), input)], &[("--out".to_owned(), output)])?;
    let mut draft = Draft::beside(&arguments.out)?;
    Heap::collect().context(
        "no addresses for a snapshot (a limit such as `ulimit -v`, or vm.overcommit_memory=2)",
    )?;
    let (text, path) = crate::cli::file::text(&arguments.file)?;
    let mut fabric = crate::cli::file::parse(&path, &text)?;
    fabric.set_router(arguments.world.router.unwrap_or(fabric.controller.router))?;
    check(arguments, &fabric)?;
    let mut options = Options {
        seed: arguments.world.seed,
        dataplane: arguments.world.dataplane,
        threads: crate::cli::say::threads(arguments.world.threads.into()),
        ..Options::default()
    };
    let mut pcaps = Pcaps::none();
    let mut watcher = Watcher::new(&fabric.name, arguments.world.memory_max, None, &mut pcaps)?;
    let warm = Warm::up(&fabric, &mut options, &mut watcher);
    let warm = warm.ahead(&fabric, arguments.at, &options, &mut watcher);
    let wall = watcher.finish(warm.packet_hops());
    if let Some(reason) = warm.stopped() {
        note!("{} stopped: {reason}; nothing was saved", fabric.name);
        return Ok(if wall.interrupted { INTERRUPTED } else { UNTRIED }.into());
    }
    warm.warnings().iter().for_each(|warning| note!("warning: {warning}"));
    let run = warm.now().since(warm.ready_at());
    ensure!(
        run == arguments.at,
        "all traffic is done {run} after it began; expected --at before that"
    );
    let label = Label::of(&fabric, text, &options, &warm);
    axon_snapshot::save(Box::new(warm), &label.bytes()?, &mut draft.file)
        .with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let bytes = draft.keep(&arguments.out)?;
    print(&format!(
        "{}: ready at {}, {} of traffic, trace hash {:016x}; {} in {:.2} s: {}\n",
        label.fabric,
        label.ready_at(),
        arguments.at,
        label.trace_hash,
        size(bytes),
        wall.seconds,
        arguments.out.display()
    ))?;
    Ok(ExitCode::SUCCESS)
}

fn check(arguments: &Arguments, fabric: &Fabric) -> Result<()> {
    check_dataplane(&arguments.file, arguments.world.dataplane, fabric)?;
    if let Some(most) = arguments.world.memory_max {
        check_memory(fabric, most)?;
    }
    if let Some(ProgramSource::Python(file)) = fabric.program.as_ref().map(|one| &one.source) {
        bail!(
            "{}: the control program {} runs in a process of its own, which no snapshot has",
            arguments.file.display(),
            file.display()
        );
    }
    ensure!(
        arguments.at == Span::ZERO || !fabric.traffic.is_empty(),
        "{}: there is no traffic to run for {}; expected --at 0ms",
        arguments.file.display(),
        arguments.at
    );
    Ok(())
}

/// A file that replaces another when it is complete: processes that read the old one keep it.
struct Draft {
    file: File,
    path: Option<PathBuf>,
}

impl Draft {
    fn beside(out: &Path) -> Result<Draft> {
        let cannot = || format!("cannot write {}", out.display());
        ensure!(!out.is_dir(), "{}: it is a directory; expected a file", out.display());
        let name = out.file_name().with_context(cannot)?;
        let mut draft = name.to_owned();
        draft.push(format!(".{}", std::process::id()));
        let path = out.with_file_name(draft);
        let cannot = || format!("cannot write {}, which becomes {}", path.display(), out.display());
        let file = File::create_new(&path).with_context(cannot)?;
        Ok(Draft { file, path: Some(path) })
    }

    /// Replaces the old file; returns the number of bytes on disk.
    fn keep(&mut self, out: &Path) -> io::Result<u64> {
        use std::os::unix::fs::MetadataExt;
        let bytes = self.file.metadata()?.blocks() * 512;
        if let Some(path) = &self.path {
            fs::rename(path, out)?;
        }
        self.path = None;
        Ok(bytes)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            fs::remove_file(path).ok();
        }
    }
}
