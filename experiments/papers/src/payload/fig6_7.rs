//! Figures 6 and 7 (003 §4.1): forwarding bandwidth against packet size.

use super::machine::{measured, name, on_off, saturated};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_model::hardware::{Bus, Nic, PAGE_BYTES};
use axon_plot::{Axis, Plot, Series};
use std::collections::BTreeMap;

/// Experiment `payload/fig6-7`: forwarding bandwidth against packet size.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "payload/fig6-7",
    file: file!(),
    title: "Forwarding bandwidth against packet size",
    source: "003 §4.1, figures 6 and 7",
    setup: "The event simulation of the forwarder with an agent of 4 us and the set-up of DMA of \
            payload/table2, packets of 2 to 32 KiB in steps of 1 KiB, LANai 4, 7 and 9, without \
            and with a payload cache, PCI of 32 bits at 33 MHz and of 64 bits at 66 MHz. The \
            sender has always a packet more, and waits while the NIC lets it.",
    run,
};

const KIB: u64 = 1_024;
/// Packet sizes in KiB.
const SIZES: std::ops::RangeInclusive<u64> = 2..=32;
/// Bandwidth of the LANai 9 at 4 KB over the slow bus, MB/s: abstract.
const PAPER_OFF: f64 = 56.67;
const PAPER_ON: f64 = 106.43;
/// Gain in per cent: abstract.
const PAPER_GAIN: f64 = 89.0;
/// Accepted difference of the gain in points.
const GAIN_POINTS: f64 = 3.0;
/// Accepted difference of a bandwidth from the paper's, per cent.
const PERCENT: f64 = 5.0;
/// Maximum bandwidth of the LANai 4 without a cache at any packet size, MB/s: §4.1.
const LANAI4_MOST: f64 = 52.0;
/// Depth of a slight tooth, per cent of the bandwidth before it: our interpretation, as the paper
/// has no figure.
const SLIGHT: f64 = 5.0;
/// Largest change that counts as no effect, per cent.
const NOTHING: f64 = 0.5;

/// Bandwidths in MB/s, by bus, NIC, caching and KiB.
type Measured = BTreeMap<(u8, u8, bool, u64), f64>;

fn key(bus: Bus, nic: Nic, is_caching: bool, kib: u64) -> (u8, u8, bool, u64) {
    (bus as u8, nic as u8, is_caching, kib)
}

fn run(context: &mut Context) -> Result<Outcome> {
    let mut outcome = Outcome::default();
    let columns = ["bus", "NIC", "payload caching", "packet, bytes", "bandwidth, MB/s"];
    let mut table = Table::new("bandwidth", &columns);
    let mut found = Measured::new();
    for bus in Bus::ALL {
        let mut series = Vec::new();
        for (nic, is_caching) in lines() {
            let title = format!("{}, {}", name(nic), on_off(is_caching));
            context.step(format!("bus {bus}, {title}"))?;
            let mut points = Vec::new();
            for kib in SIZES {
                let mb_s = saturated(measured(nic, bus, is_caching), kib * KIB)?;
                found.insert(key(bus, nic, is_caching, kib), mb_s);
                points.push((kib as f64, mb_s));
                let (bus, caching) = (bus.to_string().into(), on_off(is_caching).into());
                let bytes = (kib * KIB).into();
                table.push(vec![bus, name(nic).into(), caching, bytes, mb_s.into()]);
            }
            series.push(Series::ours(title, points));
        }
        outcome.plots.push(plot(bus, series));
    }
    outcome.tables.push(table);
    slow_bus(&mut outcome, &found);
    fast_bus(&mut outcome, &found);
    saw_tooth(&mut outcome, &found);
    notes(&mut outcome);
    Ok(outcome)
}

fn lines() -> impl Iterator<Item = (Nic, bool)> {
    Nic::ALL.into_iter().flat_map(|nic| [false, true].map(|is_caching| (nic, is_caching)))
}

/// Returns the gain of caching in per cent.
fn gain(found: &Measured, bus: Bus, nic: Nic, kib: u64) -> f64 {
    let [off, on] = [false, true].map(|is_caching| found[&key(bus, nic, is_caching, kib)]);
    100.0 * (on / off - 1.0)
}

fn slow_bus(outcome: &mut Outcome, found: &Measured) {
    let at = |nic, is_caching, kib| found[&key(Bus::Pci33, nic, is_caching, kib)];
    let [off, on] = [false, true].map(|is_caching| at(Nic::Lanai9, is_caching, 4));
    let what = "slow bus, LANai 9 at 4 KiB, off";
    let row = Row::within(what, PAPER_OFF, off, "MB/s", (PAPER_OFF, PERCENT));
    outcome.rows.push(row.by_construction());
    let what = "slow bus, LANai 9 at 4 KiB, on";
    let row = Row::within(what, PAPER_ON, on, "MB/s", (PAPER_ON, PERCENT));
    outcome.rows.push(row.by_construction());
    let what = "slow bus, LANai 9 at 4 KiB: gain";
    let gained = gain(found, Bus::Pci33, Nic::Lanai9, 4);
    let bound = (PAPER_GAIN - GAIN_POINTS, PAPER_GAIN + GAIN_POINTS);
    outcome.rows.push(Row::between(what, PAPER_GAIN, gained, "%", bound).by_construction());
    let most = SIZES.map(|kib| at(Nic::Lanai4, false, kib)).fold(0.0, f64::max);
    let what = "slow bus, LANai 4, off: most at any size";
    outcome.rows.push(Row::at_most(what, LANAI4_MOST, most, "MB/s", LANAI4_MOST));
    let order = SIZES.into_iter().all(|kib| {
        let on = Nic::ALL.map(|nic| at(nic, true, kib));
        on[0] < on[1] && on[1] < on[2]
    });
    let ours = if order { "at all sizes" } else { "not at all sizes" };
    let what = "slow bus, on: LANai 4 < 7 < 9";
    outcome.rows.push(Row::holds(what, "yes", ours, "", "at all sizes", order));
    let over = 100.0 * (at(Nic::Lanai9, true, 4) / at(Nic::Lanai7, true, 4) - 1.0);
    let paper = "about 10; 19 by table 2";
    outcome.remark("slow bus, on, 4 KiB: LANai 9 over 7", paper, over, "%");
}

fn fast_bus(outcome: &mut Outcome, found: &Measured) {
    for nic in [Nic::Lanai7, Nic::Lanai9] {
        let gains = SIZES.map(|kib| gain(found, Bus::Pci66, nic, kib).abs());
        let most = gains.fold(0.0, f64::max);
        let what = format!("fast bus, {}: gain at any size, at most", name(nic));
        outcome.rows.push(Row::at_most(what, 0.0, most, "%", NOTHING).by_construction());
    }
    let gained = gain(found, Bus::Pci66, Nic::Lanai4, 4);
    outcome.remark("fast bus, LANai 4 at 4 KiB: gain", "not shown", gained, "%");
}

fn saw_tooth(outcome: &mut Outcome, found: &Measured) {
    let page = PAGE_BYTES / KIB;
    let pages = SIZES.end() / page;
    for (nic, is_caching) in lines() {
        let at = |kib| found[&key(Bus::Pci33, nic, is_caching, kib)];
        let teeth = (1..pages).filter(|tooth| at(tooth * page + 1) < at(tooth * page)).count();
        let drop = 100.0 * (1.0 - at(page + 1) / at(page));
        let title = format!("slow bus, {}, {}", name(nic), on_off(is_caching));
        let (what, pass) = (format!("{title}: falls behind a page"), teeth as u64 == pages - 1);
        let bound = format!("= {}", pages - 1);
        let row = Row::holds(what, "saw-tooth", teeth, "times", bound, pass);
        outcome.rows.push(row.by_construction());
        let what = format!("{title}: 5 KiB against 4 KiB, lost");
        outcome.rows.push(Row::at_most(what, "slight", drop, "%", SLIGHT));
    }
}

fn plot(bus: Bus, series: Vec<Series>) -> Plot {
    let (plot, title) = match bus {
        Bus::Pci33 => ("slow-bus", "Forwarding over PCI of 32 bits, 33 MHz"),
        Bus::Pci66 => ("fast-bus", "Forwarding over PCI of 64 bits, 66 MHz"),
    };
    let (x, y) = (Axis::linear("packet", "KiB"), Axis::linear("bandwidth", "MB/s"));
    Plot::lines(plot, title, x, y, series)
}

fn notes(outcome: &mut Outcome) {
    outcome.note(
        "The set-up of DMA is fitted to two measurements of the paper, see payload/table2: to the \
         56.67 MB/s here, which are by construction, and to the LANai 7 with a cache. The LANai \
         9 with a cache rests on the share of the memory that its processor has (next note). The \
         paper's own figures do not agree: 106.43 over 56.67 is 88 %, over the 54.23 of its table \
         2 96 %. Nor do they on the LANai 9 over the 7 with a cache, some 10 % in its text and 19 \
         % by table 2, so ours has no bound.",
    );
    outcome.note(
        "By construction: that bandwidth falls behind every page, as each page has a set-up of DMA \
         and of the firmware of its own; and that a fast bus gains nothing on the LANai 7 and 9. \
         The share of the memory that the processor has was halved for these two after a first \
         run had gained on the fast bus, and the gain of the LANai 9 on the slow bus rests on it, \
         too.",
    );
    outcome.note(
        "The paper calls its saw-tooth slight, which we read as 5 % at most; ours is not, since \
         the firmware works for each page anew, the last one however short. If it worked once for \
         a packet of any size, teeth would be lower, and a LANai 4 without a cache would pass the \
         52 MB/s that it never passed there.",
    );
    outcome.note(
        "Without a cache our LANai 7 is as fast as the 9, as the bus bounds both; the paper \
         measured 3 % less. Its top line, between two hosts without forwarding, is not simulated. \
         On the fast bus a LANai 4 gains from a cache too, for its memory is the bottleneck and is \
         spared a transfer; figure 7 does not have it.",
    );
}
