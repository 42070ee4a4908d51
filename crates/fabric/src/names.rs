//! Names of nodes and ports. Ports are Linux devices in the lab, and a device's name has at most 15
//! characters (`IFNAMSIZ` in `linux/if.h`, with its final zero byte).

use crate::error::Problem;
use crate::model::Fabric;
use axon_wire::{PortNo, Priority};

/// Maximum characters of a port's name.
pub(crate) const PORT_NAME_MAX: usize = 15;

/// Returns whether a new Linux device can have this name: the kernel's own rule (`dev_valid_name`),
/// without the per cent sign, which the kernel replaces by a number.
pub fn is_device_name(name: &str) -> bool {
    let refused =
        |byte: u8| matches!(byte, b'/' | b':' | b'%' | 0x0b) || byte.is_ascii_whitespace();
    (1..=PORT_NAME_MAX).contains(&name.len())
        && !matches!(name, "." | "..")
        && !name.bytes().any(refused)
}

/// Returns the name of a node's port: `s1-p0`.
pub fn port_name(node: &str, port: PortNo) -> String {
    format!("{node}-{port}")
}

/// Splits the name of a port: `s1-p0` is port 0 of `s1`. `None` if it is not one.
pub fn split_port(name: &str) -> Option<(&str, PortNo)> {
    let (node, number) = name.rsplit_once("-p")?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let canonical = number == "0" || !number.starts_with('0');
    let port: u16 = number.parse().ok().filter(|_| digits && canonical)?;
    (!node.is_empty() && PortNo(port) != PortNo::CONTROL).then_some((node, PortNo(port)))
}

/// Returns the index of a switch by name.
pub fn switch_index(fabric: &Fabric, name: &str) -> Option<usize> {
    fabric.switches.iter().position(|switch| switch.name == name)
}

/// Returns the index of a host by name.
pub fn host_index(fabric: &Fabric, name: &str) -> Option<usize> {
    fabric.hosts.iter().position(|host| host.name == name)
}

/// Returns the number that a name ends in: 3 of `h3`; `None` without one, or if it exceeds 32 bits.
pub(crate) fn number(name: &str) -> Option<u32> {
    name[name.trim_end_matches(|c: char| c.is_ascii_digit()).len()..].parse().ok()
}

/// Names that a lab has for something else, and where.
const TAKEN: [(&str, &str); 2] = [("localhost", "/etc/hosts"), ("supervisor", "supervisor.log")];

/// Refuses invalid names of nodes: a name starts with a lower-case letter, continues with those,
/// digits and `-`, leaves room for `-p0`, and does not look like a port.
pub(crate) fn check(key: &str, name: &str) -> Result<(), Problem> {
    let expected = "a lower-case letter, then lower-case letters, digits or `-`, at most 12 in \
                    all, and not a port's name such as s1-p0";
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if let Some((_, place)) = TAKEN.iter().find(|(taken, _)| *taken == name) {
        let what = format!("`{name}` means something else in {place} of a lab");
        return Err(Problem::new(key, what, "another name"));
    }
    let good = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(plain)
        && name.len() <= PORT_NAME_MAX - "-p0".len()
        && split_port(name).is_none();
    if good {
        return Ok(());
    }
    Err(Problem::new(key, format!("`{name}` cannot name a node"), expected))
}

/// Refuses invalid names of fabrics, tenants and VLANs; `kind` is what has the name.
pub(crate) fn check_kind(key: impl Into<String>, kind: &str, name: &str) -> Result<(), Problem> {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let starts = name.starts_with(|c: char| c.is_ascii_alphabetic());
    if starts && name.chars().all(plain) && name.len() <= 32 {
        return Ok(());
    }
    let expected = "a letter, then letters, digits or `-`, at most 32 in all";
    Err(Problem::new(key, format!("`{name}` cannot name a {kind}"), expected))
}

/// Returns the index of the host that the file names at `key`.
pub(crate) fn host(
    fabric: &Fabric,
    key: impl Into<String>,
    name: &str,
    expected: &str,
) -> Result<usize, Problem> {
    let problem = || Problem::new(key, format!("there is no host `{name}`"), expected);
    host_index(fabric, name).ok_or_else(problem)
}

/// Returns the priority that the file gives at `key`.
pub(crate) fn priority(key: impl Into<String>, value: u8) -> Result<Priority, Problem> {
    let problem = || Problem::new(key, format!("{value} is not a priority"), "0 to 7");
    Priority::new(value).ok_or_else(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_names_come_apart_as_they_were_put_together() {
        assert_eq!(port_name("s1", PortNo(12)), "s1-p12");
        assert_eq!(split_port("s1-p12"), Some(("s1", PortNo(12))));
        assert_eq!(split_port("spine-p-p0"), Some(("spine-p", PortNo(0))));
        for name in ["s1", "s1-p", "-p1", "s1-p01", "s1-p65535", "s1-p-1", "s1-p+1"] {
            assert_eq!(split_port(name), None, "{name}");
        }
    }

    #[test]
    fn a_name_may_end_in_a_number() {
        assert_eq!([number("h3"), number("rack2-web10"), number("h007")], [3, 10, 7].map(Some));
        assert_eq!([number("web"), number("h3a"), number("h9999999999")], [None; 3]);
    }

    #[test]
    fn names_that_linux_would_not_take_are_refused() {
        assert!(check("", "abcdefghijkl").is_ok());
        assert!(check("", "localhost").is_err() && check("", "supervisor").is_err());
        for name in ["a-name-of-sixteen", "", "t4/../x", "..", "a b", "a:1", "t%d", "a\u{b}"] {
            assert!(!is_device_name(name), "{name:?}");
        }
        assert!(is_device_name("h1-p0") && is_device_name("fifteen-bytes-0"));
        for name in ["abcdefghijklm", "", "1s", "S1", "s_1", "s1-p0", "a/b", "s 1"] {
            assert!(check("", name).is_err(), "{name}");
        }
    }
}
