//! Changes of tables as operators write them, and as `axon table show` prints entries:
//!
//! ```text
//! udlk 1 type ipv4 ingress priority B22-25 B34-41
//! interface 3 port 1 destination 02:00:00:00:00:01 source 02:00:00:00:00:02
//! group 2 interfaces 1,2,3
//! tunnel 1 source 10.0.0.1 destination 10.0.0.2 protocol 4 ttl 64 shim 00000000
//! tcam 5 udlk 1 value 0a000001 mask ffffffff ACTION
//! mac 02:00:00:00:00:01 bridge 1 ACTION
//! ipv4 10.0.0.1 ACTION
//! mpls 100 ACTION
//! prefix 10.0.0.0/24 ACTION
//! miss ACTION
//! port 0 bridge 1 routed no learn yes axon no
//!
//! ACTION: where it goes (drop, cpu, port N, interface N, group N, spread N, or for the TCAM only
//! tables, which is where the other entries say), then changes in their order
//! (decrement-ttl, dscp N, push LABEL, swap LABEL, pop, tunnel N, untunnel BYTES,
//! destination MAC, source MAC, axon-push 1.2.cpu, axon-hop, axon-error, axon-strip), then
//! mirror cpu or mirror port N
//! ```

use super::words::{Words, changes};
use anyhow::{Context, Result, bail};
use axon_pipeline::{
    Action, Change, EntryName, Field, FrameType, Group, Interface, Label, MacKey, Mirror, Modify,
    PortOptions, Prefix, TableName, Target, TcamEntry, Tunnel, Udlk, UdlkId,
};
use axon_wire::{Hops, Layer, PortNo, Route};

const NUMBER: &str = "a number";
const ENTRY: &str = "udlk, interface, group, tunnel, tcam, mac, ipv4, mpls, prefix, miss or port";

/// Parses the changes in these words.
///
/// # Errors
/// The words are not changes; the found and the expected word.
pub(super) fn to_set(words: &[&str]) -> Result<Vec<Change>> {
    changes(words).map(|mut words| change(&mut words)).collect()
}

/// Returns the changes that remove the entries that these words name.
///
/// # Errors
/// The words name no entries.
pub(super) fn to_clear(words: &[&str]) -> Result<Vec<Change>> {
    let removal = |mut words: Words<'_>| {
        let name = entry(&mut words)?;
        words.end()?;
        Ok(name.removal())
    };
    changes(words).map(removal).collect()
}

/// Returns a table by its name.
pub(super) fn table(name: &str) -> Option<TableName> {
    TableName::ALL.into_iter().find(|table| table.name() == name)
}

fn entry(words: &mut Words<'_>) -> Result<EntryName> {
    Ok(match words.next(ENTRY)? {
        "udlk" => EntryName::Udlk(UdlkId(words.parsed("the number of a key")?)),
        "interface" => EntryName::Interface(words.parsed(NUMBER)?),
        "group" => EntryName::Group(words.parsed(NUMBER)?),
        "tunnel" => EntryName::Tunnel(words.parsed(NUMBER)?),
        "tcam" => EntryName::Tcam(words.parsed("an index")?),
        "mac" => {
            let mac = words.mac()?;
            let bridge = if words.takes("bridge") { words.parsed(NUMBER)? } else { 0 };
            EntryName::Mac(MacKey { bridge, mac })
        }
        "ipv4" => EntryName::Ipv4(words.parsed("an IPv4 address")?),
        "mpls" => EntryName::Mpls(words.parsed("a label")?),
        "prefix" => {
            const EXPECTED: &str = "a prefix such as 10.0.0.0/24";
            let word = words.next(EXPECTED)?;
            let (address, length) = word
                .split_once('/')
                .with_context(|| format!("{}: found {word}; expected {EXPECTED}", words.text()))?;
            let address = words.read(address, EXPECTED)?;
            EntryName::Prefix(Prefix { address, length: words.read(length, EXPECTED)? })
        }
        "miss" => EntryName::Miss,
        "port" => EntryName::Port(PortNo(words.parsed("a port")?)),
        other => bail!("{}: found {other}; expected {ENTRY}", words.text()),
    })
}

fn change(words: &mut Words<'_>) -> Result<Change> {
    let change = match entry(words)? {
        EntryName::Udlk(id) => Change::Udlk(id, Some(udlk(words)?)),
        EntryName::Interface(number) => Change::Interface(number, Some(interface(words)?)),
        EntryName::Group(number) => Change::Group(number, Some(group(words)?)),
        EntryName::Tunnel(number) => Change::Tunnel(number, Some(tunnel(words)?)),
        EntryName::Tcam(index) => Change::Tcam(index, Some(tcam(words)?)),
        EntryName::Mac(key) => Change::Mac(key, Some(action(words)?)),
        EntryName::Ipv4(address) => Change::Ipv4(address, Some(action(words)?)),
        EntryName::Mpls(label) => Change::Mpls(label, Some(action(words)?)),
        EntryName::Prefix(prefix) => Change::Prefix(prefix, Some(action(words)?)),
        EntryName::Miss => Change::Miss(Some(action(words)?)),
        EntryName::Port(port) => Change::Port(port, Some(port_options(words)?)),
    };
    words.end()?;
    Ok(change)
}

fn udlk(words: &mut Words<'_>) -> Result<Udlk> {
    const EXPECTED: &str = "ingress, priority, or bytes such as B22-25";
    let frame_type = match words.takes("type") {
        false => None,
        true => {
            let names = FrameType::ALL.map(FrameType::name).join(", ");
            let word = words.next(&names)?;
            let found = FrameType::ALL.into_iter().find(|known| known.name() == word);
            Some(found.with_context(|| {
                format!("{}: found type {word}; expected one of {names}", words.text())
            })?)
        }
    };
    let mut fields = Vec::new();
    while let Some(word) = words.take() {
        fields.push(match (word, word.strip_prefix('B')) {
            ("ingress", _) => Field::Ingress,
            ("priority", _) => Field::Priority,
            (_, Some(range)) => {
                let (first, last) = range.split_once('-').unwrap_or((range, range));
                let (first, last) = (words.read(first, EXPECTED)?, words.read(last, EXPECTED)?);
                Field::Bytes { first, last }
            }
            _ => bail!("{}: found {word}; expected {EXPECTED}", words.text()),
        });
    }
    Ok(Udlk { frame_type, fields })
}

fn interface(words: &mut Words<'_>) -> Result<Interface> {
    words.expect("port")?;
    let port = PortNo(words.parsed("a port")?);
    let destination = words.takes("destination").then(|| words.mac()).transpose()?;
    let source = words.takes("source").then(|| words.mac()).transpose()?;
    Ok(Interface { port, destination, source })
}

fn group(words: &mut Words<'_>) -> Result<Group> {
    words.expect("interfaces")?;
    let list = words.next("interfaces such as 1,2,3, or - for none")?;
    let all = list.split(',').filter(|_| list != "-");
    let interfaces = all.map(|one| words.read(one, "interfaces such as 1,2,3"));
    Ok(Group { interfaces: interfaces.collect::<Result<Vec<u16>>>()? })
}

fn tunnel(words: &mut Words<'_>) -> Result<Tunnel> {
    const ADDRESS: &str = "an IPv4 address";
    words.expect("source")?;
    let source = words.parsed(ADDRESS)?;
    words.expect("destination")?;
    let destination = words.parsed(ADDRESS)?;
    words.expect("protocol")?;
    let protocol = words.parsed("an IP protocol, 0 to 255")?;
    words.expect("ttl")?;
    let ttl = words.parsed("a TTL, 1 to 255")?;
    let shim = if words.takes("shim") { words.hex()? } else { Vec::new() };
    Ok(Tunnel { source, destination, protocol, ttl, shim })
}

fn tcam(words: &mut Words<'_>) -> Result<TcamEntry> {
    words.expect("udlk")?;
    let udlk = UdlkId(words.parsed("the number of a key")?);
    words.expect("value")?;
    let value = words.hex()?;
    let mask = if words.takes("mask") { words.hex()? } else { vec![0xff; value.len()] };
    Ok(TcamEntry { udlk, value, mask, action: action(words)? })
}

fn port_options(words: &mut Words<'_>) -> Result<PortOptions> {
    let mut options = PortOptions::default();
    while let Some(word) = words.take() {
        match word {
            "bridge" => options.bridge = words.parsed(NUMBER)?,
            "routed" => options.routed = yes(words)?,
            "learn" => options.learn = yes(words)?,
            "axon" => options.axon = yes(words)?,
            _ => bail!("{}: found {word}; expected bridge, routed, learn or axon", words.text()),
        }
    }
    Ok(options)
}

fn yes(words: &mut Words<'_>) -> Result<bool> {
    match words.next("yes or no")? {
        "yes" => Ok(true),
        "no" => Ok(false),
        other => bail!("{}: found {other}; expected yes or no", words.text()),
    }
}

fn action(words: &mut Words<'_>) -> Result<Action> {
    const TARGET: &str = "drop, cpu, port N, interface N, group N, spread N or tables";
    let target = match words.next(TARGET)? {
        "drop" => Target::Drop,
        "cpu" => Target::Cpu,
        "port" => Target::Port(PortNo(words.parsed("a port")?)),
        "interface" => Target::Interface(words.parsed(NUMBER)?),
        "group" => Target::Group(words.parsed(NUMBER)?),
        "spread" => Target::Spread(words.parsed(NUMBER)?),
        "tables" => Target::Tables,
        other => bail!("{}: found {other}; expected {TARGET}", words.text()),
    };
    let mut action = Action::from(target);
    while let Some(word) = words.take() {
        if word == "mirror" {
            action.mirror = Some(match words.next("cpu or port N")? {
                "cpu" => Mirror::Cpu,
                "port" => Mirror::Port(PortNo(words.parsed("a port")?)),
                other => bail!("{}: found {other}; expected cpu or port N", words.text()),
            });
            break;
        }
        action.modify.push(modify(word, words)?);
    }
    Ok(action)
}

fn modify(word: &str, words: &mut Words<'_>) -> Result<Modify> {
    Ok(match word {
        "decrement-ttl" => Modify::DecrementTtl,
        "dscp" => Modify::SetDscp(words.parsed("a DSCP, 0 to 63")?),
        "push" => Modify::MplsPush(Label(words.parsed("a label")?)),
        "swap" => Modify::MplsSwap(Label(words.parsed("a label")?)),
        "pop" => Modify::MplsPop,
        "tunnel" => Modify::TunnelPush(words.parsed(NUMBER)?),
        "untunnel" => {
            Modify::TunnelPop { shim_bytes: words.parsed("bytes behind the outer header")? }
        }
        "destination" => Modify::SetDestination(words.mac()?),
        "source" => Modify::SetSource(words.mac()?),
        "axon-push" => Modify::AxonPush(route(words)?),
        "axon-hop" => Modify::AxonHop,
        "axon-error" => Modify::AxonError,
        "axon-strip" => Modify::AxonStrip,
        other => bail!(
            "{}: found {other}; expected decrement-ttl, dscp, push, swap, pop, tunnel, untunnel, \
             destination, source, axon-push, axon-hop, axon-error, axon-strip or mirror",
            words.text()
        ),
    })
}

/// Parses a route such as `1.2.cpu`, or `1.2.cpu/3` in layer 3.
fn route(words: &mut Words<'_>) -> Result<Route> {
    const EXPECTED: &str = "hops such as 1.2.cpu";
    let word = words.next(EXPECTED)?;
    let (hops, layer) = word.split_once('/').unwrap_or((word, "0"));
    let hop = |hop: &str| match hop {
        "cpu" => Ok(PortNo::CONTROL),
        number => Ok(PortNo(words.read(number, EXPECTED)?)),
    };
    let hops: Result<Vec<PortNo>> = hops.split('.').map(hop).collect();
    let layer: u8 = words.read(layer, "a layer, 0 to 7")?;
    let layer = Layer::try_from(layer).ok();
    let layer = layer.with_context(|| format!("{}: expected a layer, 0 to 7", words.text()))?;
    Ok(Route { layer, ..Route::from(Hops(hops?)) })
}
