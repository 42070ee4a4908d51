//! `axon trace FILE`: filters the lines of a trace.
//!
//! A line is a time, a place and an event: `0.001002003s s1-p2 sent 70 B 01c93499a09afab4
//! 0180c2...`: the number of bytes, XXH3 of all of them, and the first 64. Only `sent` shows bytes,
//! so only those lines show the flow of a frame; a frame that was received, lost or dropped is the
//! one with the same hash that was sent.

use anyhow::{Context, Result, bail, ensure};
use axon_fabric::units;
use axon_node::Drop;
use axon_sim::links::Loss;
use axon_wire::{HeaderView, HopWidth, MacAddr, PacketType, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Kinds of lines, given by their third word.
const KINDS: [&str; 9] =
    ["sent", "received", "lost", "dropped", "flipped", "carrier", "power", "note", "fault"];
const LINE_EXPECTED: &str = "a line such as `0.000000005s s1-p2 sent 70 B ...`";

/// Print the lines of a trace that match all options
#[derive(clap::Args)]
#[command(
    after_help = "Exit status: 0 the trace was read to its end; 2 it cannot be read, is no trace \
    or is cut off, or wrong usage"
)]
pub struct Arguments {
    /// File that `axon sim --trace` wrote; `-` is standard input
    file: PathBuf,
    /// Frames between two hosts, in both directions, such as h1,h2. A trace holds the first 64
    /// bytes of a frame: after more than 46 hops of 8 bits its addresses are not found
    #[arg(long, value_name = "HOST,HOST")]
    flow: Option<String>,
    /// Events at this port or node, such as s1-p0 or s1
    #[arg(long, value_name = "PORT")]
    port: Option<String>,
    /// Frames that a node dropped or a link lost for this reason, such as queue_full
    #[arg(long, value_name = "REASON")]
    drop: Option<String>,
    /// Not before this simulated time, such as 1.5ms
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    from: Option<Span>,
    /// Not after this simulated time
    #[arg(long, value_name = "TIME", value_parser = units::span)]
    to: Option<Span>,
    /// Lines of this kind; may be given more than once
    #[arg(long, value_name = "KIND", value_parser = KINDS)]
    kind: Vec<String>,
}

/// Prints the lines that match; fails if the file is not a trace.
pub fn run(arguments: &Arguments) -> Result<ExitCode> {
    if let Some(reason) = &arguments.drop {
        let known: Vec<&str> =
            Drop::ALL.iter().map(|d| d.name()).chain(Loss::ALL.iter().map(|l| l.name())).collect();
        let listed = known.join(", ");
        ensure!(known.contains(&reason.as_str()), "no reason {reason}; expected one of {listed}");
    }
    if let (Some(from), Some(to)) = (arguments.from, arguments.to)
        && from > to
    {
        bail!("--from {from} --to {to}: nothing is between; expected --from first");
    }
    let name = arguments.file.display().to_string();
    let mut input: Box<dyn BufRead> = if name == "-" {
        Box::new(std::io::stdin().lock())
    } else {
        let wanted = "a trace that `axon sim --trace` wrote, or - for standard input";
        crate::cli::file::check_no_directory(&arguments.file, wanted)?;
        let file = File::open(&arguments.file);
        let file =
            file.map_err(|error| crate::cli::file::unread(&arguments.file, &error, wanted))?;
        Box::new(BufReader::with_capacity(1 << 20, file))
    };
    let mut out = BufWriter::new(std::io::stdout().lock());
    let mut filter = Filter::new(arguments);
    let (mut number, mut line, mut cut) = (0, String::new(), false);
    while read(&mut *input, &mut line).with_context(|| format!("{name}:{}", number + 1))? {
        number += 1;
        let at = || format!("{name}:{number}");
        // A run that was killed leaves an incomplete line, which is not parsed.
        cut = line.pop() != Some('\n');
        if cut {
            break;
        }
        if !line.starts_with('#') {
            // An error in an option is not reported as one of the line.
            filter.begin()?;
        }
        if filter.takes(&line).with_context(at)? {
            match writeln!(out, "{line}") {
                // The reader has closed its end.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                    return Ok(ExitCode::SUCCESS);
                }
                written => written.context("cannot write standard output")?,
            }
        }
    }
    ensure!(number > 0, "{name}: it is empty; expected what `axon sim --trace` wrote");
    if let (Some(port), false, false) = (&arguments.port, filter.named, cut) {
        bail!("--port {port}: no line of {name} names it; expected one such as s1-p0, or a node");
    }
    match out.flush() {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
        written => written.context("cannot write standard output")?,
    }
    ensure!(!cut, "{name}:{number}: the line is cut off, so the trace is not whole");
    Ok(ExitCode::SUCCESS)
}

/// Reads a line with its newline, if there is one more.
fn read(input: &mut dyn BufRead, line: &mut String) -> std::io::Result<bool> {
    line.clear();
    Ok(input.read_line(line)? > 0)
}

/// Filters, and the information from the lines so far.
struct Filter<'a> {
    asked: &'a Arguments,
    hop_width: HopWidth,
    hosts: BTreeMap<String, MacAddr>,
    /// Two ends of the flow, known after the head of the trace.
    flow: Option<[MacAddr; 2]>,
    /// Hashes of the flow's frames.
    frames: BTreeSet<u64>,
    /// True if a line has named the requested port.
    named: bool,
}

impl<'a> Filter<'a> {
    fn new(asked: &'a Arguments) -> Filter<'a> {
        let (hosts, frames) = (BTreeMap::new(), BTreeSet::new());
        Filter { asked, hop_width: HopWidth::default(), hosts, flow: None, frames, named: false }
    }

    /// Resolves the names in the options, once the head has been read.
    fn begin(&mut self) -> Result<()> {
        if self.asked.flow.is_some() && self.flow.is_none() {
            self.flow = Some(self.ends()?);
        }
        Ok(())
    }

    /// Returns whether a line matches.
    fn takes(&mut self, line: &str) -> Result<bool> {
        if let Some(head) = line.strip_prefix('#') {
            self.learn(head)?;
            return Ok(false);
        }
        let mut words = line.split(' ');
        let (Some(time), Some(place), Some(kind)) = (words.next(), words.next(), words.next())
        else {
            bail!("`{line}` is too short; expected {LINE_EXPECTED}");
        };
        let Ok(time) = units::span(time) else {
            bail!("`{time}` is no time; expected {LINE_EXPECTED}");
        };
        let kind = kind.trim_end_matches(',');
        ensure!(KINDS.contains(&kind), "`{kind}` is no kind of event; expected {LINE_EXPECTED}");
        // A flow's frames are learnt from all lines, even those that other options exclude.
        let flow = self.asked.flow.is_none() || self.is_of_flow(kind, words.clone());
        let asked = self.asked;
        let node = |port: &str| place.strip_prefix(port).is_some_and(|rest| rest.starts_with("-p"));
        let here = asked.port.as_ref().is_none_or(|port| place == port || node(port));
        self.named |= here;
        Ok(flow
            && asked.from.is_none_or(|from| time >= from)
            && asked.to.is_none_or(|to| time <= to)
            && here
            && (asked.kind.is_empty() || asked.kind.iter().any(|asked| asked == kind))
            && asked.drop.as_deref().is_none_or(|reason| {
                ["lost", "dropped"].contains(&kind) && words.next() == Some(reason)
            }))
    }

    /// Records the properties of the fabric in the head of a trace.
    fn learn(&mut self, head: &str) -> Result<()> {
        match head.split_whitespace().collect::<Vec<_>>()[..] {
            ["host", name, mac] => {
                let mac = parse_mac(mac).context("a host's MAC cannot be read")?;
                self.hosts.insert(name.to_owned(), mac);
            }
            ["hop_width", "4"] => self.hop_width = HopWidth::Four,
            ["hop_width", "16"] => self.hop_width = HopWidth::Sixteen,
            _ => {}
        }
        Ok(())
    }

    /// Returns whether a line is about a frame of the requested flow.
    fn is_of_flow<'b>(&mut self, kind: &str, mut words: impl Iterator<Item = &'b str>) -> bool {
        let Some(ends) = self.flow else { return false };
        let reasons = usize::from(["lost", "dropped"].contains(&kind));
        // After the reason, if there is one: `70 B 01c93499a09afab4`.
        let Some(hash) = words.nth(reasons + 2) else { return false };
        let Ok(hash) = u64::from_str_radix(hash, 16) else { return false };
        if kind == "sent" {
            let bytes = words.next().and_then(parse_hex).unwrap_or_default();
            if is_between(&bytes, self.hop_width, ends) {
                self.frames.insert(hash);
            }
        }
        self.frames.contains(&hash)
    }

    /// Returns the MACs of the two requested hosts.
    fn ends(&self) -> Result<[MacAddr; 2]> {
        let asked = self.asked.flow.as_deref().unwrap_or_default();
        let Some((a, b)) = asked.split_once(',') else {
            bail!("--flow {asked}: expected two hosts, such as h1,h2");
        };
        let mac = |name: &str| {
            let mac = self.hosts.get(name).copied();
            mac.with_context(|| format!("--flow {asked}: the trace's head has no host {name}"))
        };
        Ok([mac(a)?, mac(b)?])
    }
}

/// Returns whether a frame is from one of two hosts to the other: plain, or inside an Axon packet.
fn is_between(bytes: &[u8], width: HopWidth, [a, b]: [MacAddr; 2]) -> bool {
    let joins = |frame: &[u8]| {
        let Some((to, rest)) = frame.split_first_chunk::<6>() else { return false };
        let Some(from) = rest.first_chunk::<6>() else { return false };
        let (to, from) = (MacAddr(*to), MacAddr(*from));
        (to, from) == (a, b) || (to, from) == (b, a)
    };
    joins(bytes)
        || HeaderView::parse(bytes, width)
            .is_ok_and(|view| view.packet_type() == PacketType::Ethernet && joins(view.payload()))
}

fn parse_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok()).collect()
}

fn parse_mac(text: &str) -> Option<MacAddr> {
    let bytes = parse_hex(&text.replace(':', ""))?;
    bytes.try_into().ok().map(MacAddr)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_known_inside_and_outside_of_routes() {
        let (a, b) = (MacAddr([2, 0, 0, 0, 0, 1]), MacAddr([2, 0, 0, 0, 0, 2]));
        let frame = [&b.0[..], &a.0[..], &[8, 0]].concat();
        // Type 1, a header of 8 bytes with two hops, one taken.
        let routed = [&[0x10, 0, 0x80, 0x01, 0x00, 0x10, 3, 4][..], &frame[..]].concat();
        for frame in [&frame, &routed] {
            assert!(is_between(frame, HopWidth::Eight, [a, b]), "{frame:?}");
            assert!(is_between(frame, HopWidth::Eight, [b, a]), "{frame:?}");
            assert!(!is_between(frame, HopWidth::Eight, [a, a]), "{frame:?}");
        }
        assert!(!is_between(&routed[..15], HopWidth::Eight, [a, b]));
    }

    #[test]
    fn macs_are_read_whole_or_not_at_all() {
        assert_eq!(parse_mac("02:68:00:00:00:0a"), Some(MacAddr([2, 0x68, 0, 0, 0, 10])));
        assert_eq!(parse_mac("02:68:00:00:00"), None);
        assert_eq!(parse_mac("02:68:00:00:00:zz"), None);
    }
}
