//! Text form of rates, spans of time and byte counts: a decimal number and a unit, parsed exactly.
//!
//! The number is scaled by its unit in integers. A value that cannot be represented exactly (a
//! third of a tick, more than 64 bits) is refused, never rounded.

use axon_wire::{Bytes, Rate, Span};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserialize, Deserializer, Error, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Units of rate, in bits per second.
const RATES: &[(&str, u64)] = &[
    ("bps", 1),
    ("b/s", 1),
    ("kbps", 1_000),
    ("kb/s", 1_000),
    ("Mbps", 1_000_000),
    ("Mb/s", 1_000_000),
    ("Gbps", 1_000_000_000),
    ("Gb/s", 1_000_000_000),
    ("Tbps", 1_000_000_000_000),
    ("Tb/s", 1_000_000_000_000),
];

/// Units of time, in picoseconds.
const SPANS: &[(&str, u64)] = &[
    ("ps", 1),
    ("ns", 1_000),
    ("µs", 1_000_000),
    ("us", 1_000_000),
    ("ms", 1_000_000_000),
    ("s", 1_000_000_000_000),
    ("min", 60_000_000_000_000),
    ("h", 3_600_000_000_000_000),
    ("d", 86_400_000_000_000_000),
];

/// Units of size, in bytes.
const SIZES: &[(&str, u64)] = &[
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

/// Picoseconds in a tick of [`Span`].
const PICOS_PER_TICK: u128 = 10;

const RATE_EXPECTED: &str =
    "a rate above zero such as 100Mbps or 10 Gb/s (bps, kbps, Mbps, Gbps, Tbps)";
const SPAN_EXPECTED: &str = "a time such as 100ms or 1us (ps, ns, us, ms, s, min, h, d)";
const SIZE_EXPECTED: &str = "a size such as 128KiB or 1500 B (B, kB, KiB, MB, MiB, GB, GiB)";

/// Parses a number with a unit, scaled by that unit.
///
/// The number is split at its decimal point; both halves are scaled in 128-bit integers. The
/// fraction must leave no remainder. `None` if the text is invalid.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u128> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
    let (number, unit) = text.split_at(end);
    let unit = unit.trim_start();
    let scale = u128::from(units.iter().find(|(name, _)| *name == unit)?.1);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    if whole.is_empty() || fraction.is_empty() || whole.len() > 20 || fraction.len() > 15 {
        return None;
    }
    let whole: u128 = whole.parse().ok()?;
    let parts = fraction.parse::<u128>().ok()?.checked_mul(scale)?;
    let tenths = 10u128.pow(fraction.len() as u32);
    parts.is_multiple_of(tenths).then(|| whole.checked_mul(scale)?.checked_add(parts / tenths))?
}

/// Minimum and maximum rate of a link, in bits per second. Above the maximum a byte would be
/// shorter than the unit of time; below the minimum a large frame would take minutes.
pub const LINK_RATES: std::ops::RangeInclusive<u64> = 1_000..=Rate::FASTEST.bits_per_second();
/// Expected range of rates, in errors.
pub const LINK_RATES_EXPECTED: &str = "1kbps to 800Gbps";

/// Parses a rate: `100Mbps`, `10 Gb/s`.
///
/// # Errors
/// Description of the expected text.
pub fn rate(text: &str) -> Result<Rate, &'static str> {
    scaled(text, RATES)
        .and_then(|bits| u64::try_from(bits).ok())
        .and_then(Rate::from_bits_per_second)
        .ok_or(RATE_EXPECTED)
}

/// Parses a span of time: `100ms`, `1.5us`; whole multiples of 10 ps up to 5.8 years.
///
/// # Errors
/// Description of the expected text.
pub fn span(text: &str) -> Result<Span, &'static str> {
    scaled(text, SPANS)
        .filter(|picos| picos.is_multiple_of(PICOS_PER_TICK))
        .and_then(|picos| u64::try_from(picos / PICOS_PER_TICK).ok())
        .map(Span::from_ticks)
        .ok_or(SPAN_EXPECTED)
}

/// Returns a span as in the file: in the largest unit that leaves no fraction.
pub fn span_text(span: Span) -> String {
    let picos = u128::from(span.ticks()) * PICOS_PER_TICK;
    let whole = |(_, scale): &&(&str, u64)| picos.is_multiple_of(u128::from(*scale));
    match SPANS.iter().rev().find(whole) {
        Some((unit, scale)) if picos > 0 => format!("{}{unit}", picos / u128::from(*scale)),
        _ => "0s".into(),
    }
}

/// Parses a number of bytes: `128KiB`.
///
/// # Errors
/// Description of the expected text.
pub fn bytes(text: &str) -> Result<Bytes, &'static str> {
    scaled(text, SIZES).and_then(|bytes| u64::try_from(bytes).ok()).map(Bytes).ok_or(SIZE_EXPECTED)
}

/// Defines a type for a value that is text in the fabric file.
macro_rules! text_value {
    ($(#[$meta:meta])* $name:ident($inner:ty), $parse:path, $expected:expr, $pattern:literal) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub $inner);

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$name, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $name;

                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expected)
                    }

                    fn visit_str<E: Error>(self, text: &str) -> Result<$name, E> {
                        $parse(text).map($name).map_err(|expected| {
                            E::custom(format!("`{text}` cannot be read; expected {expected}"))
                        })
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "description": format!("Expected: {}.", $expected),
                    "type": "string",
                    "pattern": $pattern,
                })
            }
        }
    };
}
pub(crate) use text_value;

text_value!(
    /// Rate in the file.
    RateText(Rate), rate, RATE_EXPECTED, r"^[0-9]+(\.[0-9]+)? *[kMGT]?(bps|b/s)$"
);
text_value!(
    /// Span of time in the file.
    SpanText(Span), span, SPAN_EXPECTED, r"^[0-9]+(\.[0-9]+)? *(ps|ns|us|µs|ms|s|min|h|d)$"
);
impl Default for SpanText {
    fn default() -> SpanText {
        SpanText(Span::ZERO)
    }
}

text_value!(
    /// Number of bytes in the file.
    BytesText(Bytes), bytes, SIZE_EXPECTED, r"^[0-9]+(\.[0-9]+)? *(B|kB|KiB|MB|MiB|GB|GiB)$"
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_with_units_are_read_exactly() {
        assert_eq!(rate("100Mbps"), Ok(Rate::mbps(100)));
        assert_eq!(rate("1 Gb/s"), Ok(Rate::gbps(1)));
        assert_eq!(rate("2.5Gbps"), Ok(Rate::mbps(2500)));
        assert_eq!(span("1us"), Ok(Span::from_micros(1)));
        assert_eq!(span("0.01ns"), Ok(Span::from_ticks(1)));
        assert_eq!(span("0s"), Ok(Span::ZERO));
        for text in ["0s", "10ps", "1us", "1500ms", "2h"] {
            assert_eq!(span(text).map(span_text).as_deref(), Ok(text));
        }
        assert_eq!(bytes("128KiB"), Ok(Bytes(131_072)));
        assert_eq!(bytes("1.5 kB"), Ok(Bytes(1500)));
    }

    #[test]
    fn what_cannot_be_represented_exactly_is_refused() {
        for text in ["", "100", "Mbps", "0bps", "1 mbps", "0.5bps", "-1bps", "1.bps", ".1Mbps"] {
            assert_eq!(rate(text), Err(RATE_EXPECTED), "{text:?}");
        }
        for text in ["1.2.3s", "5ps", "0.001ns", "9999999999h", "1 S", "1e3s"] {
            assert_eq!(span(text), Err(SPAN_EXPECTED), "{text:?}");
        }
        assert_eq!(rate("99999999999Gbps"), Err(RATE_EXPECTED));
        assert_eq!(bytes("0.3B"), Err(SIZE_EXPECTED));
        assert_eq!(bytes("340282366920938463463374607431768211456B"), Err(SIZE_EXPECTED));
    }
}
