//! Rebuilds the node from a recording.

use crate::agent::{self, AgentOptions};
use crate::daemon;
use crate::programmable::Programmable;
use crate::record::{AgentSource, Setup, digest};
use anyhow::{Context, Error, Result, bail};
use axon_capture::recording::Header;
use axon_fabric::FabricText;
use axon_fabric::assemble::{controller_config, switch_config, switch_index};
use axon_fabric::model::{Fabric, Network};
use axon_node::{Action, Input, Node, PortKind, Stored};
use axon_plane::Plane;
use axon_switch::agent::AgentNode;
use axon_switch::{ControllerNode, SwitchNode};
use axon_wire::{Incarnation, PortNo, Time};

/// Largest MTU of a Linux device, in bytes.
const MTU_BYTES_MAX: u64 = 1 << 16;

/// Node that was rebuilt from a recording.
pub(super) enum Rebuilt {
    Switch(Box<SwitchNode<Plane>>),
    Controller(Box<ControllerNode<Plane>>),
    Agent(Box<AgentNode>),
    Programmable(Box<Programmable>),
}

impl Rebuilt {
    /// Builds the node that `header` describes, in its state before the first input. `instead`
    /// replaces the fabric file in the recording.
    ///
    /// # Errors
    /// This binary cannot build that node, or builds it with a different configuration.
    pub(super) fn of(header: &Header, instead: Option<&FabricText>) -> Result<Rebuilt> {
        let setup: Setup = postcard::from_bytes(&header.setup)
            .context("the header names no setup that this axon knows")?;
        let (node, id, config) = match setup {
            Setup::Switch { fabric, seed } => switch(header, &built(&fabric, instead)?, seed)?,
            Setup::Controller { fabric, seed, started_at, stored } => {
                let fabric = built(&fabric, instead)?;
                controller(header, &fabric, seed, (started_at, &stored))?
            }
            Setup::Agent { of, seed, mac, mtu_bytes } => {
                let options = agent_options(header, &of, instead)?;
                options.check().map_err(Error::msg)?;
                if mtu_bytes > MTU_BYTES_MAX {
                    bail!("an agent with an MTU of {mtu_bytes} bytes; at most {MTU_BYTES_MAX}");
                }
                let config = agent::config(&options, seed, mac, mtu_bytes as usize);
                let config_digest = digest(&config);
                let node = Rebuilt::Agent(Box::new(AgentNode::new(config)?));
                (node, Incarnation::default(), config_digest)
            }
        };
        if id != header.incarnation || config != header.config_digest {
            let (name, made_by) = (&header.name, &header.made_by);
            match instead {
                Some(_) => bail!(
                    "the recording is of another fabric: this one configures {name} otherwise"
                ),
                None => bail!(
                    "this axon configures {name} otherwise than {made_by}, which made the \
                     recording, did from the same fabric file; replay it with that axon"
                ),
            }
        }
        Ok(node)
    }

    /// Passes an input to the node.
    pub(super) fn handle(&mut self, now: Time, input: Input, out: &mut Vec<Action>) {
        match self {
            Rebuilt::Switch(node) => node.handle(now, input, out),
            Rebuilt::Controller(node) => node.handle(now, input, out),
            Rebuilt::Agent(node) => node.handle(now, input, out),
            Rebuilt::Programmable(node) => node.handle(now, input, out),
        }
    }

    /// Returns the kind of the peer of a port.
    pub(super) fn port_kind(&self, port: PortNo) -> PortKind {
        match self {
            Rebuilt::Switch(node) => node.discovery().kind(port),
            Rebuilt::Controller(node) => node.discovery().kind(port),
            Rebuilt::Agent(_) | Rebuilt::Programmable(_) => PortKind::Host,
        }
    }
}

fn built(recorded: &FabricText, instead: Option<&FabricText>) -> Result<Fabric> {
    let text = instead.unwrap_or(recorded);
    text.fabric().context("the fabric file of the recording cannot be read by this axon")
}

fn switch(header: &Header, fabric: &Fabric, seed: u64) -> Result<(Rebuilt, Incarnation, u64)> {
    let index = switch_index(fabric, &header.name).with_context(|| {
        format!("the recording is of another fabric: {} has no switch {}", fabric.name, header.name)
    })?;
    if fabric.network == Network::Program {
        let (node, config) = Programmable::recordable(fabric, index, seed)?;
        let rebuilt = Rebuilt::Programmable(Box::new(node));
        return Ok((rebuilt, Incarnation::default(), digest(&config)));
    }
    let config = switch_config(fabric, index, header.incarnation.number, seed);
    let (id, digest) = (config.control.edge.node.incarnation, digest(&config));
    Ok((Rebuilt::Switch(Box::new(config.on_software())), id, digest))
}

fn controller(
    header: &Header,
    fabric: &Fabric,
    seed: u64,
    (started_at, stored): (Time, &[Stored]),
) -> Result<(Rebuilt, Incarnation, u64)> {
    let name = &fabric.controller.name;
    if *name != header.name {
        bail!("the recording is of another fabric: the controller of {} is {name}", fabric.name);
    }
    let config = controller_config(fabric, header.incarnation.number, seed);
    let (id, digest) = (config.control.node.incarnation, digest(&config));
    Ok((Rebuilt::Controller(Box::new(config.on_software(started_at, stored))), id, digest))
}

fn agent_options(
    header: &Header,
    of: &AgentSource,
    instead: Option<&FabricText>,
) -> Result<AgentOptions> {
    match (of, instead) {
        (AgentSource::Fabric(fabric), _) => {
            daemon::agent_options(&built(fabric, instead)?, &header.name)
        }
        (AgentSource::Arguments(_), Some(_)) => {
            bail!("the recording is of an agent without a fabric file")
        }
        (AgentSource::Arguments(arguments), None) => Ok(arguments.clone().into()),
    }
}
