//! The plot of the demo: aggregate goodput as a fraction of one link, theirs and ours.
//!
//! Their links have 1 Gb/s and ours what a software switch carries, so bars are in units of
//! one link's rate: the line can carry 3 (two flows share each direction), the ring 6.

use super::report::Summary;
use anyhow::{Result, anyhow};
use plotters::prelude::*;
use std::path::Path;

/// The paper's links, Mb/s.
const PAPER_LINK_MBPS: f64 = 1000.0;
const SIZE: (u32, u32) = (820, 480);
const LINE: RGBColor = RGBColor(148, 163, 184);
const RING: RGBColor = RGBColor(29, 112, 184);

/// Two bars: a topology pair of one transport, theirs or ours.
struct Pair {
    label: [String; 2],
    line: f64,
    ring: f64,
    gain: f64,
}

fn pairs(summary: &Summary) -> Vec<Pair> {
    let mut pairs = Vec::new();
    for (name, result) in [("UDP", &summary.udp), ("TCP", &summary.tcp)] {
        let paper = &result.paper;
        pairs.push(Pair {
            label: [format!("{name}, paper"), "1000 Mb/s links".into()],
            line: paper.line_mbps / PAPER_LINK_MBPS,
            ring: paper.ring_mbps / PAPER_LINK_MBPS,
            gain: paper.gain,
        });
        pairs.push(Pair {
            label: [format!("{name}, ours"), format!("{:.0} Mb/s links", summary.link_mbps)],
            line: result.line_mbps / summary.link_mbps,
            ring: result.ring_mbps / summary.link_mbps,
            gain: result.gain,
        });
    }
    pairs
}

/// Draws the plot as SVG.
///
/// # Errors
/// The file cannot be written.
pub fn draw(summary: &Summary, path: &Path) -> Result<()> {
    // Errors of the backend borrow it, so they leave as text.
    try_draw(summary, path).map_err(|error| anyhow!("cannot draw {}: {error}", path.display()))
}

fn try_draw(summary: &Summary, path: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let pairs = pairs(summary);
    let mut chart = ChartBuilder::on(&area)
        .caption("Six flows over three switches: line and ring", ("sans-serif", 20))
        .margin(12)
        .margin_bottom(64)
        .set_label_area_size(LabelAreaPosition::Left, 52)
        .build_cartesian_2d(0.0..pairs.len() as f64, 0.0..7.4)?;
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
    for (topology, colour) in [("line", LINE), ("ring", RING)] {
        let bars = pairs.iter().enumerate().map(|(index, pair)| {
            let ring = topology == "ring";
            let left = index as f64 + if ring { 0.51 } else { 0.15 };
            let height = if ring { pair.ring } else { pair.line };
            Rectangle::new([(left, 0.0), (left + 0.34, height)], colour.filled())
        });
        let legend = move |(x, y)| Rectangle::new([(x, y - 6), (x + 14, y + 6)], colour.filled());
        chart.draw_series(bars)?.label(topology).legend(legend);
    }
    for (index, pair) in pairs.iter().enumerate() {
        for (x, height) in [(0.32, pair.line), (0.68, pair.ring)] {
            let at = (index as f64 + x, height + 0.06);
            chart.draw_series([Text::new(format!("{height:.2}"), at, centred(14))])?;
        }
        let (x, _) = chart.backend_coord(&(index as f64 + 0.5, 0.0));
        let gain = format!("gain {:+.0} %", pair.gain * 100.0);
        let lines = [pair.label[0].as_str(), pair.label[1].as_str(), gain.as_str()];
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
    fn the_plot_shows_both_gains_theirs_and_ours() {
        let path = std::env::temp_dir().join(format!("axon-plot-{}.svg", std::process::id()));
        super::draw(&sample(), &path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        for text in ["gain +96 %", "gain +100 %", "gain +63 %", "TCP, ours", "100 Mb/s links"] {
            assert!(svg.contains(text), "{text}");
        }
        if std::env::var_os("KEEP").is_none() {
            std::fs::remove_file(path).unwrap();
        }
    }
}
