//! A fabric file of arbitrary text: a fabric whose every index is in range, or an error that
//! names a place in the file.

use axon_fabric::assemble;
use std::path::Path;

/// Runs one input.
pub fn run(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    // Generators may be asked for large fabrics; that is not what is looked for here.
    if text.len() > 2048 || text.chars().filter(char::is_ascii_digit).count() > 24 {
        return;
    }
    let Ok(fabric) = axon_fabric::parse(Path::new("fuzz.yaml"), text) else { return };
    for link in &fabric.links {
        for end in [link.a, link.b] {
            assert!(end.port.0 < fabric.switches[end.switch].ports);
        }
    }
    for host in &fabric.hosts {
        assert!(host.port.0 < fabric.switches[host.switch].ports);
    }
    for index in 0..fabric.switches.len() {
        assemble::switch_config(&fabric, index, 1, 1);
    }
    assemble::controller_config(&fabric, 1, 1);
}
