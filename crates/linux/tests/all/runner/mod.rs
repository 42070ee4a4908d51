//! Runs each test in a process of its own, several at a time, with the options of libtest.
//!
//! libtest cannot run these tests: the lab starts its parts from the program that calls it, only a
//! process of one thread may change its user namespace, and a test that is killed has to leave
//! nothing behind. For each test the runner starts this program again as a [`guard`], which starts
//! it once more as the test:
//!
//! ```text
//! runner        selects tests, and shows the output of those that fail
//!   guard       leads a session, ends all labs and processes of the test, removes its folder
//!     test      runs one function, in namespaces of its own where it needs them
//! ```
//!
//! Each test has a folder for its temporary files ([`std::env::temp_dir`]) and the state of its
//! labs, so labs of the same name may be up side by side. `AXON_TEST_TIMES=1` lists the time of
//! each test, the longest first.
//!
//! The tests of ports and those of labs are two programs, and both use this module.

mod guard;

use crate::needs;
use libtest_mimic::{Arguments, Completion, Failed, Trial};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use std::fs::{DirBuilder, File};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, Instant};

/// First argument of a process that a test starts from this program; the module comes next.
const PART: &str = "test-part";
/// First argument of a guard, followed by the name of the test and its folder.
const GUARD: &str = "test-guard";
/// First argument of a test, followed by its name.
const TEST: &str = "test-run";
/// First argument of a process that cleans up after a guard that was killed, followed by the number
/// of the guard and the folder of the test.
const CLEAN: &str = "test-clean";
/// Tests that run at a time, unless `--test-threads` sets another number.
const THREADS_PER_CPU: usize = 2;
const TIMES_VARIABLE: &str = "AXON_TEST_TIMES";

/// A test and its name in its module.
pub type Test = (&'static str, fn());

/// Runs a process that a test has started, with the words after [`PART`] and the module.
pub type Part = fn(&[&str]) -> ExitCode;

/// The tests of one file.
pub struct Module {
    name: &'static str,
    /// Prepares the process of a test. Returns false, and prints why, if it cannot run here.
    prepare: fn() -> bool,
    tests: &'static [Test],
    part: Option<Part>,
}

impl Module {
    pub const fn new(name: &'static str, prepare: fn() -> bool, tests: &'static [Test]) -> Module {
        Module { name, prepare, tests, part: None }
    }

    /// Returns the module with the processes that its tests start.
    pub const fn with_part(self, part: Part) -> Module {
        Module { part: Some(part), ..self }
    }
}

/// The labs of a test, for a program whose tests start some.
pub struct Labs {
    /// Environment variable that sets the directory of their state.
    pub state_variable: &'static str,
    /// Ends all labs in that directory; returns their names.
    pub end: fn() -> Vec<String>,
}

/// A test, by its whole name, that is treated in another way than most, and the reason.
pub type Exception = (&'static str, &'static str);

/// All tests of this program.
pub struct Tests {
    pub modules: &'static [Module],
    pub labs: Option<Labs>,
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
            [GUARD, name, folder] => guard::guard(name, Path::new(folder), self.labs.as_ref()),
            [CLEAN, guard, folder] => {
                let guard = guard.parse().expect("a number");
                guard::clean_after(guard, Path::new(folder), self.labs.as_ref())
            }
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
        if (module.prepare)() {
            // The setting is lost with the old user namespace, if the test has a new one.
            end_with_guard();
            run();
        }
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
            state_variable: self.labs.as_ref().map(|labs| labs.state_variable),
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
    /// Environment variable that sets the directory of the state of labs.
    state_variable: Option<&'static str>,
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
            command.arg(word).env("TMPDIR", &folder);
            if let Some(variable) = self.state_variable {
                command.env(variable, &state);
            }
            Ok(command)
        };
        let (mut output, mut guard) = (unnamed_file(&folder)?, own(GUARD)?);
        guard.arg(name).arg(&folder).stdin(Stdio::piped());
        if !self.shows_all {
            guard.stdout(output.try_clone()?).stderr(output.try_clone()?);
        }
        let mut guard = guard.spawn()?;
        // The guard detects the end of this process when the pipe closes.
        let lifeline = guard.stdin.take();
        let status = guard.wait()?;
        drop(lifeline);
        if status.signal().is_some() {
            let mut clean = own(CLEAN)?;
            clean.arg(guard.id().to_string()).arg(&folder).stderr(output.try_clone()?).status()?;
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
    let path = folder.join("output");
    let file = File::options().read(true).append(true).create_new(true).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Command line of a process of this program that runs the part of a module, with these words.
pub fn part<const N: usize>(module: &str, words: [&str; N]) -> Vec<String> {
    let program = std::env::current_exe().expect("a running program has a path");
    let program = program.to_str().expect("a path in plain text");
    [program, PART, module].into_iter().chain(words).map(str::to_owned).collect()
}
