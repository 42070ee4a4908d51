//! Frames as Wireshark's dissectors read them. Skipped, aloud, where `tshark` is missing.

use std::process::Command;

/// A capture file (libpcap's classic format, little-endian, link type Ethernet).
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1_u32] {
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

/// What tshark says of each frame in these fields, joined by `|`; several values of a field by
/// `,`. `None` where there is no tshark.
pub fn dissect(name: &str, frames: &[Vec<u8>], fields: &[&str]) -> Option<Vec<String>> {
    if Command::new("tshark").arg("--version").output().is_err() {
        println!("skipped: no tshark here");
        return None;
    }
    let file = std::env::temp_dir().join(format!("axon-{name}-{}.pcap", std::process::id()));
    std::fs::write(&file, pcap(frames)).unwrap();
    let mut tshark = Command::new("tshark");
    tshark.arg("-r").arg(&file).args(["-T", "fields", "-E", "separator=|"]);
    fields.iter().for_each(|field| {
        tshark.args(["-e", field]);
    });
    let output = tshark.output().unwrap();
    std::fs::remove_file(&file).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<String> = text.lines().map(str::to_string).collect();
    assert_eq!(lines.len(), frames.len());
    Some(lines)
}
