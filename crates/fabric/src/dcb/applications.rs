//! Priorities of applications, from the file to agents and to DCBX. Refuses contradictions, and
//! applications that the DCBX version of the switches cannot encode or has no room for.

use crate::error::Problem;
use crate::file::{self, ApplicationId};
use crate::names::priority;
use axon_dcbx::{Mode, cee, cee_can_carry};
use axon_switch::agent::rules;
use axon_wire::dcbx::ieee::{self, Application, Selector};

/// Reads `dcb.applications`, which agents at hosts' edges apply.
pub(super) fn of_hosts(asked: &[String]) -> Result<Vec<Application>, Problem> {
    let mut rules: Vec<Application> = Vec::with_capacity(asked.len());
    for (index, text) in asked.iter().enumerate() {
        let key = format!("dcb.applications[{index}]");
        let Ok(rule) = rules::parse(text) else {
            let expected = "KIND:NUMBER=PRIORITY with tcp, udp, port, dscp (0 to 63) or ethertype \
                            (0x600 and more), or default=PRIORITY";
            return Err(Problem::new(key, format!("`{text}` is not a rule"), expected));
        };
        add(&mut rules, rule, |place| format!("dcb.applications[{place}]"))?;
    }
    Ok(rules)
}

/// Adds an application; refuses one that is listed already. `key` returns the key of each by its
/// index.
fn add(
    known: &mut Vec<Application>,
    new: Application,
    key: impl Fn(usize) -> String,
) -> Result<(), Problem> {
    if let Some(place) = known.iter().position(|before| before.is_about_same(&new)) {
        let has = known[place].priority;
        let what = format!("{} is the same application, with priority {has}", key(place));
        return Err(Problem::new(key(known.len()), what, "each kind and number once"));
    }
    known.push(new);
    Ok(())
}

/// Returns the applications that switches advertise: `dcb.applications`, which agents may learn
/// from DCBX, and after them `dcb.dcbx.applications`.
pub(super) fn all(
    of_hosts: &[Application],
    asked: &[file::Application],
) -> Result<Vec<Application>, Problem> {
    let mut all = of_hosts.to_vec();
    for one in asked {
        let key = |place| key(place, of_hosts.len());
        let new = written(&key(all.len()), one)?;
        add(&mut all, new, key)?;
    }
    Ok(all)
}

/// Refuses applications that switches cannot advertise in the DCBX version set at `says`. The first
/// `of_hosts` are those of `dcb.applications`.
pub(super) fn check(
    all: &[Application],
    of_hosts: usize,
    (mode, says): (Mode, &str),
) -> Result<(), Problem> {
    let most = match mode {
        Mode::Ieee => ieee::APPLICATIONS_MAX,
        Mode::Cee | Mode::Auto => cee::APPLICATIONS_MAX,
    };
    if all.len() > most {
        let what = format!("there are {} in all", all.len());
        let form = if mode == Mode::Ieee { "the standard's TLV" } else { "CEE's TLV" };
        let expected = format!("at most {most}, for which {form} has room");
        return Err(Problem::new(key(most, of_hosts), what, expected));
    }
    match all.iter().position(|one| mode == Mode::Cee && !cee_can_carry(one)) {
        None => Ok(()),
        Some(place) => {
            let what = format!("CEE, which {says} asks for, cannot express it");
            let expected = "ethertype, or port, which is of TCP and UDP alike, or another mode";
            Err(Problem::new(key(place, of_hosts), what, expected))
        }
    }
}

/// Returns the key of an advertised application, by its index.
fn key(place: usize, of_hosts: usize) -> String {
    match place.checked_sub(of_hosts) {
        None => format!("dcb.applications[{place}]"),
        Some(index) => format!("dcb.dcbx.applications[{index}]"),
    }
}

/// Reads an application of `dcb.dcbx` at this key.
fn written(key: &str, asked: &file::Application) -> Result<Application, Problem> {
    let priority = priority(format!("{key}.priority"), asked.common.priority)?;
    let [id] = &asked.kinds[..] else {
        let what = "it names no application, or more than one";
        return Err(Problem::new(key, what, "one of ethertype, tcp, udp, port, dscp"));
    };
    let (selector, protocol, name, range) = match *id {
        ApplicationId::Ethertype(number) => {
            (Selector::ETHERTYPE, number, "ethertype", 1536..=u16::MAX)
        }
        ApplicationId::Tcp(port) => (Selector::STREAM_PORT, port, "tcp", 0..=u16::MAX),
        ApplicationId::Udp(port) => (Selector::DATAGRAM_PORT, port, "udp", 0..=u16::MAX),
        ApplicationId::Port(port) => (Selector::PORT, port, "port", 0..=u16::MAX),
        ApplicationId::Dscp(number) => (Selector::DSCP, number.into(), "dscp", 0..=63),
    };
    if !range.contains(&protocol) {
        let expected = format!("{} to {}", range.start(), range.end());
        return Err(Problem::new(format!("{key}.{name}"), format!("{protocol} is none"), expected));
    }
    Ok(Application { priority, selector, protocol })
}
