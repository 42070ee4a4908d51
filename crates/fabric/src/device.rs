//! Timing inside a switch: the stages of its pipeline and their delays.

use crate::error::Problem;
use crate::file::text::ShortOr;
use crate::units::{SpanText, span_text};
use axon_wire::Span;
use schemars::JsonSchema;
use serde::Deserialize;

/// Timing of a switch. The plane decides what happens to a frame; this gives the times.
///
/// A frame's head enters the pipeline once `head_bytes` bytes of it (preamble included) have
/// arrived, or, without cut-through, once its last bit has arrived. The ingress stages come before
/// the plane sees the frame; the egress stages come between the plane's decision to transmit and
/// the first bit on the wire.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListedDevice", description = "A pipeline listed by hand.")]
pub struct Device {
    /// Name in results; `listed` by default.
    #[serde(default = "listed")]
    pub name: String,
    /// True if a frame may leave before its tail has arrived.
    #[serde(default)]
    pub cut_through: bool,
    /// Bytes, 8 of preamble included, that must have arrived before the first stage of a
    /// cut-through pipeline begins; 0 by default.
    #[serde(default)]
    pub head_bytes: u64,
    /// Stages for a frame from another switch, in order; the ingress side first.
    #[serde(default)]
    pub from_switch: Vec<Stage>,
    /// Stages for a frame from a host; as `from_switch` by default.
    pub from_host: Option<Vec<Stage>>,
}

fn listed() -> String {
    "listed".into()
}

/// One stage of a pipeline.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ListedStage")]
pub struct Stage {
    /// Name of the stage.
    pub name: String,
    /// Side of the output buffer.
    pub side: Side,
    /// Duration, 1s at most.
    pub time: SpanText,
    /// Additional duration for each byte of the frame; none by default.
    #[serde(default)]
    pub time_per_byte: SpanText,
}

/// Position of a stage relative to the output buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ListedSide")]
pub enum Side {
    /// Before the forwarding decision.
    Ingress,
    /// Between the output buffer and the wire.
    Egress,
}

/// Named switches; see `axon_fabric::device` for their stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceName {
    /// Store and forward without delay beyond that of the wires.
    Ideal,
    /// The Axon prototype: cut-through, 520 ns from a switch, 768 ns from a host (thesis 000
    /// table 4.2).
    AxonNetfpga,
    /// The Axon prototype in store-and-forward mode (thesis 000 section 4.4.3).
    AxonNetfpgaStored,
    /// The commodity gigabit switch that the thesis compares: 7 us for the smallest frame, over 27
    /// us for the largest (thesis 000 figure 4.4).
    StoreAndForward,
    /// The ServerSwitch: 4.2 us for 64 bytes, 15.8 us for 1514 (paper 004 figure 9).
    #[serde(rename = "serverswitch")]
    ServerSwitch,
}

/// A cycle of the prototype's 125 MHz clock.
const CYCLE: Span = Span::from_nanos(8);

impl Device {
    /// Returns the stages for a frame from a host, in order.
    pub fn from_host(&self) -> &[Stage] {
        self.from_host.as_ref().unwrap_or(&self.from_switch)
    }

    /// Returns a store-and-forward device without delay beyond that of the wires.
    pub fn ideal() -> Device {
        Device {
            name: "ideal".into(),
            cut_through: false,
            head_bytes: 0,
            from_switch: Vec::new(),
            from_host: None,
        }
    }

    /// Returns the Axon prototype (thesis 000 section 4.4.1, table 4.2): cut-through, 65 cycles of
    /// 125 MHz (520 ns) for a frame from another Axon and 96 (768 ns) for one from a host, from its
    /// first bit in to its first bit out. "MAC receive" contains the wait for the bytes that it
    /// reads, so there is no additional wait for a head.
    ///
    /// The table is for the shortest route header that the route memory holds, 18 bytes; the thesis
    /// adds a cycle for each further 32-bit word. A stage has a fixed duration here, so a frame
    /// with a longer route is early by 8 ns for each further word at its first switch.
    pub fn axon_netfpga() -> Device {
        Device {
            name: "axon-netfpga".into(),
            cut_through: true,
            head_bytes: 0,
            from_switch: netfpga(6, 0),
            from_host: Some(netfpga(2, 35)),
        }
    }

    /// Returns the prototype in its store-and-forward mode (thesis 000 section 4.4.3): equal
    /// stages, which begin when the whole frame has arrived.
    pub fn axon_netfpga_stored() -> Device {
        let name = "axon-netfpga-stored".into();
        Device { name, cut_through: false, ..Device::axon_netfpga() }
    }

    /// Returns the ServerSwitch (paper 004 section 6.1, figure 9): store and forward.
    ///
    /// The text gives 4.3 us for 64 bytes and 15.6 us for 1514, a slope of 7.7 ns a byte and a
    /// fixed part of 4.2 us; the last two do not fit the first: 64 bytes would take 4.7 us. Storing
    /// a frame takes 8 ns for each byte and for 12 more, 608 ns and 12,208 ns. The remainder is
    /// 3692 ns and 3392 ns; the stage takes their mean, for both sizes.
    pub fn server_switch() -> Device {
        let stage = Stage {
            name: "parse, look up, modify".into(),
            side: Side::Ingress,
            time: SpanText(Span::from_nanos(3542)),
            time_per_byte: SpanText::default(),
        };
        Device {
            name: "serverswitch".into(),
            cut_through: false,
            head_bytes: 0,
            from_switch: vec![stage],
            from_host: None,
        }
    }

    /// Returns the commodity gigabit switch of thesis 000 figure 4.4.
    ///
    /// The text gives about 7 us a switch for the smallest frame (60 bytes and FCS), over 28 us for
    /// one switch and 137 us for five with 1514 bytes and FCS. On a line through the last two, a
    /// switch takes (137 - 28) / 4 = 27.25 us, with some 0.8 us outside the switches. Storing the
    /// frame takes 8 ns for each byte and for 8 of preamble and 4 of FCS: 576 ns and 12,208 ns. The
    /// rest, 6424 ns and 15,042 ns, is a line of 5.93 ns a byte and 6068.2 ns. So 60 bytes take
    /// 7000.0 ns and 1514 bytes take 27,254.2 ns, at 1 Gb/s.
    pub fn store_and_forward() -> Device {
        let stage = Stage {
            name: "store and look up".into(),
            side: Side::Ingress,
            time: SpanText(Span::from_ticks(606_820)),
            time_per_byte: SpanText(Span::from_ticks(593)),
        };
        Device {
            name: "store-and-forward".into(),
            cut_through: false,
            head_bytes: 0,
            from_switch: vec![stage],
            from_host: None,
        }
    }
}

/// Returns the stages of table 4.2, given the two lines in which its columns differ, in cycles.
fn netfpga(pre_processing: u64, lookup: u64) -> Vec<Stage> {
    let stages = [
        ("MAC receive", Side::Ingress, 11),
        ("cross clock domain", Side::Ingress, 6),
        ("pre-processing", Side::Ingress, pre_processing),
        ("header lookup and retrieval", Side::Ingress, lookup),
        ("header processing", Side::Ingress, 9),
        ("cross the switch and buffer at output", Side::Ingress, 11),
        ("cross clock domain", Side::Egress, 5),
        ("MAC transmit", Side::Egress, 17),
    ];
    let stage = |(name, side, cycles): (&str, Side, u64)| Stage {
        name: name.into(),
        side,
        time: SpanText(CYCLE * cycles),
        time_per_byte: SpanText::default(),
    };
    stages.map(stage).into()
}

/// Maximum bytes of a head: a minimum frame with its preamble and FCS.
const HEAD_BYTES_MAX: u64 = 72;

/// Returns the device that the file configures.
pub(crate) fn resolve(asked: &ShortOr<DeviceName, Device>) -> Result<Device, Problem> {
    let listed = match asked {
        ShortOr::Short(DeviceName::Ideal) => return Ok(Device::ideal()),
        ShortOr::Short(DeviceName::AxonNetfpga) => return Ok(Device::axon_netfpga()),
        ShortOr::Short(DeviceName::AxonNetfpgaStored) => return Ok(Device::axon_netfpga_stored()),
        ShortOr::Short(DeviceName::StoreAndForward) => return Ok(Device::store_and_forward()),
        ShortOr::Short(DeviceName::ServerSwitch) => return Ok(Device::server_switch()),
        ShortOr::Long(listed) => listed,
    };
    if listed.head_bytes > HEAD_BYTES_MAX {
        let expected = format!("0 to {HEAD_BYTES_MAX}");
        return Err(Problem::range("device.head_bytes", listed.head_bytes, expected));
    }
    check("device.from_switch", &listed.from_switch)?;
    check("device.from_host", listed.from_host.as_deref().unwrap_or_default())?;
    Ok(listed.clone())
}

/// Checks the order and the times of stages.
fn check(key: &str, stages: &[Stage]) -> Result<(), Problem> {
    for (index, stage) in stages.iter().enumerate() {
        let key = format!("{key}[{index}]");
        if index > 0 && stages[index - 1].side > stage.side {
            let what = "an ingress stage behind an egress stage";
            return Err(Problem::new(format!("{key}.side"), what, "all of the ingress side first"));
        }
        for (name, SpanText(time), most) in [
            ("time", stage.time, Span::from_secs(1)),
            ("time_per_byte", stage.time_per_byte, Span::from_millis(1)),
        ] {
            if time > most {
                let expected = format!("0s to {}", span_text(most));
                return Err(Problem::range(format!("{key}.{name}"), span_text(time), expected));
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(stages: &[Stage]) -> u64 {
        stages.iter().map(|stage| stage.time.0.as_nanos()).sum()
    }

    #[test]
    fn the_prototype_takes_what_table_4_2_says() {
        let device = Device::axon_netfpga();
        assert_eq!((sum(&device.from_switch), sum(device.from_host())), (520, 768));
    }

    #[test]
    fn the_commodity_switch_goes_through_both_points_of_figure_4_4() {
        let device = Device::store_and_forward();
        let nanos = |bytes: u64| {
            let stage = &device.from_switch[0];
            (8 * (bytes + 12)) + (stage.time.0 + stage.time_per_byte.0 * bytes).as_nanos()
        };
        assert_eq!((nanos(60), nanos(1514)), (7000, 27_254));
    }

    #[test]
    fn a_pipeline_by_hand_is_what_it_says() {
        let text = "name: a\ntopology: {ring: {switches: 3}}\ndevice: {cut_through: true, \
                    head_bytes: 22, from_switch: [{name: x, side: ingress, time: 100ns}, \
                    {name: y, side: egress, time: 10ns, time_per_byte: 10ps}]}";
        let device = crate::parse("a.yaml".as_ref(), text).unwrap().device;
        assert_eq!(sum(&device.from_switch), 110);
        assert_eq!(device.from_switch, device.from_host());
        assert_eq!(device.from_switch[1].time_per_byte.0, Span::from_ticks(1));
        assert!(device.cut_through && device.head_bytes == 22);
    }
}
