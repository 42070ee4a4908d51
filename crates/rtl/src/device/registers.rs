//! Registers of the device for the state that its node reports.

use crate::driver::Bus;
use crate::pins::Pins;
use crate::registers::{self, counter, device, port};
use axon_node::telemetry::RegisterTelemetry;
use std::collections::BTreeMap;

/// Reads all registers and counters of a device.
pub(super) fn read(pins: &mut Pins) -> RegisterTelemetry {
    let counters = counter::ALL.iter().map(|counter| (counter.name, counter.offset));
    let block =
        |pins: &mut Pins, base: u16, registers: &[registers::Register]| -> BTreeMap<String, u32> {
            let registers = registers.iter().map(|register| (register.name, register.offset));
            let all = registers.chain(counters.clone());
            all.map(|(name, offset)| (name.into(), pins.read(base + offset))).collect()
        };
    RegisterTelemetry {
        device: block(pins, 0, device::ALL),
        ports: (0..pins.size().ports as u16)
            .map(|number| block(pins, registers::port_block(number), port::ALL))
            .collect(),
    }
}
