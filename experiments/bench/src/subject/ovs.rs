//! Open vSwitch with its user-space datapath. It runs as private daemons with their own database,
//! in the namespace of the calling thread.

use crate::traffic::inside;
use anyhow::{Context, Result, bail};
use axon_demo::process::{Process, Stop};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Path of the database schema in Debian's package.
const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";
/// Time limit for an answer from a daemon.
const ANSWER: Duration = Duration::from_secs(15);

/// Switch that consists of a database and a daemon, which are ended on drop.
pub struct OpenVswitch {
    // Fields are dropped in order, so the daemon ends before its database.
    daemon: Process,
    _database: Process,
}

impl OpenVswitch {
    /// Starts a switch with these ports. All files go to `folder`.
    ///
    /// # Errors
    /// A daemon does not start, or refuses a command.
    pub fn start(folder: &Path, ports: &[String], stop: &Stop) -> Result<OpenVswitch> {
        fs::create_dir_all(folder)?;
        let text = |name: &str| folder.join(name).display().to_string();
        let command = |program: &str, arguments: &[String]| {
            let argv = [&[program.to_owned()], arguments].concat();
            let mut command = inside::command(&argv)?;
            for variable in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"] {
                command.env(variable, folder);
            }
            Ok::<Command, anyhow::Error>(command)
        };
        let finish = |name: &str, program: &str, arguments: &[String]| {
            Process::start(command(program, arguments)?, folder, name)?.succeed(ANSWER, stop)
        };
        let socket = folder.join("db.sock");
        let at = format!("unix:{}", socket.display());
        finish("create", "ovsdb-tool", &["create".into(), text("conf.db"), SCHEMA.into()])?;
        let arguments = [
            text("conf.db"),
            format!("--remote=punix:{}", socket.display()),
            format!("--unixctl={}", text("ovsdb.ctl")),
        ];
        let mut database =
            Process::start(command("ovsdb-server", &arguments)?, folder, "ovsdb-server")?;
        wait_for(&socket, &mut database, stop)?;
        let database_option = format!("--db={at}");
        finish("init", "ovs-vsctl", &[database_option.clone(), "--no-wait".into(), "init".into()])?;
        let arguments =
            [at, "--disable-system".into(), format!("--unixctl={}", text("vswitchd.ctl"))];
        let daemon = Process::start(command("ovs-vswitchd", &arguments)?, folder, "ovs-vswitchd")?;
        let mut words = format!(
            "{database_option} --timeout={} add-br br0 -- set bridge br0 datapath_type=netdev",
            ANSWER.as_secs()
        );
        ports.iter().for_each(|port| words += &format!(" -- add-port br0 {port}"));
        let words: Vec<String> = words.split(' ').map(str::to_owned).collect();
        let added = finish("add", "ovs-vsctl", &words);
        added.with_context(|| daemon.complaint().trim().to_owned())?;
        Ok(OpenVswitch { daemon, _database: database })
    }

    /// Returns the process that carries the frames.
    pub(crate) fn process(&self) -> u32 {
        self.daemon.id()
    }
}

/// Waits until a daemon has created its socket.
fn wait_for(socket: &Path, of: &mut Process, stop: &Stop) -> Result<()> {
    let began = Instant::now();
    while !socket.exists() {
        if !of.is_running() || began.elapsed() > ANSWER {
            bail!("ovsdb-server does not answer: {}", of.complaint().trim());
        }
        stop.sleep(Duration::from_millis(10))?;
    }
    Ok(())
}
