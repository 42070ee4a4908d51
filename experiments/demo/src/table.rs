//! Results of the demo in one table.

use crate::beside::Spanning;
use crate::iperf::MTU;
use crate::report::Summary;
use crate::table1::{FLOWS, PAIRS, Transport};
use std::fmt::Write as _;

impl Summary {
    /// Returns the table, and the other results of the demo, as text.
    pub fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _ = self.write_table(&mut text).and_then(|()| self.write_rest(&mut text));
        text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    fn write_table(&self, out: &mut String) -> std::fmt::Result {
        let both = [(&self.udp, Transport::Udp), (&self.tcp, Transport::Tcp)];
        writeln!(out, "{:<10}{:^44}{:^44}", "", "UDP, Mb/s", "TCP, Mb/s")?;
        write!(out, "{:<10}", "")?;
        for _ in both {
            write!(out, "{:^18}{:>9}{:^17}", "      ours", "bridges", "    paper")?;
        }
        write!(out, "\n{:<10}", "flow")?;
        for _ in both {
            write!(out, "{:>10}{:>8}{:>9}{:>9}{:>8}", "line", "ring", "ring", "line", "ring")?;
        }
        writeln!(out)?;
        for (index, flow) in FLOWS.iter().enumerate() {
            write!(out, "{:<10}", flow.label())?;
            for (ours, transport) in both {
                let (ours, paper) = (&ours.flows[index], transport.paper());
                let theirs = (paper.line[index], paper.ring[index]);
                write!(out, "{:>10.1}{:>8.1}", ours.line_mbps, ours.ring_mbps)?;
                write!(out, "{:>9.1}", ours.bridges_mbps)?;
                write!(out, "{:>9.0}{:>8.0}", theirs.0, theirs.1)?;
            }
            writeln!(out)?;
        }
        write!(out, "{:<10}", "aggregate")?;
        for (ours, _) in both {
            write!(out, "{:>10.1}{:>8.1}", ours.line_mbps, ours.ring_mbps)?;
            write!(out, "{:>9.1}", ours.bridges_mbps)?;
            write!(out, "{:>9.0}{:>8.0}", ours.paper.line_mbps, ours.paper.ring_mbps)?;
        }
        write!(out, "\n{:<10}", "gain")?;
        for (ours, _) in both {
            let percent = |gain: f64, digits| format!("{:+.*} %", digits, gain * 100.0);
            write!(out, "{:>18}{:>26}", percent(ours.gain, 1), percent(ours.paper.gain, 0))?;
        }
        write!(out, "\n{:<10}", "vs bridges")?;
        for (ours, _) in both {
            let gain = format!("{:+.1} %", ours.gain_over_bridges * 100.0);
            write!(out, "{gain:>18}{:>26}", "")?;
        }
        writeln!(out)
    }

    fn write_rest(&self, out: &mut String) -> std::fmt::Result {
        let pairs = self.pairs;
        writeln!(out, "\ndata planes  {}", self.dataplanes.text())?;
        let mbps = self.link_mbps;
        writeln!(out, "links        {mbps:.0} Mb/s each, the paper's 1000 Mb/s; MTU {MTU}")?;
        writeln!(
            out,
            "pings        {} of {PAIRS} pairs on the line, {} on the ring, {} with a link cut",
            pairs.line, pairs.ring, pairs.ring_cut
        )?;
        writeln!(
            out,
            "cut link     {:.1} ms of silence at most ({:.1} ms of jitter before), {} down",
            self.cut_gap_ms,
            self.cut.jitter_ms(),
            self.cut.port
        )?;
        let busy = self.cpu_busy.values().copied().fold(0.0, f64::max);
        writeln!(out, "CPUs         {:.0} % busy at most while flows are measured", busy * 100.0)?;
        let Spanning { root, blocked } = &self.bridges.spanning;
        writeln!(
            out,
            "bridges      802.1D: root {root}, {} blocked; {:.0} ms of silence after the same cut",
            blocked.join(" "),
            self.bridges.cut_gap_ms
        )?;
        let seen = &self.captures;
        writeln!(
            out,
            "host ports   {} frames captured, {} missed; {} not plain Ethernet, {} malformed",
            seen.frames, seen.missed, seen.foreign, seen.malformed
        )?;
        writeln!(
            out,
            "             {} super-packets, {} checksums left to NICs",
            seen.super_packets, seen.left_to_nic
        )?;
        for example in &seen.examples {
            writeln!(out, "             {example}")?;
        }
        writeln!(
            out,
            "tables       h1 and h3 talk through s2: {} entries at s2, {} at s1 and s3",
            self.tables.transit_entries, self.tables.edge_entries
        )?;
        writeln!(out)?;
        for bar in &self.bars {
            let verdict = if bar.pass { "ok    " } else { "MISSED" };
            writeln!(out, "{verdict} {:<50} {} (wanted {})", bar.name, bar.found, bar.wanted)?;
        }
        Ok(())
    }
}
