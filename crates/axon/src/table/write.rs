//! Entries of tables as words, in the syntax of [`read`](super::read).

use axon_pipeline::{
    Action, Change, EntryName, Field, Group, Interface, MacKey, PortOptions, TcamEntry, Tunnel,
    Udlk,
};
use std::fmt::Write;

/// Returns the words of the change that makes an entry; of one that removes it, its name.
pub(super) fn text(change: &Change) -> String {
    let name = match change.entry() {
        // The default bridge is left out.
        EntryName::Mac(MacKey { bridge: 0, mac }) => format!("mac {mac}"),
        EntryName::Port(port) => format!("port {}", port.0),
        other => other.to_string(),
    };
    let rest = match change {
        Change::Udlk(_, udlk) => udlk.as_ref().map(key),
        Change::Interface(_, one) => one.as_ref().map(interface),
        Change::Group(_, group) => group.as_ref().map(members),
        Change::Tunnel(_, one) => one.as_ref().map(tunnel),
        Change::Tcam(_, entry) => entry.as_ref().map(tcam),
        Change::Mac(_, entry)
        | Change::Ipv4(_, entry)
        | Change::Mpls(_, entry)
        | Change::Prefix(_, entry)
        | Change::Miss(entry) => entry.as_ref().map(action),
        Change::Port(_, options) => options.as_ref().map(port_options),
    };
    name + &rest.unwrap_or_default()
}

fn key(udlk: &Udlk) -> String {
    let mut text = String::new();
    if let Some(frame_type) = udlk.frame_type {
        let _ = write!(text, " type {frame_type}");
    }
    for field in &udlk.fields {
        // Writing to a String cannot fail.
        let _ = match field {
            Field::Ingress => write!(text, " ingress"),
            Field::Priority => write!(text, " priority"),
            Field::Bytes { first, last } => write!(text, " B{first}-{last}"),
        };
    }
    text
}

fn interface(one: &Interface) -> String {
    let mut text = format!(" port {}", one.port.0);
    for (word, mac) in [("destination", one.destination), ("source", one.source)] {
        if let Some(mac) = mac {
            let _ = write!(text, " {word} {mac}");
        }
    }
    text
}

fn members(group: &Group) -> String {
    let all: Vec<String> = group.interfaces.iter().map(u16::to_string).collect();
    format!(" interfaces {}", if all.is_empty() { "-".into() } else { all.join(",") })
}

fn tunnel(one: &Tunnel) -> String {
    let Tunnel { source, destination, protocol, ttl, shim } = one;
    let mut text =
        format!(" source {source} destination {destination} protocol {protocol} ttl {ttl}");
    if !shim.is_empty() {
        let _ = write!(text, " shim {}", hex(shim));
    }
    text
}

fn tcam(entry: &TcamEntry) -> String {
    let mut text = format!(" udlk {} value {}", entry.udlk, hex(&entry.value));
    if entry.mask.iter().any(|byte| *byte != 0xff) {
        let _ = write!(text, " mask {}", hex(&entry.mask));
    }
    text + &action(&entry.action)
}

fn port_options(options: &PortOptions) -> String {
    let yes = |is: bool| if is { "yes" } else { "no" };
    let PortOptions { bridge, routed, learn, axon } = *options;
    let (routed, learn, axon) = (yes(routed), yes(learn), yes(axon));
    format!(" bridge {bridge} routed {routed} learn {learn} axon {axon}")
}

/// Returns the words of an action, after a space.
fn action(action: &Action) -> String {
    format!(" {action}")
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::read::{to_clear, to_set};

    fn read(text: &str) -> Vec<Change> {
        let words: Vec<&str> = text.split_whitespace().collect();
        to_set(&words).unwrap_or_else(|error| panic!("{text}: {error:#}"))
    }

    #[test]
    fn an_entry_of_every_table_is_read_as_it_is_written() {
        for line in [
            "udlk 1 type ipv4 ingress priority B22-25 B34-41",
            "udlk 2 B0-5",
            "interface 3 port 1",
            "interface 4095 port 2 destination 02:00:00:00:00:01 source 02:00:00:00:00:02",
            "group 2 interfaces 1,2,3",
            "group 3 interfaces -",
            "tunnel 1 source 10.0.0.1 destination 10.0.0.2 protocol 4 ttl 64",
            "tunnel 2 source 10.0.0.1 destination 10.0.0.2 protocol 99 ttl 1 shim 00ff00ff",
            "tcam 5 udlk 1 value 000001020001 mask ffffff000000 interface 3",
            "tcam 6 udlk 1 value 0102 drop",
            "tcam 7 udlk 1 value 0102 tables mirror port 3",
            "mac 02:00:00:00:00:01 port 4",
            "mac 02:00:00:00:00:01 bridge 7 group 1 mirror port 9",
            "ipv4 10.0.0.1 spread 2 decrement-ttl dscp 46",
            "mpls 1048575 interface 1 swap 17",
            "prefix 10.0.0.0/24 interface 1 push 5 push 6 mirror cpu",
            "prefix 0.0.0.0/0 cpu pop tunnel 3 untunnel 8",
            "miss drop destination 02:00:00:00:00:09 source 02:00:00:00:00:08",
            "miss port 1 axon-push 1.2.cpu/3 axon-hop axon-error axon-strip",
            "port 0 bridge 3 routed no learn yes axon no",
            "port 1 bridge 0 routed yes learn no axon yes",
        ] {
            let [change] = &read(line)[..] else { panic!("{line}: one change") };
            assert_eq!(text(change), line);
        }
    }

    #[test]
    fn several_changes_are_one_transaction_and_their_names_remove_them() {
        let changes = read("interface 3 port 1 and tcam 5 udlk 1 value 00 interface 3");
        assert_eq!(changes.len(), 2);
        let words = ["interface", "3", "and", "tcam", "5", "and", "mac", "02:00:00:00:00:01"];
        let names: Vec<String> = to_clear(&words).unwrap().iter().map(text).collect();
        assert_eq!(names, ["interface 3", "tcam 5", "mac 02:00:00:00:00:01"]);
    }

    #[test]
    fn what_is_no_change_is_refused_with_what_was_expected() {
        for (line, says) in [
            ("", "a change: it ends too soon; expected udlk, interface,"),
            ("tcam 5", "tcam 5: it ends too soon; expected udlk"),
            ("tcam 65536 udlk 1 value 00 drop", "found 65536; expected an index"),
            ("tcam 5 udlk 1 value 0 drop", "found 0; expected bytes in hexadecimal"),
            ("tcam 5 udlk 1 value +1 drop", "found +1; expected bytes in hexadecimal"),
            ("mac 02:00:00:00:01 drop", "found 02:00:00:00:01; expected a MAC address"),
            ("mac 02:00:00:00:00:01 fly", "found fly; expected drop, cpu, port N"),
            ("ipv4 10.0.0.1 drop drop", "found drop; expected decrement-ttl"),
            ("prefix 10.0.0.0 drop", "found 10.0.0.0; expected a prefix such as"),
            ("miss drop mirror cpu cpu", "found cpu; expected the end, or `and`"),
            ("udlk 1 22-25", "found 22-25; expected ingress, priority, or bytes"),
            ("udlk 1 B300", "found 300; expected ingress, priority, or bytes"),
            ("port 0 learn maybe", "found maybe; expected yes or no"),
            ("fan 1", "found fan; expected udlk, interface"),
            ("miss drop and", "a change: it ends too soon"),
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let error = to_set(&words).unwrap_err().to_string();
            assert!(error.contains(says), "{line}: {error}");
        }
    }
}
