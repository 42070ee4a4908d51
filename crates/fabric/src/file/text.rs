//! Values and shapes of the file that serde does not support: subnets, MACs, error rates, and short
//! forms.

use crate::units::{SpanText, text_value};
use axon_plane::shared_buffer::Share;
use axon_wire::MacAddr;
use ipnet::Ipv4Net;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::net::Ipv4Addr;

/// Default duration of a lease.
pub(super) fn an_hour() -> SpanText {
    SpanText(axon_wire::Span::from_secs(3600))
}

const SUBNET_EXPECTED: &str = "a subnet such as 10.0.0.0/16, with a prefix of 8 to 30 bits and \
                               no bits set behind it";

/// The standard library parses the address, since ipnet's own parser accepts `010.0.0.0`.
fn subnet(text: &str) -> Result<Ipv4Net, &'static str> {
    let (network, prefix) = text.split_once('/').ok_or(SUBNET_EXPECTED)?;
    let network: Ipv4Addr = network.parse().map_err(|_| SUBNET_EXPECTED)?;
    let prefix_len: u8 = prefix.parse().map_err(|_| SUBNET_EXPECTED)?;
    let subnet = Ipv4Net::new(network, prefix_len).map_err(|_| SUBNET_EXPECTED)?;
    let valid = (8..=30).contains(&prefix_len) && subnet == subnet.trunc();
    valid.then_some(subnet).ok_or(SUBNET_EXPECTED)
}

const MAC_EXPECTED: &str = "a unicast MAC such as 02:00:00:00:00:01";

pub(crate) fn mac(text: &str) -> Result<MacAddr, &'static str> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        let part = parts.next().filter(|part| part.len() == 2).ok_or(MAC_EXPECTED)?;
        *byte = u8::from_str_radix(part, 16).map_err(|_| MAC_EXPECTED)?;
    }
    let mac = MacAddr(bytes);
    (parts.next().is_none() && mac.is_unicast()).then_some(mac).ok_or(MAC_EXPECTED)
}

text_value!(
    /// Subnet in the file, with a prefix of 8 to 30 bits and no host bits set.
    SubnetText(Ipv4Net), subnet, SUBNET_EXPECTED, r"^[0-9]+(\.[0-9]+){3}/[0-9]+$"
);
text_value!(
    /// MAC address in the file.
    MacText(MacAddr), mac, MAC_EXPECTED, r"^[0-9a-fA-F]{2}(:[0-9a-fA-F]{2}){5}$"
);

const BIT_ERRORS_EXPECTED: &str =
    "a share of bits such as 1e-12, 0 to 0.001, in whole multiples of 1e-15";

/// Parses a share of bits as bits per 10^15: `1e-12`, `0.0000015`, `2.5e-9`, `0`.
///
/// The digits without their point form a whole number; the digits after the point and the exponent
/// give the power of ten that scales it. A digit below 10^-15 is refused, never rounded.
pub(crate) fn bit_errors(text: &str) -> Result<u64, &'static str> {
    parse_bit_errors(text).filter(|&bits| bits <= BIT_ERRORS_MAX).ok_or(BIT_ERRORS_EXPECTED)
}

/// Maximum share of flipped bits, per 10^15: one bit in a thousand.
pub(crate) const BIT_ERRORS_MAX: u64 = 1_000_000_000_000;

fn parse_bit_errors(text: &str) -> Option<u64> {
    let (number, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let exponent: i32 = exponent.parse().ok().filter(|e| (-30..=30).contains(e))?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain || digits.len() > 18 {
        return None;
    }
    let digits: u64 = digits.parse().ok()?;
    let power = 15 + exponent - fraction.len() as i32;
    let scale = 10u64.checked_pow(power.unsigned_abs().min(20));
    match scale {
        _ if digits == 0 => Some(0),
        Some(scale) if power >= 0 => digits.checked_mul(scale),
        Some(scale) => digits.is_multiple_of(scale).then_some(digits / scale),
        None => None,
    }
}

text_value!(
    /// Share of flipped bits in the file, per 10^15.
    BitErrorsText(u64), bit_errors, BIT_ERRORS_EXPECTED, r"^[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$"
);

const SHARE_EXPECTED: &str =
    "a part of what is free, 1/128, 1/64, ..., 1/2, 1, 2, 4 or 8, or a size such as 20kB";

/// Parses a share: a power of two, or a size.
fn share(text: &str) -> Result<Share, &'static str> {
    let text = text.trim();
    let shift = match text.split_once('/') {
        Some(("1", below)) => below.parse::<u32>().ok().filter(|below| *below > 1),
        Some(_) => None,
        None => text.parse::<u32>().ok(),
    };
    let power = shift.filter(|number| number.is_power_of_two()).map(u32::trailing_zeros);
    match (text.contains('/'), power) {
        (true, Some(power @ 1..=7)) => Ok(Share::Dynamic { shift: -(power as i8) }),
        (false, Some(power @ 0..=3)) => Ok(Share::Dynamic { shift: power as i8 }),
        _ => crate::units::bytes(text).map(Share::Static).map_err(|_| SHARE_EXPECTED),
    }
}

text_value!(
    /// Share of a pool in the file.
    ShareText(Share), share, SHARE_EXPECTED,
    r"^(1/(2|4|8|16|32|64|128)|1|2|4|8|[0-9]+(\.[0-9]+)? *(B|kB|KiB|MB|MiB|GB|GiB))$"
);

const PERCENT_EXPECTED: &str = "a whole number of percent such as 95%";

fn percent(text: &str) -> Result<u8, &'static str> {
    let digits = text.strip_suffix('%').ok_or(PERCENT_EXPECTED)?;
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let number = digits.parse().ok().filter(|number| plain && *number <= 100);
    number.ok_or(PERCENT_EXPECTED)
}

text_value!(
    /// Percentage in the file, 0 to 100.
    PercentText(u8), percent, PERCENT_EXPECTED, r"^[0-9]{1,3}%$"
);

/// Either the short form (text or a list) or a mapping with more keys.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub enum ShortOr<S, L> {
    /// The short form, one value.
    Short(S),
    /// The long form, with all keys.
    Long(L),
}

struct ShortOrVisitor<S, L>(PhantomData<(S, L)>);

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Visitor<'de> for ShortOrVisitor<S, L> {
    type Value = ShortOr<S, L>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name, a list of two names, or a mapping")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        S::deserialize(serde::de::value::StrDeserializer::new(text)).map(ShortOr::Short)
    }

    /// YAML has no text here for a name such as `no`.
    fn visit_bool<E: Error>(self, _: bool) -> Result<Self::Value, E> {
        Err(E::custom(
            "YAML reads this as a boolean; expected a name, in quotes if it is such a word, a list \
             of two names, or a mapping",
        ))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let short = S::deserialize(SeqAccessDeserializer::new(&mut seq))?;
        match seq.next_element::<IgnoredAny>()? {
            None => Ok(ShortOr::Short(short)),
            Some(_) => Err(A::Error::custom("there are too many; expected two names")),
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        L::deserialize(MapAccessDeserializer::new(map)).map(ShortOr::Long)
    }
}

impl<'de, S: Deserialize<'de>, L: Deserialize<'de>> Deserialize<'de> for ShortOr<S, L> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ShortOrVisitor(PhantomData))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axon_wire::Bytes;

    #[test]
    fn shares_of_bits_are_read_exactly_or_not_at_all() {
        for (text, per_1e15) in
            [("1e-12", 1000), ("0", 0), ("0.000001", 1_000_000_000), ("2.5e-14", 25), ("1E-15", 1)]
        {
            assert_eq!(bit_errors(text), Ok(per_1e15), "{text}");
        }
        for text in ["1e-16", "1.5e-15", "0.01", "-1e-9", "e-9", "1e-9x", ".1", "1e-99", "1.e"] {
            assert_eq!(bit_errors(text), Err(BIT_ERRORS_EXPECTED), "{text}");
        }
    }

    #[test]
    fn a_share_is_a_power_of_two_or_a_size() {
        for (text, expected) in [
            ("1/128", Share::Dynamic { shift: -7 }),
            ("1/2", Share::Dynamic { shift: -1 }),
            ("1", Share::Dynamic { shift: 0 }),
            ("8", Share::Dynamic { shift: 3 }),
            ("20kB", Share::Static(Bytes(20_000))),
        ] {
            assert_eq!(share(text), Ok(expected), "{text}");
        }
        for text in ["1/1", "1/3", "1/256", "2/4", "16", "3", "0", "", "-1", "half", "20"] {
            assert_eq!(share(text), Err(SHARE_EXPECTED), "{text}");
        }
    }
}
