//! Plot of the demo's results: the aggregate goodput in multiples of one link's rate, in the paper
//! and here.
//!
//! The paper's links run at 1 Gb/s, and ours at the rate that a software switch carries. So the
//! bars are in units of one link's rate. The line can carry 3 of them (two flows share each
//! direction), and the ring 6.

use super::report::Summary;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// Rate of the paper's links in Mb/s.
const PAPER_LINK_MBPS: f64 = 1000.0;
const SIZE: (u32, u32) = (820, 480);
const LINE: RGBColor = RGBColor(148, 163, 184);
const RING: RGBColor = RGBColor(29, 112, 184);

const BRIDGES: RGBColor = RGBColor(217, 119, 6);

/// Bars for one transport: the paper's or ours, and those of bridges next to ours.
struct Group {
    label: [String; 2],
    line: f64,
    ring: f64,
    bridges: Option<f64>,
    gain: f64,
}

impl Group {
    /// Returns the height and colour of each bar, from left to right.
    fn bars(&self) -> impl Iterator<Item = (f64, RGBColor)> {
        let both = [(self.line, LINE), (self.ring, RING)];
        both.into_iter().chain(self.bridges.map(|height| (height, BRIDGES)))
    }
}

fn groups(summary: &Summary) -> Vec<Group> {
    let mut groups = Vec::new();
    for (name, result) in [("UDP", &summary.udp), ("TCP", &summary.tcp)] {
        let paper = &result.paper;
        groups.push(Group {
            label: [format!("{name}, paper"), "1000 Mb/s links".into()],
            line: paper.line_mbps / PAPER_LINK_MBPS,
            ring: paper.ring_mbps / PAPER_LINK_MBPS,
            bridges: None,
            gain: paper.gain,
        });
        groups.push(Group {
            label: [format!("{name}, ours"), format!("{:.0} Mb/s links", summary.link_mbps)],
            line: result.line_mbps / summary.link_mbps,
            ring: result.ring_mbps / summary.link_mbps,
            bridges: Some(result.bridges_mbps / summary.link_mbps),
            gain: result.gain,
        });
    }
    groups
}

/// Draws the plot as SVG.
///
/// # Errors
/// The file cannot be written.
pub(crate) fn draw(summary: &Summary, path: &Path) -> Result<()> {
    // Errors from the backend borrow it, so they are returned as text.
    try_draw(summary, path).map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

fn try_draw(summary: &Summary, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let groups = groups(summary);
    let mut chart = ChartBuilder::on(&area)
        .caption("Six flows over three switches: line and ring", ("sans-serif", 20))
        .margin(12)
        .margin_bottom(64)
        .set_label_area_size(LabelAreaPosition::Left, 52)
        .build_cartesian_2d(0.0..groups.len() as f64, 0.0..7.4)?;
    chart
        .configure_mesh()
        .disable_x_mesh()
        .disable_x_axis()
        .light_line_style(WHITE)
        .y_labels(8)
        .y_label_formatter(&|y| format!("{y:.0}"))
        .y_desc("aggregate goodput, in links")
        .label_style(("sans-serif", 14))
        .draw()?;
    let centred = |size: u32| {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let anchor = Pos::new(HPos::Center, VPos::Bottom);
        TextStyle::from(("sans-serif", size).into_font()).pos(anchor)
    };
    for (what, colour) in [("line", LINE), ("ring", RING), ("ring of bridges", BRIDGES)] {
        let bars = groups.iter().enumerate().flat_map(|(index, group)| {
            let bars = group.bars().enumerate().filter(|(_, (_, of))| *of == colour);
            bars.map(move |(place, (height, _))| {
                let left = index as f64 + 0.1 + 0.27 * place as f64;
                Rectangle::new([(left, 0.0), (left + 0.25, height)], colour.filled())
            })
        });
        let legend = move |(x, y)| Rectangle::new([(x, y - 6), (x + 14, y + 6)], colour.filled());
        chart.draw_series(bars)?.label(what).legend(legend);
    }
    for (index, group) in groups.iter().enumerate() {
        for (place, (height, _)) in group.bars().enumerate() {
            let at = (index as f64 + 0.225 + 0.27 * place as f64, height + 0.06);
            chart.draw_series([Text::new(format!("{height:.2}"), at, centred(14))])?;
        }
        let (x, _) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
        let gain = format!("gain {:+.0} %", group.gain * 100.0);
        let lines = [group.label[0].as_str(), group.label[1].as_str(), gain.as_str()];
        for (row, line) in lines.iter().enumerate() {
            area.draw_text(line, &centred(14), (x, SIZE.1 as i32 - 46 + 17 * row as i32))?;
        }
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .border_style(BLACK.mix(0.3))
        .background_style(WHITE)
        .label_font(("sans-serif", 14))
        .draw()?;
    area.present()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::sample;

    #[test]
    fn the_plot_shows_both_gains_theirs_and_ours_and_the_bridges() {
        let path = std::env::temp_dir().join(format!("axon-plot-{}.svg", std::process::id()));
        super::draw(&sample(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        for text in [
            "gain +96 %",
            "gain +100 %",
            "gain +63 %",
            "TCP, ours",
            "100 Mb/s links",
            "ring of bridges",
            "3.60",
        ] {
            assert!(svg.contains(text), "{text}");
        }
        if std::env::var_os("KEEP").is_none() {
            std::fs::remove_file(path).unwrap();
        }
    }
}
