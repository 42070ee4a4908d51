//! Text form of keys: a line of 64 hex digits for a master key, or for the keys of a switch its
//! number in 16 hex digits and both keys in 64 each. A second line is a key that is also accepted.

use crate::error::Problem;
use axon_link::keys::of_switch;
use axon_node::keys::{KEY_BYTES, Key};
use axon_node::{Keys, Secret, SwitchKeys};
use axon_wire::NodeId;
use std::fmt::Write;

/// Default master key of a fabric; published, for labs only.
pub const LAB_KEY: Key = *b"axon lab key: anyone can read it";

const EXPECTED: &str = "64 hex digits (32 bytes)";

/// Parses the keys of a fabric; without text, returns the lab's key.
///
/// # Errors
/// A problem with `key`: invalid, or more than two keys.
pub(crate) fn parse(text: Option<&str>) -> Result<Keys, Problem> {
    let Some(text) = text else { return Ok(LAB_KEY.into()) };
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let current = secret(lines.next().unwrap_or_default())?;
    let other = lines.next().map(secret).transpose()?;
    if lines.next().is_some() {
        let expected = "one key, or while keys are changed two, each on a line";
        return Err(Problem::new("key", "there are more than two keys", expected));
    }
    Ok(Keys { current, other })
}

fn secret(line: &str) -> Result<Secret, Problem> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [node, link, control] => Ok(Secret::Switch(SwitchKeys {
            node: NodeId(u64::from_be_bytes(hex(node, "16 hex digits, the number of a switch")?)),
            link: hex(link, EXPECTED)?,
            control: hex(control, EXPECTED)?,
        })),
        _ => Ok(Secret::Master(hex::<KEY_BYTES>(line, EXPECTED)?)),
    }
}

fn hex<const BYTES: usize>(text: &str, expected: &str) -> Result<[u8; BYTES], Problem> {
    if text.len() != 2 * BYTES {
        let what = format!("it has {} characters", text.chars().count());
        return Err(Problem::new("key", what, expected));
    }
    let mut bytes = [0; BYTES];
    for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
        let high = char::from(digits[0]).to_digit(16);
        let low = char::from(digits[1]).to_digit(16);
        let (Some(high), Some(low)) = (high, low) else {
            return Err(Problem::new("key", "not all of it is hex", expected));
        };
        *byte = (high << 4 | low) as u8;
    }
    Ok(bytes)
}

/// Returns the text of keys, as in a key file.
pub fn key_text(keys: &Keys) -> String {
    let mut text = String::new();
    for secret in keys.secrets() {
        match secret {
            Secret::Master(key) => digits(&mut text, key),
            Secret::Switch(SwitchKeys { node, link, control }) => {
                digits(&mut text, &node.0.to_be_bytes());
                text.push(' ');
                digits(&mut text, link);
                text.push(' ');
                digits(&mut text, control);
            }
        }
        text.push('\n');
    }
    text
}

fn digits(text: &mut String, bytes: &[u8]) {
    for byte in bytes {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
}

/// Returns whether one of the keys is the published lab key, or is derived from it.
pub fn has_lab_key(keys: &Keys) -> bool {
    keys.secrets().any(|secret| match secret {
        Secret::Master(key) => *key == LAB_KEY,
        Secret::Switch(keys) => *keys == of_switch(&LAB_KEY, keys.node),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_are_written() {
        let node = NodeId(0x1234);
        let switch = Secret::Switch(SwitchKeys { node, link: [1; 32], control: [0xfe; 32] });
        for current in [Secret::Master([7; 32]), switch.clone()] {
            for other in [None, Some(Secret::Master([8; 32])), Some(switch.clone())] {
                let keys = Keys { current: current.clone(), other };
                assert_eq!(parse(Some(&key_text(&keys))), Ok(keys));
            }
        }
        assert!(has_lab_key(&parse(None).unwrap()));
        let second = Keys { other: Some(Secret::Master(LAB_KEY)), ..Keys::from([7; 32]) };
        assert!(has_lab_key(&second) && !has_lab_key(&Keys::from([7; 32])));
        let derived =
            |master| Keys { current: Secret::Switch(of_switch(&master, node)), other: None };
        assert!(has_lab_key(&derived(LAB_KEY)) && !has_lab_key(&derived([7; 32])));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let (master, node) = ("ab".repeat(32), "0000000000000001");
        for text in [
            String::new(),
            master[1..].into(),
            format!("{master} {master}"),
            format!("{node} {master}"),
            format!("1 {master} {master}"),
            format!("{node} {master} {}", "zz".repeat(32)),
            format!("{master}\n{master}\n{master}"),
            format!("{master}\n# {master}"),
            "é".repeat(32),
        ] {
            assert!(parse(Some(&text)).is_err(), "{text}");
        }
        assert!(parse(Some(&format!("\n {node} {master} {master} \n\n{master}\n"))).is_ok());
    }
}
