//! `axon trace-packet SWITCH FILE`: entries of a programmable switch that frames of a capture
//! match.

use crate::cli::lab::Choice;
use crate::cli::{file, output, say};
use anyhow::{Context, Result, bail, ensure};
use axon_capture::pcap::{Direction, Frame, LinkType, Reader};
use axon_fabric::assemble::{port_name, split_port};
use axon_linux::tables::ask;
use axon_pipeline::{Explanation, Stage, TablesAnswer, TablesRequest};
use axon_wire::PortNo;
use serde::Serialize;
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;
use std::process::ExitCode;

/// Show for each frame of a capture which entries of a switch it matches, and why; nothing is sent
#[derive(clap::Args)]
#[command(after_help = "Exit status: 0 done; 2 there is no such lab, switch or port, the capture \
    cannot be read, or wrong usage")]
pub struct Arguments {
    #[command(flatten)]
    lab: Choice,
    /// Switch, such as s1
    switch: String,
    /// Capture, pcap or pcapng, such as `axon up --capture` writes
    file: PathBuf,
    /// Ingress port of the frames, such as s1-p0; by default the one in the capture, and frames
    /// that left the switch are skipped
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Stop after this number of frames
    #[arg(long, value_name = "FRAMES", default_value_t = 100,
          value_parser = clap::value_parser!(u64).range(1..))]
    count: u64,
    /// Print the results as JSON
    #[arg(long)]
    json: bool,
}

/// JSON output of `axon trace-packet --json`.
#[derive(Serialize)]
struct Output<'a> {
    /// Name of the switch, such as `s1`.
    switch: &'a str,
    /// Frames, in the order of the capture.
    frames: Vec<PacketWay>,
}

/// Stages and results of one frame.
#[derive(Serialize)]
struct PacketWay {
    /// Number of the frame in the capture, from 1.
    number: u64,
    /// Ingress port of the frame.
    port: String,
    /// Bytes of the frame in the capture, without FCS.
    bytes: usize,
    /// Bytes of the frame on the wire; more than `bytes` where the capture has truncated it: then
    /// lengths are those of the remainder, and missing bytes read as zero.
    wire_bytes: usize,
    /// Stages that the frame passes, in order.
    stages: Vec<StageJson>,
    /// Frames that would leave the switch.
    sent: Vec<SentFrame>,
    /// True if the control program would receive the frame, or a copy.
    to_cpu: bool,
}

/// A stage of the pipeline.
#[derive(Serialize)]
struct StageJson {
    /// Stage: parser, learn, key, lookup, mirror, modify or out.
    stage: String,
    /// Description of the result there.
    text: String,
}

/// A frame that would leave the switch.
#[derive(Serialize)]
struct SentFrame {
    /// Egress port of the frame.
    port: String,
    /// Bytes of the frame in hexadecimal.
    frame: String,
}

/// Prints the stages of each frame.
///
/// # Errors
/// There is no such lab, switch or port, or the capture cannot be read.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    const WANTED: &str = "a capture, pcap or pcapng";
    let Arguments { switch, file, .. } = arguments;
    file::check_no_directory(file, WANTED)?;
    let input = File::open(file).map_err(|error| file::unread(file, &error, WANTED))?;
    let socket = arguments.lab.open()?.tables_of(switch)?;
    let named = arguments.port.as_deref().map(|name| port_of(switch, name)).transpose()?;
    let mut frames = Vec::new();
    let mut explain = |port, frame| ask(&socket, &TablesRequest::Explain(port, frame));
    let passed = ways(input, arguments, named, &mut explain, &mut frames);
    let output = Output { switch, frames };
    let text = if arguments.json { output::json(&output)? } else { output.text() };
    // Results from before an error are printed too.
    say::print(&text)?;
    let passed = passed?;
    if passed > 0 {
        say::note!("{passed} frames that did not come in by a port of {switch} are passed over");
    }
    Ok(say::answer(true))
}

/// Requests the stages of the frames of a capture; returns the number of frames skipped.
///
/// # Errors
/// As for [`run`]; `found` has the earlier frames.
fn ways(
    input: impl Read,
    arguments: &Arguments,
    named: Option<PortNo>,
    explain: &mut dyn FnMut(PortNo, Vec<u8>) -> Result<TablesAnswer>,
    found: &mut Vec<PacketWay>,
) -> Result<u64> {
    let Arguments { switch, file, .. } = arguments;
    let mut reader = Reader::new(input).with_context(|| file.display().to_string())?;
    let mut passed = 0;
    while (found.len() as u64) < arguments.count {
        let frame = reader.next_frame().with_context(|| file.display().to_string())?;
        let Some(frame) = frame else { break };
        let Some(port) = ingress(switch, named, &frame)? else {
            passed += 1;
            continue;
        };
        match explain(port, frame.bytes.to_vec())? {
            TablesAnswer::Explained(way) => found.push(PacketWay::of(switch, port, &frame, way)),
            TablesAnswer::NoSuchPort(port) => bail!("{switch} has no port {port}"),
            other => bail!("{other:?} is no answer to this"),
        }
    }
    Ok(passed)
}

/// Returns the port of this name: `s1-p0` or `p0`.
fn port_of(switch: &str, name: &str) -> Result<PortNo> {
    let (of, port) =
        split_port(name).with_context(|| format!("{name} is not a port; {switch}-p0 is one"))?;
    ensure!(of == switch, "{name} is a port of {of}; expected one of {switch}");
    Ok(port)
}

/// Returns the ingress port of a frame; `None` if it was not received.
fn ingress(switch: &str, named: Option<PortNo>, frame: &Frame<'_>) -> Result<Option<PortNo>> {
    if frame.link_type != LinkType::ETHERNET {
        return Ok(None);
    }
    if named.is_some() {
        return Ok(named);
    }
    if frame.direction == Some(Direction::Outbound) {
        return Ok(None);
    }
    let Some((of, port)) = frame.name.and_then(split_port) else {
        bail!(
            "frame {}: the capture does not say which port of {switch} it came in by; expected \
             --port {switch}-p0",
            frame.number
        );
    };
    Ok((of == switch).then_some(port))
}

impl StageJson {
    fn of(stage: Stage) -> StageJson {
        StageJson { stage: stage.name, text: stage.text }
    }
}

impl PacketWay {
    fn of(switch: &str, port: PortNo, frame: &Frame<'_>, way: Explanation) -> PacketWay {
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let sent = way
            .sent
            .iter()
            .map(|(port, bytes)| SentFrame { port: port_name(switch, *port), frame: hex(bytes) });
        PacketWay {
            number: frame.number,
            port: port_name(switch, port),
            bytes: frame.bytes.len(),
            wire_bytes: frame.wire_bytes,
            sent: sent.collect(),
            stages: way.stages.into_iter().map(StageJson::of).collect(),
            to_cpu: way.to_cpu,
        }
    }
}

impl Output<'_> {
    fn text(&self) -> String {
        let mut text = String::new();
        for way in &self.frames {
            // Writing to a String cannot fail.
            let _ = write!(text, "frame {}, {} B", way.number, way.bytes);
            if way.wire_bytes > way.bytes {
                let _ = write!(text, " of {}: cut short by the capture", way.wire_bytes);
            }
            let _ = writeln!(text, ", in by {}", way.port);
            for StageJson { stage, text: what } in &way.stages {
                let _ = writeln!(text, "  {stage:<6}  {what}");
            }
            for sent in &way.sent {
                let bytes = sent.frame.len() / 2;
                let _ = writeln!(text, "  sent    {}, {bytes} B", sent.port);
            }
            if way.to_cpu {
                let _ = writeln!(text, "  sent    to the control program");
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a pcap file of Ethernet frames with these lengths, captured and on the wire,
    /// followed by `rest`.
    fn capture(frames: &[(u32, u32)], rest: &[u8]) -> Vec<u8> {
        let mut file = Vec::new();
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            file.extend(word.to_le_bytes());
        }
        for &(kept, wire) in frames {
            for word in [0, 0, kept, wire] {
                file.extend(word.to_le_bytes());
            }
            file.extend(vec![0; kept as usize]);
        }
        file.extend(rest);
        file
    }

    fn found(capture: &[u8]) -> (Vec<PacketWay>, Result<u64>) {
        let arguments = Arguments {
            lab: Choice::default(),
            switch: "s1".into(),
            file: "a.pcap".into(),
            port: None,
            count: 100,
            json: false,
        };
        let way = Explanation { stages: Vec::new(), sent: Vec::new(), to_cpu: false };
        let mut explain = |_, _| Ok(TablesAnswer::Explained(way.clone()));
        let mut found = Vec::new();
        let result = ways(capture, &arguments, Some(PortNo(0)), &mut explain, &mut found);
        (found, result)
    }

    #[test]
    fn a_frame_that_the_capture_has_cut_short_is_marked() {
        let (frames, passed) = found(&capture(&[(60, 60), (96, 1514)], &[]));
        assert_eq!(passed.unwrap(), 0);
        let text = Output { switch: "s1", frames }.text();
        assert!(text.starts_with("frame 1, 60 B, in by s1-p0\n"), "{text}");
        assert!(text.contains("frame 2, 96 B of 1514: cut short by the capture, in by"), "{text}");
    }

    #[test]
    fn what_comes_before_an_error_is_found() {
        let (frames, passed) = found(&capture(&[(60, 60), (60, 60)], &[1; 7]));
        assert_eq!((frames.len(), passed.is_err()), (2, true));
    }
}
