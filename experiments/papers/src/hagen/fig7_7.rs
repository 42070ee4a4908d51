//! Figure 7-7 (002 §7.4): the outbound link with no watermarks, with HW, and with HW and LW.

use super::bins::{Bins, mean_and_sd};
use super::watermarks::{BIN, FRAME_BYTES, RATE, at_ms, marks, source, three_into_one};
use crate::reproduce::{Context, Experiment, Outcome, Row, Table};
use anyhow::Result;
use axon_plot::{Axis, Plot, Series};
use axon_sim::bare::Phase;
use axon_wire::Span;

/// Experiment `hagen/fig7-7`: the outbound link: lossy FIFO, high watermark, high and low
/// watermark.
pub(crate) const EXPERIMENT: Experiment = Experiment {
    id: "hagen/fig7-7",
    file: file!(),
    title: "The outbound link: lossy FIFO, high watermark, high and low watermark",
    source: "002 §7.3 and §7.4, figure 7-7",
    setup: "Three sources at line rate from 1 ms on into one port, 10 Gb/s links, a FIFO of 100 \
            full frames. Without flow control; with a stop of 65,535 quanta for all at the high \
            watermark (67 frames, so that 11 frames in flight from each source find room) that \
            ends with its time; and with the word to go on at the low watermark (11 frames). \
            Throughput in bins of 49.2 us.",
    run,
};

/// Time from the first frames to the end in ms: three whole pauses.
const FROM_MS: u64 = 1;
const UNTIL_MS: u64 = 12;

fn run(context: &mut Context) -> Result<Outcome> {
    let until = at_ms(UNTIL_MS);
    let always = Phase { from: at_ms(FROM_MS), until, interval: Span::ZERO };
    let mut outcome = Outcome::default();
    let columns = ["queue", "link used, %", "frames lost", "longest queue, bytes"];
    let (mut table, mut series) = (Table::new("used", &columns), Vec::new());
    let (mut used, mut lost) = (Vec::new(), Vec::new());
    for (name, marks) in [
        ("lossy FIFO", None),
        ("HW", Some(marks(false, None))),
        ("HW and LW", Some(marks(true, None))),
    ] {
        context.step(name)?;
        let sources = (0..3).map(|port| source(port, FRAME_BYTES, vec![always])).collect();
        let seen = three_into_one(marks, sources).run(until, context.seed);
        // The first frame arrives after two wires.
        let bins = Bins::between(at_ms(FROM_MS) + BIN, until, BIN);
        let figures = bins.throughput(&seen.sinks[0], RATE);
        let (lost_here, queued) = (seen.all_lost(), seen.queued_bytes_max[0]);
        let percent = 10.0 * mean_and_sd(&figures).0;
        table.push(vec![name.into(), percent.into(), lost_here.into(), queued.into()]);
        series.push(Series::ours(name, bins.points(&figures)));
        used.push(percent);
        lost.push(lost_here);
    }
    let full = |name, ours| Row::at_least(name, "full", ours, "%", 99.0);
    outcome.rows.push(full("lossy FIFO: link used", used[0]));
    outcome.rows.push(Row::holds(
        "lossy FIFO: frames lost",
        "some",
        lost[0],
        "",
        "> 0",
        lost[0] > 0,
    ));
    let (name, paper) = ("HW: link used", "the lowest");
    let lowest = used[1] < used[0].min(used[2]);
    outcome.rows.push(Row::holds(name, paper, used[1], "%", "the lowest", lowest));
    outcome.rows.push(Row::within("HW: frames lost", 0.0, lost[1] as f64, "", (0.0, 0.0)));
    let row = Row::at_least("HW and LW: link used", "close to full", used[2], "%", 99.0);
    outcome.rows.push(row);
    outcome.rows.push(Row::within("HW and LW: frames lost", 0.0, lost[2] as f64, "", (0.0, 0.0)));
    outcome.tables.push(table);
    let (x, y) = (Axis::linear("time", "ms"), Axis::linear("throughput on the wire", "Gb/s"));
    outcome.plots.push(Plot::lines("outbound", "Throughput of the outbound link", x, y, series));
    outcome.note(
        "The paper gives the size of the queue, the pause time and the rates, but neither the \
         marks nor the width of its bins; they are ours. Without a low watermark nobody says that \
         the queue is empty, so the link is idle for most of the 3.4 ms of each pause.",
    );
    Ok(outcome)
}
