//! Python interpreter for programs, and a check of its module `axon`.

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

/// Environment variable that names the interpreter. The default is `python3`.
const VARIABLE: &str = "AXON_PYTHON";
/// Environment variable with the memory limit of a program, in bytes. 0 means no limit.
const MEMORY: &str = "AXON_MEMORY_BYTES";
/// Python code that prints the message version of the module.
const ASK: &str = "import axon; print(axon.PROTOCOL_VERSION)";

/// Reason why a Python program cannot be started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no such interpreter.
    #[error("{0} cannot be run ({1}); install Python 3.11 or later, or name one in {VARIABLE}")]
    NoInterpreter(PathBuf, std::io::Error),
    /// The interpreter has no module `axon`.
    #[error(
        "{0} has no module `axon` ({1}); run `make python` and set \
         {VARIABLE}=target/python/bin/python, or `pip install ./crates/py` into it"
    )]
    NoModule(PathBuf, String),
    /// The module belongs to a different build.
    #[error(
        "the module `axon` of {0} speaks version {1} of the messages, and this program {VERSION}; \
         run `make python` again"
    )]
    OtherVersion(PathBuf, String),
    /// There is no such file.
    #[error("{0} cannot be read: {1}")]
    NoFile(PathBuf, std::io::Error),
    /// The process did not start.
    #[error("a process of {0} did not start: {1}")]
    Process(PathBuf, std::io::Error),
}

/// Python interpreter that has the module `axon`.
#[derive(Clone, Debug)]
pub struct Interpreter {
    path: PathBuf,
    limits: Limits,
    overtime: Overtime,
}

impl Interpreter {
    /// Finds the interpreter that `AXON_PYTHON` names, or `python3`.
    ///
    /// # Errors
    /// The interpreter does not exist, or it has no module `axon` with this version.
    pub fn find() -> Result<Interpreter, StartError> {
        let name = std::env::var_os(VARIABLE).filter(|name| !name.is_empty());
        Interpreter::at(name.unwrap_or_else(|| OsString::from("python3")).into())
    }

    /// Checks the interpreter with this name or path.
    ///
    /// # Errors
    /// See [`Interpreter::find`].
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

    /// Returns the name or path of the interpreter.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the interpreter with other limits for its programs.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Interpreter {
        Interpreter { limits, ..self }
    }

    /// Returns the record of the first blocking program that has exceeded its time, among those
    /// that this interpreter or its clones have started.
    pub fn overtime(&self) -> &Overtime {
        &self.overtime
    }

    /// Starts a program for simulations, whose switch waits for it. A program that cannot be
    /// started counts as failed from the beginning.
    pub fn start_waiting(&self, file: &Path, site: &Site) -> Box<dyn Program> {
        Box::new(match self.spawn(file, site, None) {
            Ok(peer) => Waiting::new(peer, site, self.limits).with_overtime(self.overtime.clone()),
            Err(error) => Waiting::failed(error.to_string()),
        })
    }

    /// Starts a program that its switch never waits for. Its output goes to `sink`.
    ///
    /// # Errors
    /// There is no such file, or the process cannot be started.
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
        // These make errors name the switch, hashing deterministic, and output unbuffered.
        command.env("AXON_NODE", &site.own().name);
        command.env("PYTHONHASHSEED", "0").env("PYTHONUNBUFFERED", "1");
        if std::env::var_os(MEMORY).is_none() {
            command.env(MEMORY, self.limits.memory_bytes.to_string());
        }
        Peer::spawn(command, sink).map_err(|error| StartError::Process(self.path.clone(), error))
    }
}

/// Starts the program in `file` for real ports, with the interpreter that [`Interpreter::find`]
/// finds. Its output goes to `sink`.
///
/// # Errors
/// See [`StartError`].
pub fn start(file: &Path, site: &Site, sink: Sink) -> Result<Box<dyn Program>, StartError> {
    Interpreter::find()?.start_queued(file, site, sink)
}
