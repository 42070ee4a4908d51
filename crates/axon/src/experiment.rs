//! Experiments: `axon reproduce`, `bench`, `demo`, `model` and `cam` are separate programs, named
//! `axon-reproduce` and so on, which `axon` executes in its place.
//!
//! A program is searched in the folder of `axon` itself, then in those of `PATH`. It must be of the
//! version of `axon`, since the commands of one version are documented together.

use anyhow::{Context, Error, Result, anyhow, ensure};
use std::env;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// End of the help text that `axon` itself has for an experiment.
pub(crate) const HELP: &str = "Exit status: that of the program; 2 it is not there, is of another \
                        version, or cannot be run";

/// Command line of an experiment, which its program parses.
#[derive(clap::Args)]
#[command(disable_help_flag = true, disable_version_flag = true)]
pub struct Arguments {
    /// Arguments of the program; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// An experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Experiment {
    /// `axon bench`.
    Bench,
    /// `axon cam`.
    Cam,
    /// `axon demo`.
    Demo,
    /// `axon model`.
    Model,
    /// `axon reproduce`.
    Reproduce,
}

impl Experiment {
    /// Returns the name of the command.
    fn command(self) -> &'static str {
        match self {
            Experiment::Bench => "bench",
            Experiment::Cam => "cam",
            Experiment::Demo => "demo",
            Experiment::Model => "model",
            Experiment::Reproduce => "reproduce",
        }
    }

    /// Returns the package that contains the program.
    fn package(self) -> &'static str {
        match self {
            Experiment::Bench => "axon-bench",
            Experiment::Cam | Experiment::Reproduce => "axon-papers",
            Experiment::Demo => "axon-demo",
            Experiment::Model => "axon-model",
        }
    }

    /// Returns the file name of the program.
    fn program(self) -> String {
        format!("axon-{}", self.command())
    }

    /// Returns the command that builds a program of this version.
    fn way_out(self) -> String {
        let package = self.package();
        format!("`make experiments` or `cargo build --release -p {package}` builds it")
    }
}

/// Executes the program of an experiment, with all arguments after the command unchanged.
///
/// # Errors
/// The program is missing, cannot be run, or is of another version.
pub fn run(experiment: Experiment) -> Result<ExitCode> {
    let program = find(experiment)?;
    check_version(experiment, &program)?;
    let command = experiment.command();
    // Arguments as typed: clap removes a first `--`.
    let arguments = env::args_os().skip_while(|word| word != command).skip(1);
    // Name of the program in its usage text.
    let name = format!("axon {command}");
    let error = Command::new(&program).arg0(name).args(arguments).exec();
    Err(unusable(experiment, &program, &error))
}

/// Returns the first executable file of the program's name.
fn find(experiment: Experiment) -> Result<PathBuf> {
    let name = experiment.program();
    let own = env::current_exe().and_then(|own| own.canonicalize()).context("where axon is")?;
    let beside = own.parent().unwrap_or(Path::new("/")).to_owned();
    let on_path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&on_path).filter(|folder| !folder.as_os_str().is_empty());
    let files: Vec<PathBuf> = [beside.clone()]
        .into_iter()
        .chain(on_path)
        .map(|folder| folder.join(&name))
        .filter(|file| file.is_file())
        .collect();
    let is_executable = |file: &&PathBuf| {
        file.metadata().is_ok_and(|found| found.permissions().mode() & 0o111 != 0)
    };
    if let Some(file) = files.iter().find(is_executable) {
        return Ok(file.clone());
    }
    let way_out = experiment.way_out();
    Err(match files.first() {
        Some(file) => anyhow!("{} is not executable; {way_out} anew", file.display()),
        None => anyhow!(
            "{name} is neither in {}, where axon is, nor in a folder of PATH; {way_out}",
            beside.display()
        ),
    })
}

/// Refuses a program of another version, by its output for `--version`.
fn check_version(experiment: Experiment, program: &Path) -> Result<()> {
    let mut asked = Command::new(program);
    asked.arg("--version").stdin(Stdio::null()).stderr(Stdio::null());
    let output = asked.output().map_err(|error| unusable(experiment, program, &error))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let name = experiment.program();
    let version = text.trim_end().strip_prefix(&name).and_then(|rest| rest.strip_prefix(' '));
    let (path, way_out) = (program.display(), experiment.way_out());
    let version = version.filter(|version| output.status.success() && !version.contains('\n'));
    let version = version
        .with_context(|| format!("{path} does not answer --version as {name}; {way_out}"))?;
    let ours = env!("CARGO_PKG_VERSION");
    ensure!(
        version == ours,
        "{path} is of version {version}, and axon of version {ours}; {way_out} in this version"
    );
    Ok(())
}

/// Returns the error for a program that cannot be started.
fn unusable(experiment: Experiment, program: &Path, error: &std::io::Error) -> Error {
    anyhow!("{} cannot be run: {error}; {}", program.display(), experiment.way_out())
}
