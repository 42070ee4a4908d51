//! Programmable switch on real ports, with its pipeline and its control program.

use crate::inspect::Inspect;
use crate::log;
use anyhow::{Context, Result, bail};
use axon_fabric::model::{Fabric, ProgramSource};
use axon_fabric::program;
use axon_node::telemetry::NodeTelemetry;
use axon_node::{Action, Awaited, Input, Node, PortKind, Shortcuts};
use axon_pipeline::{PipelineConfig, ProgramNode};
use axon_programs::Site;
use axon_wire::{PortNo, Time};
use std::sync::Arc;

/// Checks that this machine can run the program of a fabric, if there is one. A Python file needs
/// an interpreter with the module `axon`.
///
/// # Errors
/// There is no such file or no such interpreter.
pub fn check(fabric: &Fabric) -> Result<()> {
    let source = fabric.program.as_ref().map(|setup| &setup.source);
    let Some(ProgramSource::Python(path)) = source else { return Ok(()) };
    let name = || format!("program {}", path.display());
    std::fs::metadata(path).with_context(name)?;
    axon_external::Interpreter::find().map(drop).with_context(name)
}

/// Programmable switch with the name of its program.
pub(crate) struct Programmable {
    node: ProgramNode,
    program: String,
}

impl Programmable {
    /// Creates switch number `index` of a fabric with a program. The switch has its configuration
    /// and is in its initial state.
    ///
    /// # Errors
    /// There is no program, or a Python program cannot be started.
    pub(crate) fn of(
        fabric: &Fabric,
        index: usize,
        seed: u64,
    ) -> Result<(Programmable, PipelineConfig)> {
        let mut fabric = fabric.clone();
        program::fix_addresses(&mut fabric);
        let plan = Arc::new(program::plan(&fabric));
        let site = Site { plan, node: index as u32, seed };
        let (program, name) = match fabric.program.as_ref().map(|setup| &setup.source) {
            Some(ProgramSource::Ships(kind)) => (kind.program(site), kind.name().to_owned()),
            Some(ProgramSource::Python(path)) => {
                let name = path.display().to_string();
                let sink = |line: &str| log::line(format_args!("{line}"));
                let started = axon_external::start(path, &site, Arc::new(sink));
                (started.with_context(|| format!("program {name}"))?, name)
            }
            None => bail!("fabric {} has no program", fabric.name),
        };
        let program = program::with_agents(&fabric, index, program);
        let config = program::pipeline_config(&fabric, index, seed);
        let node = ProgramNode::new(config.clone(), program);
        Ok((Programmable { node, program: name }, config))
    }

    /// Creates a programmable switch whose inputs fully determine its behaviour, as a recording
    /// requires.
    ///
    /// # Errors
    /// As [`Programmable::of`]. Also if the program is in Python, whose answers are not
    /// deterministic.
    pub(crate) fn recordable(
        fabric: &Fabric,
        index: usize,
        seed: u64,
    ) -> Result<(Programmable, PipelineConfig)> {
        let source = fabric.program.as_ref().map(|setup| &setup.source);
        if let Some(ProgramSource::Python(path)) = source {
            bail!(
                "program {}: a switch with a program in Python cannot be recorded, as its answers \
                 do not follow from its inputs alone",
                path.display()
            );
        }
        Programmable::of(fabric, index, seed)
    }
}

impl Node for Programmable {
    fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        self.node.handle(now, input, out);
    }

    fn deadline(&self) -> Option<Time> {
        self.node.deadline()
    }

    fn queue_bytes(&self, port: PortNo) -> Option<u64> {
        self.node.queue_bytes(port)
    }
}

impl Shortcuts for Programmable {
    fn awaited(&mut self) -> Awaited {
        self.node.awaited()
    }
}

impl Inspect for Programmable {
    /// Returns plain Ethernet for every port, because the program defines the use of its links.
    fn port_kind(&self, _: PortNo) -> PortKind {
        PortKind::Host
    }

    fn telemetry(&self, now: Time) -> NodeTelemetry {
        NodeTelemetry::Programmable(Box::new(self.node.telemetry(now, &self.program)))
    }
}
