//! Plots of a report: the gain over bridges, and the time between frames.

use crate::quantity::Quantity;
use crate::report::Report;
use crate::selection::Subject;
use axon_plot::{Axis, Plot, Series};
use std::collections::BTreeSet;

/// Figures that are plotted.
const DRAWN: [Quantity; 6] = [
    Quantity::TcpOneStream,
    Quantity::TcpFourStreams,
    Quantity::PingMean,
    Quantity::FloodMean,
    Quantity::PacketsPeak,
    Quantity::CpuPerPacket,
];

impl Report {
    /// Plots the gain of each subject over bridges through the line of median length. Returns
    /// `None` if there is nothing to compare.
    pub fn speeds(&self) -> Option<Plot> {
        let lines: BTreeSet<u32> = self.ratios.iter().filter_map(|one| one.switches).collect();
        let switches = *lines.iter().nth(lines.len() / 2)?;
        let subjects: BTreeSet<Subject> = self.ratios.iter().map(|one| one.subject).collect();
        let of = |subject: Subject, quantity: Quantity| {
            let found = self.ratios.iter().find(|one| {
                (one.subject, one.switches, one.quantity) == (subject, Some(switches), quantity)
            });
            quantity.better().times(found?.ratio)
        };
        let drawn = DRAWN.into_iter();
        let drawn: Vec<Quantity> = drawn
            .filter(|&quantity| subjects.iter().any(|&one| of(one, quantity).is_some()))
            .collect();
        let groups: Vec<&str> = drawn.iter().map(|quantity| quantity.label()).collect();
        let bars = |&subject: &Subject| {
            let points = drawn.iter().enumerate();
            let height = |quantity| of(subject, quantity).unwrap_or(f64::NAN);
            let points = points.map(|(at, &quantity)| (at as f64, height(quantity)));
            Series::ours(subject.name(), points.collect())
        };
        let series = subjects.iter().map(bars).collect();
        let title = format!("Through {switches} switches: times better than bridges");
        let note = format!("1 is as good as bridges. {}", self.quiet());
        let y = Axis::log("times better", "");
        Some(Plot::bars("bench", &title, &groups, y, series).with_note(note))
    }

    /// Plots the time between two frames at the peak against the number of switches, so that the
    /// slope is the cost of a switch. Returns `None` if no peak was measured.
    pub fn packets(&self) -> Option<Plot> {
        let line = |subject: Subject| {
            let figures = self.figures.iter().filter(|one| {
                one.subject == subject && one.quantity == Quantity::PacketsPeak && one.median > 0.0
            });
            let point =
                |one: &crate::report::Figure| Some((f64::from(one.switches?), 1e6 / one.median));
            let points: Vec<(f64, f64)> = figures.filter_map(point).collect();
            (!points.is_empty()).then(|| Series::ours(subject.name(), points))
        };
        let series: Vec<Series> = Subject::ALL.into_iter().filter_map(line).collect();
        let (x, y) = (Axis::linear("switches", ""), Axis::log("time between frames", "ns"));
        let title = "64 B frames at the peak: time between frames";
        let plot = Plot::lines("bench-packets", title, x, y, series).with_note(self.quiet());
        (!plot.series.is_empty()).then_some(plot)
    }

    fn quiet(&self) -> &'static str {
        if self.noise.noisy { "The machine was too noisy." } else { "" }
    }
}

#[cfg(test)]
mod tests {
    use crate::report::tests::sample;

    #[test]
    fn speeds_are_better_upwards_also_where_less_is_better() {
        let plot = sample().speeds().unwrap();
        assert_eq!(plot.groups, ["TCP, 1 stream", "ping, mean"]);
        assert_eq!(plot.series[0].name, "tc");
        let heights: Vec<f64> = plot.series[0].points.iter().map(|point| point.1).collect();
        assert!((heights[0] - 0.95).abs() < 1e-9 && (heights[1] - 2.0 / 3.0).abs() < 1e-9);
        assert!(plot.svg().unwrap().contains("times better than bridges"));
        assert_eq!(sample().packets(), None, "no peak was measured");
    }
}
