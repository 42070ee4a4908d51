//! Arguments from Python: addresses, bytes and lookup keys.

use axon_pipeline::key::REACH_BYTES;
use axon_pipeline::{Field, FrameType, Prefix};
use axon_wire::{MacAddr, PortNo};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use std::net::Ipv4Addr;

/// MAC address: six bytes, or text such as `02:00:00:00:00:01` or `020000000001`.
pub(crate) struct Mac(pub(crate) MacAddr);

/// IPv4 address: four bytes, text, or an `ipaddress.IPv4Address`.
pub(crate) struct Ipv4(pub(crate) Ipv4Addr);

/// Bytes, or text that consists of hexadecimal digits.
pub(crate) struct Octets(pub(crate) Vec<u8>);

/// IPv4 prefix: text such as `10.1.0.0/16`, or an `ipaddress.IPv4Network`.
pub(crate) struct Ipv4Prefix(pub(crate) Prefix);

impl<'a, 'py> FromPyObject<'a, 'py> for Mac {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Mac> {
        let bytes = match object.extract::<String>() {
            Ok(text) => hex(&text.replace([':', '-'], "")),
            Err(_) => object.extract().ok(),
        };
        let mac = bytes.and_then(|bytes: Vec<u8>| bytes.try_into().ok());
        let expected = "no MAC: expected 6 bytes, or text as 02:00:00:00:00:01";
        mac.map(|mac| Mac(MacAddr(mac))).ok_or_else(|| PyValueError::new_err(expected))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Ipv4 {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Ipv4> {
        let address = if let Ok(text) = object.extract::<String>() {
            text.parse().ok()
        } else {
            let packed = object.getattr("packed");
            let bytes = match &packed {
                Ok(packed) => packed.extract::<[u8; 4]>(),
                Err(_) => object.extract(),
            };
            bytes.ok().map(Ipv4Addr::from)
        };
        let expected = "no IPv4 address: expected 4 bytes, or text as 10.0.0.1";
        address.map(Ipv4).ok_or_else(|| PyValueError::new_err(expected))
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Octets {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Octets> {
        if let Ok(text) = object.extract::<String>() {
            let expected = "expected bytes, or an even number of hexadecimal digits";
            return hex(&text).map(Octets).ok_or_else(|| PyValueError::new_err(expected));
        }
        object.extract().map(Octets)
    }
}

impl<'a, 'py> FromPyObject<'a, 'py> for Ipv4Prefix {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Ipv4Prefix> {
        let text = object.str()?.to_string();
        let parse = || {
            let (address, length) = text.split_once('/')?;
            Some(Prefix { address: address.parse().ok()?, length: length.parse().ok()? })
        };
        let expected = "no prefix: expected text as 10.1.0.0/16";
        parse().map(Ipv4Prefix).ok_or_else(|| PyValueError::new_err(expected))
    }
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u32>> = text.chars().map(|digit| digit.to_digit(16)).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect())
}

/// Parses a field of a lookup key: `INGRESS` (the paper's `INPORT`), `PRIORITY`, `B12` or `B0-5`.
///
/// # Errors
/// The text is not a field, or a byte is beyond the end of the key.
pub(crate) fn field(text: &str) -> PyResult<Field> {
    match text {
        "INGRESS" | "INPORT" => return Ok(Field::Ingress),
        "PRIORITY" => return Ok(Field::Priority),
        _ => {}
    }
    let parse = || {
        let range = text.strip_prefix('B')?;
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        Some((first.parse::<u32>().ok()?, last.parse::<u32>().ok()?))
    };
    let Some((first, last)) = parse() else {
        let expected = "expected INGRESS, PRIORITY, or bytes as B12 or B0-5";
        return Err(PyValueError::new_err(format!("no field {text:?}: {expected}")));
    };
    let byte = |byte: u32| {
        let reach = REACH_BYTES - 1;
        let beyond = || PyValueError::new_err(format!("{text}: a key ends at byte {reach}"));
        u8::try_from(byte).map_err(|_| beyond())
    };
    Ok(Field::Bytes { first: byte(first)?, last: byte(last)? })
}

/// Returns the frame type with this name.
///
/// # Errors
/// No frame type has this name.
pub(crate) fn frame_type(name: &str) -> PyResult<FrameType> {
    let found = FrameType::ALL.into_iter().find(|frame_type| frame_type.name() == name);
    found.ok_or_else(|| {
        let names = FrameType::ALL.map(FrameType::name).join(", ");
        PyValueError::new_err(format!("no type of frames {name:?}: expected one of {names}"))
    })
}

/// Converts a port number.
///
/// # Errors
/// The number does not fit in 16 bits.
pub(crate) fn port(number: u32) -> PyResult<PortNo> {
    let number = u16::try_from(number);
    number.map(PortNo).map_err(|_| PyTypeError::new_err("no port: expected 0 to 65534"))
}
