//! Frames as decoded by Wireshark's dissectors. `needs` describes the behaviour of such a test
//! without `tshark`.

#[path = "../needs/mod.rs"]
pub mod needs;

use std::path::Path;
use std::process::Command;

/// Link type of a capture: Ethernet.
pub const ETHERNET: u32 = 1;

/// Builds a capture file (libpcap's classic format, little-endian) of this link type.
fn pcap(link_type: u32, frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend_from_slice(&word.to_le_bytes());
    }
    for frame in frames {
        let length = frame.len() as u32;
        for word in [0, 0, length, length] {
            file.extend_from_slice(&word.to_le_bytes());
        }
        file.extend_from_slice(frame);
    }
    file
}

/// Returns tshark's values of these fields for each Ethernet frame, joined by `|`. Several values
/// of one field are joined by `,`. Returns `None` without tshark.
pub fn dissect(name: &str, frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    dissect_with(None, ETHERNET, name, frames, fields)
}

/// Returns tshark's values for frames of any link type, with the dissectors of a Lua script.
pub fn dissect_with(
    script: Option<&Path>,
    link_type: u32,
    name: &str,
    frames: &[Vec<u8>],
    fields: &[&str],
) -> Option<Vec<String>> {
    if !needs::programs(&["tshark"]) {
        return None;
    }
    let file = std::env::temp_dir().join(format!("axon-{name}-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(link_type, frames)).unwrap();
    let mut tshark = Command::new("tshark");
    if let Some(script) = script {
        tshark.arg("-X").arg(format!("lua_script:{}", script.display()));
    }
    tshark.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !complaint.contains("Lua"), "{complaint}");
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    assert_eq!(lines.len(), frames.len());
    Some(lines)
}
