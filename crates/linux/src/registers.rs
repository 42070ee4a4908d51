//! Formats the registers of devices as tables.

use crate::columns::columns;
use crate::status::NodeStatus;
use axon_node::telemetry::RegisterTelemetry;
use std::collections::{BTreeMap, BTreeSet};

/// Values by the name of the register.
type Registers = BTreeMap<String, u32>;

/// Formats one table for each switch with registers: a line for each register that is not 0
/// everywhere, and a column each for the device with its CPU and for the ports.
pub fn tables(status: &[NodeStatus]) -> String {
    let all = status.iter().filter_map(|status| {
        let registers = status.node()?.plane()?.registers.as_ref()?;
        Some(table(status.name(), registers))
    });
    all.collect::<Vec<_>>().join("\n")
}

fn table(name: &str, registers: &RegisterTelemetry) -> String {
    let ports = (0..registers.ports.len()).map(|port| format!("{name}-p{port}"));
    let headings: Vec<String> =
        ["register".to_owned(), name.to_owned()].into_iter().chain(ports).collect();
    let blocks: Vec<&Registers> = [&registers.device].into_iter().chain(&registers.ports).collect();
    let set = |block: &&Registers| -> Vec<String> {
        block.iter().filter(|(_, value)| **value != 0).map(|(name, _)| name.clone()).collect()
    };
    let names: BTreeSet<String> = blocks.iter().flat_map(set).collect();
    let headings: Vec<&str> = headings.iter().map(String::as_str).collect();
    let cell = |block: &&Registers, name: &str| {
        block.get(name).map_or_else(|| "-".to_owned(), u32::to_string)
    };
    columns(
        &headings,
        names.iter().map(|name| {
            let values = blocks.iter().map(|block| cell(block, name));
            [name.clone()].into_iter().chain(values).collect()
        }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn an_operator_sees_the_registers_of_each_port_of_a_device() {
        let block = |values: &[(&str, u32)]| -> Registers {
            values.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
        };
        let mut s1 = testing::switch(2);
        s1.plane.registers = Some(RegisterTelemetry {
            device: block(&[("rx_frames", 7), ("runts", 0)]),
            ports: vec![block(&[("kind", 2), ("rx_frames", 0)]), block(&[("kind", 1)])],
        });
        let text = tables(&[testing::status("s1", s1), testing::status("s2", testing::switch(2))]);
        let lines: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            ["register", "s1", "s1-p0", "s1-p1"],
            ["kind", "-", "2", "1"],
            ["rx_frames", "7", "0", "-"],
        ];
        assert_eq!(lines, expected);
        assert_eq!(tables(&[testing::failed("s2", "refused")]), "");
    }
}
