//! Runs an agent of the fabric file at its switch port, in its own process.
//!
//! When the switch goes, the agent waits for it and attaches again. The first attempt follows after
//! 50 ms, and each further attempt after twice the previous pause, up to 2 s. A forwarder keeps its
//! connections meanwhile. A cache starts empty, because it missed the writes in between.
//!
//! The agent that adds DCB to a host is a different program: see [`crate::agent`].

mod board;
mod explain;
mod serve;
mod status;
mod watched;

pub use status::{AttachmentStatus, ask};

use crate::agent_port::client::Client;
use crate::agent_port::runner::{self, RunOptions};
use crate::status::StatusServer;
use anyhow::{Context, Result, bail};
use axon_fabric::model::{AgentKind, AgentSetup, Fabric};
use axon_wire::Span;
use board::Board;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};
use watched::Watched;

/// Environment variable that gives user programs the socket of the agent's port.
pub const SOCKET_VARIABLE: &str = "AXON_AGENT_SOCKET";
/// Environment variable that gives user programs the name of the agent.
pub const NAME_VARIABLE: &str = "AXON_AGENT_NAME";

const PAUSE_FIRST: Duration = Duration::from_millis(50);
const PAUSE_MAX: Duration = Duration::from_secs(2);
/// Attachment duration after which the pause starts at its first value again.
const STABLE_AFTER: Duration = Duration::from_secs(5);

/// Options of an attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttachOptions {
    /// Socket of the agent's port.
    pub socket: PathBuf,
    /// Socket that answers `status` requests, if any.
    pub status_socket: Option<PathBuf>,
    /// Time for which the agent polls for packets before it sleeps.
    pub spin: Span,
    /// True if the switch may start later. If false, an agent that cannot attach at once fails.
    pub waits: bool,
}

impl AttachOptions {
    /// Returns options for an agent whose switch must already listen at this socket.
    pub fn at(socket: PathBuf) -> AttachOptions {
        let RunOptions { spin } = RunOptions::default();
        AttachOptions { socket, status_socket: None, spin, waits: false }
    }
}

/// Returns the agent of this name in a fabric.
///
/// # Errors
/// There is no such agent. The error lists the existing ones.
pub fn agent_of<'a>(fabric: &'a Fabric, name: &str) -> Result<&'a AgentSetup> {
    if let Some(found) = fabric.agents.iter().find(|agent| agent.name == name) {
        return Ok(found);
    }
    let names: Vec<&str> = fabric.agents.iter().map(|agent| agent.name.as_str()).collect();
    match &names[..] {
        [] => bail!("fabric {} has no agents; expected one in its `agents`", fabric.name),
        names => {
            let all = names.join(" ");
            bail!("fabric {} has no agent {name}; it has {all}", fabric.name)
        }
    }
}

/// Returns the command that starts a user program as an agent in this folder, or `None` for a
/// built-in agent.
pub fn own_program(agent: &AgentSetup, socket: &Path, folder: &Path) -> Option<Command> {
    let AgentKind::Run(words) = &agent.kind else { return None };
    let (program, arguments) = words.split_first()?;
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    // A program name without a slash is searched in PATH.
    let program = if program.contains('/') { folder.join(program) } else { program.into() };
    let mut command = Command::new(program);
    command.args(arguments).current_dir(folder);
    // The program starts in a different folder, so the path must be absolute.
    let socket = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    command.env(SOCKET_VARIABLE, socket).env(NAME_VARIABLE, &agent.name);
    Some(command)
}

/// Runs agent `name` of a fabric until SIGTERM or SIGINT, and returns its counters. Call this while
/// the process has one thread, because other threads would receive the signals.
///
/// # Errors
/// There is no such agent, the agent is a user program, or the status socket cannot be opened.
/// Unless the agent waits for its switch, also if no switch listens on the socket or the switch
/// refuses the agent.
pub fn attach(fabric: &Fabric, name: &str, options: &AttachOptions) -> Result<AttachmentStatus> {
    let setup = agent_of(fabric, name)?;
    if setup.kind.build().is_none() {
        bail!("agent {name} is a program of its own; expected one of the agents that ship");
    }
    let signals = serve::signals()?;
    let server = options.status_socket.as_deref().map(StatusServer::open).transpose()?;
    let board = Arc::new(Board::new(name, setup.kind.name()));
    let serve = {
        let board = Arc::clone(&board);
        move || serve::serve(&board, &signals, server.as_ref())
    };
    let thread = std::thread::Builder::new().name("status".into()).spawn(serve);
    let thread = thread.context("no thread for the status")?;
    let outcome = keep(fabric, setup, options, &board);
    board.end();
    // The result of the thread is empty.
    let _ = thread.join();
    outcome.map(|()| board.status())
}

/// Keeps an agent attached until it is to end.
fn keep(fabric: &Fabric, setup: &AgentSetup, options: &AttachOptions, board: &Board) -> Result<()> {
    let mut agent: Option<Watched<'_>> = None;
    let mut pause = PAUSE_FIRST;
    let mut waits = options.waits;
    let mut logged = String::new();
    while !board.is_to_end() {
        let began = Instant::now();
        let error = match Client::connect(&options.socket, &setup.name) {
            Ok(mut client) => {
                tracing::info!(agent = setup.name, "attached at {}", options.socket.display());
                waits = true;
                logged.clear();
                let kept = agent.take().filter(|_| outlives_switch(&setup.kind));
                let built = || setup.kind.build().map(|agent| Watched::new(agent, board));
                let Some(kept) = kept.or_else(built) else { return Ok(()) };
                match run(&mut client, agent.insert(kept), options.spin, board) {
                    Ok(()) => return Ok(()),
                    Err(error) => error,
                }
            }
            Err(error) => error,
        };
        let why = explain::why(fabric, setup, &options.socket, &error);
        if !waits {
            bail!(why);
        }
        if why != logged {
            tracing::warn!(agent = setup.name, "{why}; trying again");
            logged = why;
        }
        if began.elapsed() > STABLE_AFTER {
            pause = PAUSE_FIRST;
        }
        board.pause(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
    Ok(())
}

/// Runs an agent while it is attached.
fn run(client: &mut Client, agent: &mut Watched<'_>, spin: Span, board: &Board) -> io::Result<()> {
    agent.begin();
    board.attached();
    let ended = runner::run(client, agent, RunOptions { spin }, board.end_flag());
    board.detached(agent.counted());
    ended
}

/// Returns whether the state of an agent is still valid after frames have bypassed it.
fn outlives_switch(kind: &AgentKind) -> bool {
    match kind {
        AgentKind::Forwarder(_) => true,
        AgentKind::Cache(_) | AgentKind::Congestion(_) | AgentKind::Run(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    const TEXT: &str = "name: a\ntopology: {ring: {switches: 3}}\nagents:\n\
        - {name: vip, at: s2, forwarder: {address: 10.0.0.99, routes: [{to: 0.0.0.0/0}]}}\n\
        - {name: own, at: s1, run: [sh, -c, 'echo $AXON_AGENT_NAME $AXON_AGENT_SOCKET; pwd']}\n\
        - {name: beside, at: s1, run: [./agent]}\n";

    fn fabric() -> Fabric {
        axon_fabric::parse("a.yaml".as_ref(), TEXT).unwrap()
    }

    fn refused(name: &str, socket: &Path) -> String {
        let options = AttachOptions::at(socket.to_owned());
        format!("{:#}", attach(&fabric(), name, &options).unwrap_err())
    }

    #[test]
    fn what_cannot_be_attached_is_refused_with_the_way_out() {
        let folder = std::env::temp_dir().join(format!("axon-attach-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let socket = folder.join("vip.sock");
        assert_eq!(refused("lb", &socket), "fabric a has no agent lb; it has vip own beside");
        assert!(refused("own", &socket).contains("a program of its own"));
        let none = refused("vip", &socket);
        assert!(
            none.contains("s2 listens there") && none.contains("`axon switch FILE s2`"),
            "{none}"
        );

        let listener = UnixListener::bind(&socket).unwrap();
        let other = std::thread::spawn(move || drop(listener.accept().unwrap()));
        let closed = refused("vip", &socket);
        other.join().unwrap();
        assert!(closed.starts_with("agent vip is not attached at"), "{closed}");
        let left = refused("vip", &socket);
        assert!(left.contains("nobody listens"), "a socket that a dead switch has left: {left}");
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn a_program_of_the_users_own_gets_its_socket_and_its_name() {
        let fabric = fabric();
        let (ships, own) = (&fabric.agents[0], &fabric.agents[1]);
        assert!(own_program(ships, Path::new("/x"), Path::new("/")).is_none());
        let output = own_program(own, Path::new("/x/own.sock"), Path::new("/")).unwrap().output();
        assert_eq!(output.unwrap().stdout, b"own /x/own.sock\n/\n");
        let beside = own_program(&fabric.agents[2], Path::new("/x"), Path::new("/lab")).unwrap();
        assert_eq!(Path::new(beside.get_program()), Path::new("/lab/agent"));
    }
}
