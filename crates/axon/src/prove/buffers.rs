//! Check that the headroom of every lossless port holds all that may arrive after XOFF was sent.

use super::bar::bar;
use super::names::name;
use super::search::{self, Searched, search};
use axon_fabric::dcb::{
    CableEnd, cable_ends, configured, frame_bytes, headroom, needed, quanta_needed,
};
use axon_fabric::model::{Dcb, End, Fabric, FlowControl};
use axon_fabric::units::span_text;
use axon_prove::headroom::{Headroom, Term};
use axon_wire::{Bytes, PortNo};
use std::fmt::Write;

/// Maximum number of ports of a kind that are named.
const NAMED: usize = 3;

/// Ports with equal needs.
pub struct Kind {
    /// Formula with its inputs.
    pub formula: Headroom,
    /// True if hosts are at the other end.
    pub is_host: bool,
    /// Bytes of headroom needed: the sum of the formula, and the frame that triggers XOFF.
    pub needed: Bytes,
    /// Headroom that the simulator found to be used.
    pub searched: Searched,
    /// True if the other end honours flow control.
    pub honours_pause: bool,
    /// Headroom of each (port, lossless priority).
    pub configured: Bytes,
    /// Minimum quanta of a pause that is refreshed in time, and those of this fabric.
    pub quanta: (u64, u64),
    /// Names of the ports.
    pub ports: Vec<String>,
}

/// Result for a fabric's buffers.
pub enum Buffers {
    /// The fabric has no lossless class, so it needs no headroom.
    Lossy,
    /// Kinds of ports.
    Lossless(Vec<Kind>),
}

impl Kind {
    /// Returns whether no frame is lost at these ports.
    fn suffices(&self) -> bool {
        let enough = self.configured >= self.needed.max(self.searched.most);
        enough && self.honours_pause && self.quanta.0 <= self.quanta.1
    }
}

impl Buffers {
    /// Returns whether no frame can be lost for lack of headroom.
    pub(crate) fn suffice(&self) -> bool {
        match self {
            Buffers::Lossy => true,
            Buffers::Lossless(kinds) => kinds.iter().all(Kind::suffices),
        }
    }
}

/// Checks every port of every switch, and searches the worst case of each kind of port from a seed;
/// `None` without a `dcb` section.
pub(super) fn of(fabric: &Fabric, seed: u64) -> Option<Buffers> {
    let dcb = fabric.dcb.as_deref()?;
    if dcb.lossless.is_empty() || dcb.flow_control == FlowControl::None {
        return Some(Buffers::Lossy);
    }
    let mut kinds: Vec<Kind> = Vec::new();
    for switch in 0..fabric.switches.len() {
        let sizes = configured(fabric, dcb, switch);
        for (port, (cable, size)) in cable_ends(fabric, switch).into_iter().zip(sizes).enumerate() {
            if let Some(cable) = cable {
                let end = End { switch, port: PortNo(port as u16) };
                add(&mut kinds, kind(fabric, dcb, cable, size), name(fabric, end));
            }
        }
    }
    let runs = kinds.iter().map(|kind| search::runs(&kind.formula)).sum();
    let bar = bar(runs, "headroom", "worst cases simulated");
    for kind in &mut kinds {
        kind.searched = search(&kind.formula, seed, || bar.inc(1));
    }
    bar.finish_and_clear();
    Some(Buffers::Lossless(kinds))
}

fn kind(fabric: &Fabric, dcb: &Dcb, cable: CableEnd<'_>, configured: Bytes) -> Kind {
    let formula = headroom(fabric, dcb, cable);
    let is_host = cable.is_host;
    let quanta = (quanta_needed(&formula, cable), dcb.quanta.0.into());
    let (needed, searched) = (needed(&formula), Searched::default());
    let honours_pause = dcb.hosts || !is_host;
    Kind {
        formula,
        is_host,
        needed,
        searched,
        honours_pause,
        configured,
        quanta,
        ports: Vec::new(),
    }
}

fn add(kinds: &mut Vec<Kind>, new: Kind, port: String) {
    let same = |kind: &&mut Kind| {
        (kind.formula, kind.is_host) == (new.formula, new.is_host)
            && (kind.configured, kind.quanta) == (new.configured, new.quanta)
    };
    match kinds.iter_mut().find(same) {
        Some(kind) => kind.ports.push(port),
        None => kinds.push(Kind { ports: vec![port], ..new }),
    }
}

/// Returns the result in one line.
pub(super) fn headline(buffers: Option<&Buffers>) -> String {
    match buffers {
        None => "no dcb section: that it suffices is assumed".into(),
        Some(Buffers::Lossy) => "no class is lossless: no frame waits for another's buffer".into(),
        Some(Buffers::Lossless(kinds)) => {
            let ports: usize = kinds.iter().map(|kind| kind.ports.len()).sum();
            let short = kinds.iter().filter(|kind| !kind.suffices());
            match short.map(|kind| kind.ports.len()).sum::<usize>() {
                0 => format!("enough at all {ports} ports"),
                short => format!("TOO LITTLE at {short} of {ports} ports"),
            }
        }
    }
}

/// Writes the kinds of ports with their needs, and the terms of that sum.
pub(super) fn write(kinds: &[Kind], out: &mut String) -> std::fmt::Result {
    writeln!(out, "\nheadroom of each lossless priority at")?;
    for kind in kinds {
        let (count, first) = (kind.ports.len(), &kind.ports[..kind.ports.len().min(NAMED)]);
        let more =
            if count > NAMED { format!(" and {} more", count - NAMED) } else { String::new() };
        let to = if kind.is_host { "host" } else { "switch" };
        let (needed, has) = (kind.needed.0, kind.configured.0);
        let verdict = match has.checked_sub(needed) {
            Some(_) => "enough".into(),
            None => format!("{} B TOO LITTLE", needed - has),
        };
        let formula = &kind.formula;
        writeln!(
            out,
            "  {}{more} (to a {to}, {}, {} of cable): needs {needed} B, has {has} B: {verdict}",
            first.join(", "),
            rates(formula),
            span_text(formula.cable)
        )?;
        writeln!(out, "    {}", sum(kind))?;
        match kind.searched {
            Searched { runs: 0, .. } => writeln!(out, "    too much is in flight to simulate it")?,
            Searched { runs, most } => {
                writeln!(out, "    the most that {runs} simulated worst cases used: {} B", most.0)?;
            }
        }
        if !kind.honours_pause {
            writeln!(out, "    dcb.hosts is false: NOTHING BOUNDS what comes from hosts")?;
        }
        if kind.quanta.0 > kind.quanta.1 {
            let (least, has) = kind.quanta;
            writeln!(
                out,
                "    a pause of {has} quanta ends before it can be refreshed: TOO SHORT, {least} \
                 or more, twice the longest frame, would do"
            )?;
        }
    }
    Ok(())
}

/// Returns the rate of the link, or the range of rates that it ever has.
fn rates(formula: &Headroom) -> String {
    if formula.slowest == formula.rate {
        formula.rate.to_string()
    } else {
        format!("{} to {}", formula.slowest, formula.rate)
    }
}

/// Returns the sum in numbers: `1518 B that trigger XOFF + 1518/1542 of (12336 bit frame that the
/// port has begun + ...)`.
fn sum(kind: &Kind) -> String {
    let frame = frame_bytes(&kind.formula).0;
    let term = |term: Term| {
        let times = if term.times > 1 { format!("{} x ", term.times) } else { String::new() };
        format!("{times}{} bit {}", term.bits, term.name)
    };
    let terms: Vec<String> = kind.formula.terms().map(term).into();
    format!(
        "= {frame} B frame that triggers XOFF + {frame}/{} of ({})",
        frame + 24,
        terms.join(" + ")
    )
}
