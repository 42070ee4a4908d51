//! A topology before its ports are numbered, and the limits of its size.

use crate::error::Problem;
use crate::file::WireKey;
use axon_wire::{MacAddr, PortNo};
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};

/// Maximum number of switches of a fabric.
pub const SWITCHES_MAX: usize = 10_000;
/// Maximum number of hosts of a fabric.
pub const HOSTS_MAX: usize = 100_000;

/// A topology before its ports are numbered.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// Key of the topology in the file: `topology.ring`.
    pub key: &'static str,
    /// Names of the switches, in order.
    pub switches: Vec<String>,
    pub hosts: Vec<PlanHost>,
    pub links: Vec<PlanLink>,
}

/// A planned host.
#[derive(Debug)]
pub(crate) struct PlanHost {
    pub name: String,
    pub at: PlanEnd,
    pub ip: Option<Ipv4Addr>,
    pub ip6: Option<Ipv6Addr>,
    pub mac: Option<MacAddr>,
    /// Different properties of its link.
    pub wire: Vec<WireKey>,
    /// Key of the host in the file.
    pub key: String,
}

/// A planned link.
#[derive(Debug)]
pub(crate) struct PlanLink {
    pub ends: [PlanEnd; 2],
    /// Different properties.
    pub wire: Vec<WireKey>,
    /// Key of the link in the file.
    pub key: String,
}

/// A switch by index, with a port if the file gives one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanEnd {
    pub switch: usize,
    pub port: Option<PortNo>,
}

impl Plan {
    /// Returns `switches` switches without links, `s1` first; `key` is used in errors.
    pub(super) fn with_switches(key: &str, switches: usize, least: usize) -> Result<Plan, Problem> {
        in_range(key, switches, least, SWITCHES_MAX)?;
        Ok(Plan {
            switches: (1..=switches).map(|number| format!("s{number}")).collect(),
            ..Plan::default()
        })
    }

    /// Returns the switches by name.
    pub(crate) fn numbers(&self) -> BTreeMap<&str, usize> {
        self.switches.iter().enumerate().map(|(index, name)| (name.as_str(), index)).collect()
    }

    /// Adds a link between two switches, by index; `key` is used in errors.
    pub(super) fn link(&mut self, key: &str, a: usize, b: usize) {
        self.links.push(PlanLink {
            ends: [a, b].map(|switch| PlanEnd { switch, port: None }),
            wire: Vec::new(),
            key: key.into(),
        });
    }
}

/// Refuses a number outside `least..=most`.
pub(super) fn in_range(key: &str, number: usize, least: usize, most: usize) -> Result<(), Problem> {
    if (least..=most).contains(&number) {
        return Ok(());
    }
    let expected = format!("{least} to {most}");
    Err(Problem::range(key, number, expected))
}

/// Returns the largest number from `least` to `most` with which the limit of switches holds.
pub(super) fn largest(
    least: usize,
    most: usize,
    switches: impl Fn(usize) -> Option<usize>,
) -> usize {
    let fits = |&number: &usize| switches(number).is_some_and(|count| count <= SWITCHES_MAX);
    (least..=most).take_while(fits).last().unwrap_or(least)
}

/// Refuses a fabric with more switches than the limit.
pub(super) fn not_too_many(key: &str, switches: usize) -> Result<(), Problem> {
    if switches <= SWITCHES_MAX {
        return Ok(());
    }
    let what = match switches {
        usize::MAX => "it would have more switches than can be counted".into(),
        _ => format!("it would have {switches} switches"),
    };
    Err(Problem::new(key, what, format!("at most {SWITCHES_MAX}")))
}
