//! Runs each test in a process of its own, several at a time, with the options of libtest.
//!
//! libtest cannot run these tests: the lab starts its parts from the program that calls it, only a
//! process of one thread may change its user namespace, and a test that is killed has to leave
//! nothing behind. For each test the runner starts this program again as a [`guard`], which starts
//! it once more as the test:
//!
//! ```text
//! runner        selects tests, and shows the output of those that fail
//!   guard       leads a session, ends all processes of the test, removes its folder
//!     test      runs one function, in namespaces of its own where it needs them
//! ```
//!
//! Each test has a folder for its temporary files ([`std::env::temp_dir`]) and the state of its
//! labs, so labs of the same name may be up side by side. `AXON_TEST_TIMES=1` lists the time of
//! each test, the longest first.

mod guard;

use crate::needs;
use axon_linux::lab::STATE_VARIABLE;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use nix::sched::CloneFlags;
use nix::sys::prctl;
use nix::sys::signal::Signal;
use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// First argument of a process that a test starts from this program; the module comes next.
pub const PART: &str = "test-part";
/// First argument of a guard and of a test; the name of the test comes next.
const GUARD: &str = "test-guard";
const TEST: &str = "test-run";
/// First argument of a process that cleans up after a guard that was killed; its number comes next.
const CLEAN: &str = "test-clean";
/// Tests that run at a time, unless `--test-threads` sets another number.
const THREADS_PER_CPU: usize = 2;
const TIMES_VARIABLE: &str = "AXON_TEST_TIMES";

/// A test and its name in its module.
pub type Test = (&'static str, fn());

/// Runs a process that a test has started, with the words after [`PART`] and the module.
pub type Part = fn(&[&str]) -> ExitCode;

/// Surroundings of the tests of a module.
#[derive(Clone, Copy)]
pub enum Place {
    /// The machine's own namespaces; the test starts labs.
    Lab,
    /// A new network namespace, and new ones of these kinds.
    Alone(CloneFlags),
    /// The machine's own namespaces; no lab.
    Plain,
}

/// The tests of one file.
pub struct Module {
    pub name: &'static str,
    pub place: Place,
    pub tests: &'static [Test],
    pub part: Option<Part>,
}

/// A test, by its whole name, that is treated in another way than most, and the reason.
pub type Exception = (&'static str, &'static str);

/// All tests of this program.
pub struct Tests {
    pub modules: &'static [Module],
    /// Tests that run while no other test does.
    pub exclusive: &'static [Exception],
    /// Tests that run with `--ignored` only.
    pub ignored: &'static [Exception],
}

impl Tests {
    /// Runs the task that this process was started for.
    pub fn main(&'static self) -> ExitCode {
        let words: Vec<String> = std::env::args().skip(1).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match words[..] {
            [PART, module, ref words @ ..] => {
                let module = self.modules.iter().find(|one| one.name == module);
                let part = module.and_then(|module| module.part).expect("a module with parts");
                part(words)
            }
            [GUARD, name] => guard::guard(name),
            [CLEAN, guard] => guard::clean_after(guard.parse().expect("a number")),
            [TEST, name] => self.test(name),
            _ => self.run(),
        }
    }

    fn all(&self) -> impl Iterator<Item = (String, &'static Module, fn())> {
        let of = |module: &'static Module| {
            let name = move |test: &str| format!("{}::{test}", module.name);
            module.tests.iter().map(move |(test, run)| (name(test), module, *run))
        };
        self.modules.iter().flat_map(of)
    }

    /// Runs the test of this name.
    fn test(&self, name: &str) -> ExitCode {
        end_with_guard();
        let (_, module, run) = self.all().find(|(one, ..)| one == name).expect("a test");
        match module.place {
            Place::Lab if !needs::lab() => return ExitCode::SUCCESS,
            Place::Lab | Place::Plain => {}
            Place::Alone(kinds) => {
                if let Err(missing) = crate::alone::enter(kinds) {
                    needs::skip(&missing);
                    return ExitCode::SUCCESS;
                }
                // The setting is lost with the old user namespace.
                end_with_guard();
            }
        }
        run();
        ExitCode::SUCCESS
    }

    /// Runs the tests that the command line names.
    fn run(&'static self) -> ExitCode {
        let mut arguments = Arguments::from_args();
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        arguments.test_threads.get_or_insert(THREADS_PER_CPU * cpus);
        let runner = Arc::new(Runner {
            shows_all: arguments.nocapture,
            machine: RwLock::new(()),
            folders: AtomicU32::new(0),
            times: Mutex::new(Vec::new()),
        });
        let has = |list: &[Exception], name: &str| list.iter().any(|(one, _)| *one == name);
        let names: Vec<String> = self.all().map(|(name, ..)| name).collect();
        for (exception, reason) in self.exclusive.iter().chain(self.ignored) {
            assert!(names.iter().any(|name| name == exception), "{exception}: {reason}");
        }
        let (last, first): (Vec<_>, Vec<_>) =
            names.into_iter().partition(|name| has(self.exclusive, name));
        let trial = |(name, is_exclusive): (String, bool)| {
            let (runner, own) = (runner.clone(), name.clone());
            let is_ignored = has(self.ignored, &name);
            Trial::ignorable_test(name, move || runner.run(&own, is_exclusive))
                .with_ignored_flag(is_ignored)
        };
        // Exclusive tests at the end: each waits until no other test runs.
        let all = first.into_iter().map(|name| (name, false));
        let all = all.chain(last.into_iter().map(|name| (name, true)));
        let conclusion = libtest_mimic::run(&arguments, all.map(trial).collect());
        runner.show_times();
        conclusion.exit_code()
    }
}

/// Lets the kernel kill this process when its parent has ended.
fn end_with_guard() {
    prctl::set_pdeathsig(Signal::SIGKILL).expect("Linux has it");
}

struct Runner {
    /// Tests write to the runner's own output (`--nocapture`) instead of a file.
    shows_all: bool,
    /// Held for writing by a test that has the machine for itself.
    machine: RwLock<()>,
    /// Folders that were made.
    folders: AtomicU32,
    times: Mutex<Vec<(Duration, String)>>,
}

impl Runner {
    fn run(&self, name: &str, is_exclusive: bool) -> Result<Completion, Failed> {
        // The lock protects no data, so a panic while it is held breaks nothing.
        let _shared = (!is_exclusive).then(|| self.machine.read());
        let _alone = is_exclusive.then(|| self.machine.write());
        let began = Instant::now();
        let (status, output) = self.run_in_folder(name)?;
        self.times.lock().expect("no panic").push((began.elapsed(), name.to_owned()));
        let skipped = output.lines().filter_map(|line| line.strip_prefix(needs::SKIPPED));
        for missing in skipped {
            let _ = writeln!(std::io::stderr(), "{}{name}: {missing}", needs::SKIPPED);
        }
        if status.success() {
            return Ok(Completion::Completed);
        }
        Err(format!("{output}{name}: {status}").into())
    }

    /// Runs the test's guard in a folder; returns its status, and the output of both.
    fn run_in_folder(&self, name: &str) -> Result<(ExitStatus, String), Failed> {
        let number = self.folders.fetch_add(1, Ordering::Relaxed);
        let folder = format!("axon-test-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(folder);
        let state = folder.join("state");
        DirBuilder::new().create(&folder)?;
        DirBuilder::new().mode(0o700).create(&state)?;
        let own = |word: &str| -> std::io::Result<Command> {
            let mut command = Command::new(std::env::current_exe()?);
            command.arg(word).env(STATE_VARIABLE, &state).env("TMPDIR", &folder);
            Ok(command)
        };
        let (mut output, mut guard) = (unnamed_file(&folder)?, own(GUARD)?);
        guard.arg(name).stdin(Stdio::piped());
        if !self.shows_all {
            guard.stdout(output.try_clone()?).stderr(output.try_clone()?);
        }
        let mut guard = guard.spawn()?;
        // The guard detects the end of this process when the pipe closes.
        let lifeline = guard.stdin.take();
        let status = guard.wait()?;
        drop(lifeline);
        if status.signal().is_some() {
            own(CLEAN)?.arg(guard.id().to_string()).stderr(output.try_clone()?).status()?;
        }
        let mut bytes = Vec::new();
        output.seek(SeekFrom::Start(0))?;
        output.read_to_end(&mut bytes)?;
        Ok((status, String::from_utf8_lossy(&bytes).into_owned()))
    }

    fn show_times(&self) {
        if std::env::var_os(TIMES_VARIABLE).is_none() {
            return;
        }
        let mut times = self.times.lock().expect("no panic");
        times.sort_by(|one, other| other.cmp(one));
        for (time, name) in times.iter() {
            println!("{:8.2} s  {name}", time.as_secs_f64());
        }
    }
}

/// A file that is removed when the last process has closed it.
fn unnamed_file(folder: &Path) -> std::io::Result<File> {
    let path: PathBuf = folder.join("output");
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}
