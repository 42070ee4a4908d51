//! The Python that runs programs, and whether it has the module `axon`.

use crate::limits::{Limits, Overtime};
use crate::message::VERSION;
use crate::output::Sink;
use crate::process::Peer;
use crate::queued::Queued;
use crate::waiting::Waiting;
use axon_pipeline::Program;
use axon_programs::Site;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Names the interpreter; `python3` without it.
const VARIABLE: &str = "AXON_PYTHON";
/// How much memory a program may take, in bytes; no limit if 0.
const MEMORY: &str = "AXON_MEMORY_BYTES";
/// Writes the version of the module's messages.
const ASK: &str = "import axon; print(axon.PROTOCOL_VERSION)";

/// Why a program in Python cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such program.
    #[error("{0} cannot be run ({1}); install Python 3.11 or later, or name one in {VARIABLE}")]
    NoInterpreter(PathBuf, std::io::Error),
    /// It has no module of ours.
    #[error(
        "{0} has no module `axon` ({1}); run `make python` and set \
         {VARIABLE}=target/python/bin/python, or `pip install ./crates/py` into it"
    )]
    NoModule(PathBuf, String),
    /// Its module is of another build.
    #[error(
        "the module `axon` of {0} speaks version {1} of the messages, and this program {VERSION}; \
         run `make python` again"
    )]
    OtherVersion(PathBuf, String),
    /// The file is not there.
    #[error("{0} cannot be read: {1}")]
    NoFile(PathBuf, std::io::Error),
    /// The process did not start.
    #[error("a process of {0} did not start: {1}")]
    Process(PathBuf, std::io::Error),
}

/// A Python that has the module `axon`.
#[derive(Clone, Debug)]
pub struct Interpreter {
    path: PathBuf,
    limits: Limits,
    overtime: Overtime,
}

impl Interpreter {
    /// The interpreter that `AXON_PYTHON` names, or `python3`.
    ///
    /// # Errors
    /// It is not there, or has no module `axon` of this version.
    pub fn find() -> Result<Interpreter, StartError> {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        Interpreter::at(name.unwrap_or_else(|| OsString::from("python3")).into())
    }

    /// The interpreter with this name or path.
    ///
    /// # Errors
    /// As [`Interpreter::find`].
    pub fn at(path: PathBuf) -> Result<Interpreter, StartError> {
        let asked = Command::new(&path).args(["-P", "-c", ASK]).output();
        let output = asked.map_err(|error| StartError::NoInterpreter(path.clone(), error))?;
        if !output.status.success() {
            let text = String::from_utf8_lossy(&output.stderr);
            let last = text.lines().rfind(|line| !line.is_empty()).unwrap_or("no reason given");
            return Err(StartError::NoModule(path, last.to_owned()));
        }
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        if version.parse() != Ok(VERSION) {
            return Err(StartError::OtherVersion(path, version));
        }
        Ok(Interpreter { path, limits: Limits::default(), overtime: Overtime::default() })
    }

    /// Its name or path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The same with other limits.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Interpreter {
        Interpreter { limits, ..self }
    }

    /// Whether a program that its switch waits for has exceeded its time, of all that this one and
    /// its clones have started.
    pub fn overtime(&self) -> &Overtime {
        &self.overtime
    }

    /// Starts a program that its switch waits for, for simulations. One that cannot be started has
    /// failed from the beginning.
    pub fn start_waiting(&self, file: &Path, site: &Site) -> Box<dyn Program> {
        Box::new(match self.spawn(file, site, None) {
            Ok(peer) => Waiting::new(peer, site, self.limits).with_overtime(self.overtime.clone()),
            Err(error) => Waiting::failed(error.to_string()),
        })
    }

    /// Starts a program that its switch never waits for. What it prints goes to `sink`.
    ///
    /// # Errors
    /// There is no such file, or no process.
    pub fn start_queued(
        &self,
        file: &Path,
        site: &Site,
        sink: Sink,
    ) -> Result<Box<dyn Program>, StartError> {
        let queued = Queued::new(self.spawn(file, site, Some(sink))?, site, self.limits);
        let queued = queued.map_err(|error| StartError::Process(self.path.clone(), error))?;
        Ok(Box::new(queued))
    }

    fn spawn(&self, file: &Path, site: &Site, sink: Option<Sink>) -> Result<Peer, StartError> {
        let found = std::fs::File::open(file);
        found.map_err(|error| StartError::NoFile(file.to_owned(), error))?;
        let mut command = Command::new(&self.path);
        command.args(["-P", "-m", "axon.run"]).arg(file);
        // Its errors name the switch; sets of strings have one order; what it prints comes at once.
        command.env("AXON_NODE", &site.own().name);
        command.env("PYTHONHASHSEED", "0").env("PYTHONUNBUFFERED", "1");
        if std::env::var_os(MEMORY).is_none() {
            command.env(MEMORY, self.limits.memory_bytes.to_string());
        }
        Peer::spawn(command, sink).map_err(|error| StartError::Process(self.path.clone(), error))
    }
}

/// Starts the program in `file` for real ports, in the interpreter that [`Interpreter::find`]
/// finds. What it prints goes to `sink`.
///
/// # Errors
/// See [`StartError`].
pub fn start(file: &Path, site: &Site, sink: Sink) -> Result<Box<dyn Program>, StartError> {
    Interpreter::find()?.start_queued(file, site, sink)
}
