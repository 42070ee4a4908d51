//! Plots: lines over numbers, or bars over names. Series from the paper are dashed or pale, and our
//! own are solid.
//!
//! A missing value is a gap. A zero is drawn, as a line just above the axis, as a bar without
//! height with a `0` above it, or, on an axis that has no zero, as a triangle at the end of the
//! axis.

use super::number::number_text;
use super::strokes::{self, Line};
use anyhow::{Context, Result, anyhow};
use plotters::coord::ranged1d::{Ranged, ValueFormatter};
use plotters::prelude::*;
use std::path::Path;

/// Size of the plot in pixels. The legend to the right of it adds to the width.
const SIZE: (u32, u32) = (820, 480);
/// Opacity of bars that show the paper's values.
const PALE: f64 = 0.45;
/// Line height of the legend, in pixels.
const LEGEND_LINE: usize = 20;
/// Width of a wide character in the legend, in pixels.
const LEGEND_CHARACTER: u32 = 7;
/// Maximum number of characters in a line of the note.
const NOTE_WIDTH: usize = 24;
/// Mean width of a character in a group's name, in pixels.
const NAME_CHARACTER: usize = 6;
/// Line height of a group's name, in pixels.
const NAME_LINE: usize = 13;
/// Maximum number of points in a line that has a marker at every point.
const MARKED_MAX: usize = 32;
/// Space below zero, as a share of the drawn range, so that a line at zero is not on the axis.
const BELOW_ZERO: f64 = 0.015;
/// Colours that colour-blind people can distinguish.
const COLOURS: [RGBColor; 8] = [
    RGBColor(29, 112, 184),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(170, 68, 153),
    RGBColor(120, 94, 40),
    RGBColor(60, 60, 60),
    RGBColor(86, 180, 233),
    RGBColor(200, 160, 0),
];

/// Scale of an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Linear, starting at zero if no value is negative.
    #[default]
    Linear,
    /// Logarithmic. Values must be above zero, and others are omitted.
    Log,
}

/// Axis of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    /// Quantity and unit, as shown next to the axis.
    pub label: String,
    /// Linear or logarithmic scale.
    pub scale: Scale,
}

impl Axis {
    /// Creates a linear axis. `unit` is empty for a plain number.
    pub fn linear(quantity: &str, unit: &str) -> Axis {
        Axis { label: label(quantity, unit), scale: Scale::Linear }
    }

    /// Creates a logarithmic axis. `unit` is empty for a plain number.
    pub fn log(quantity: &str, unit: &str) -> Axis {
        Axis { label: label(quantity, unit), scale: Scale::Log }
    }
}

/// Returns the label of an axis, such as `throughput, Mb/s`.
fn label(quantity: &str, unit: &str) -> String {
    if unit.is_empty() { quantity.to_owned() } else { format!("{quantity}, {unit}") }
}

/// A line, or the bars of one colour.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Name in the legend.
    pub name: String,
    /// True if the series is from the paper. It is then dashed or pale, and has the colour of our
    /// series that follows.
    pub theirs: bool,
    /// Points from left to right. A point whose `y` is not a number is a gap.
    pub points: Vec<(f64, f64)>,
}

impl Series {
    /// Creates a series that we have measured.
    pub fn ours(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), theirs: false, points }
    }

    /// Creates a series that was read from the paper.
    pub fn theirs(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series { name: name.into(), theirs: true, points }
    }
}

/// Plot, written to one SVG file.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// File name without `.svg`.
    pub name: String,
    /// Title above the plot.
    pub title: String,
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// Names of the groups of bars. A point with `x` = 2 is in the third group. Empty for lines.
    pub groups: Vec<String>,
    /// Series, drawn in this order.
    pub series: Vec<Series>,
    /// Note below the legend about omitted values; empty if all values are drawn.
    pub note: String,
}

type Area<'a> = DrawingArea<SVGBackend<'a>, plotters::coord::Shift>;
type Chart<'a, X, Y> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<X, Y>>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

impl Plot {
    /// Creates a plot of lines.
    pub fn lines(name: &str, title: &str, x: Axis, y: Axis, series: Vec<Series>) -> Plot {
        let (name, title) = (name.to_owned(), title.to_owned());
        Plot { name, title, x, y, groups: Vec::new(), series, note: String::new() }
    }

    /// Adds a note about omitted values.
    pub fn with_note(self, note: impl Into<String>) -> Plot {
        Plot { note: note.into(), ..self }
    }

    /// Creates a plot of bars, with one group for each name.
    pub fn bars(name: &str, title: &str, groups: &[&str], y: Axis, series: Vec<Series>) -> Plot {
        let mut plot = Plot::lines(name, title, Axis::linear("", ""), y, series);
        plot.groups = groups.iter().map(|&group| group.to_owned()).collect();
        plot
    }

    /// Draws the plot as SVG to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn draw(&self, path: &Path) -> Result<()> {
        std::fs::write(path, self.svg()?)
            .with_context(|| format!("cannot write {}", path.display()))
    }

    /// Returns the plot as SVG.
    ///
    /// # Errors
    /// The values leave no room to draw the plot.
    pub fn svg(&self) -> Result<String> {
        let mut svg = String::new();
        // Errors borrow from the backend, so they are converted to text.
        self.try_draw(&mut svg)
            .map_err(|error| anyhow!("{} cannot be drawn: {error}", self.title))?;
        Ok(svg)
    }

    fn try_draw(&self, svg: &mut String) -> Drawn {
        let size = (SIZE.0 + self.legend_width(), SIZE.1);
        let whole = SVGBackend::with_string(svg, size).into_drawing_area();
        whole.fill(&WHITE)?;
        let (area, legend) = whole.split_horizontally(SIZE.0);
        self.draw_on(&area)?;
        self.legend(&legend)?;
        whole.present()?;
        Ok(())
    }

    fn draw_on(&self, area: &Area<'_>) -> Drawn {
        let (x, y) = (self.span(|point| point.0, &self.x), self.span(|point| point.1, &self.y));
        if !self.groups.is_empty() {
            let x = 0.0..self.groups.len() as f64;
            return match self.y.scale {
                Scale::Linear => self.on(area, x, y.clone(), y.start.max(0.0)),
                Scale::Log => self.on(area, x, y.clone().log_scale(), y.start),
            };
        }
        match (self.x.scale, self.y.scale) {
            (Scale::Linear, Scale::Linear) => self.on(area, x, y, 0.0),
            (Scale::Log, Scale::Linear) => self.on(area, x.log_scale(), y, 0.0),
            (Scale::Linear, Scale::Log) => self.on(area, x, y.log_scale(), 0.0),
            (Scale::Log, Scale::Log) => self.on(area, x.log_scale(), y.log_scale(), 0.0),
        }
    }

    /// Returns the range of one axis, which covers all values and a margin.
    fn span(&self, of: impl Fn(&(f64, f64)) -> f64, axis: &Axis) -> std::ops::Range<f64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let log = axis.scale == Scale::Log;
        let values = points.map(of).filter(|value| value.is_finite() && (!log || *value > 0.0));
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        values.for_each(|value| (low, high) = (low.min(value), high.max(value)));
        if low > high {
            return if log { 0.1..1.0 } else { 0.0..1.0 };
        }
        if log {
            return low / 1.15..high * 1.3;
        }
        let low = if low >= 0.0 { 0.0 } else { low * 1.05 };
        let high = if high > low { high + (high - low) * 0.06 } else { low + 1.0 };
        let below = if self.groups.is_empty() && low == 0.0 { high * BELOW_ZERO } else { 0.0 };
        low - below..high
    }

    fn on<X, Y>(&self, area: &Area<'_>, x: X, y: Y, floor: f64) -> Drawn
    where
        X: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
        Y: plotters::coord::ranged1d::AsRangedCoord<Value = f64>,
        X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
        Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    {
        let bars = !self.groups.is_empty();
        let mut chart = ChartBuilder::on(area)
            .caption(&self.title, ("sans-serif", 18))
            .margin(14)
            .set_label_area_size(LabelAreaPosition::Left, 66)
            .set_label_area_size(LabelAreaPosition::Bottom, 48)
            .build_cartesian_2d(x, y)?;
        let tick = |value: &f64| number_text(*value);
        let mut mesh = chart.configure_mesh();
        mesh.light_line_style(WHITE)
            .bold_line_style(BLACK.mix(0.12))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .x_label_formatter(&tick)
            .y_label_formatter(&tick)
            .label_style(("sans-serif", 14));
        if bars {
            mesh.disable_x_mesh().x_labels(0);
        }
        mesh.draw()?;
        if bars {
            for (index, series) in self.series.iter().enumerate() {
                let style = self.style(index);
                chart.draw_series(self.columns(index, series, floor, style))?;
            }
            self.zeros(area, &chart, floor)?;
        } else {
            self.curves(area, &chart)?;
        }
        self.names(area, &chart)
    }

    /// Draws the lines with their markers. Points outside the axes are omitted.
    fn curves<X, Y>(&self, area: &Area<'_>, chart: &Chart<'_, X, Y>) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        let (_, bottom) = chart.plotting_area().get_pixel_range();
        let is_on = |value: f64, axis: &Axis| {
            value.is_finite() && (axis.scale == Scale::Linear || value > 0.0)
        };
        let at = |&(x, y): &(f64, f64)| {
            (is_on(x, &self.x) && is_on(y, &self.y)).then(|| {
                let (x, y) = chart.plotting_area().map_coordinate(&(x, y));
                (f64::from(x), f64::from(y))
            })
        };
        let line = |series: &Series| Line {
            points: series.points.iter().map(at).collect(),
            dashed: series.theirs,
        };
        let lines: Vec<Line> = self.series.iter().map(line).collect();
        let whole = |point: strokes::Point| (point.0.round() as i32, point.1.round() as i32);
        let drawn = strokes::strokes(&lines).into_iter().zip(strokes::markers(&lines, MARKED_MAX));
        for (index, (strokes, markers)) in drawn.enumerate() {
            let colour = self.colour(index);
            for stroke in strokes {
                let points: Vec<_> = stroke.into_iter().map(whole).collect();
                area.draw(&PathElement::new(points, colour.stroke_width(2)))?;
            }
            for marker in markers {
                let style = if marker.is_full { colour.filled() } else { colour.stroke_width(2) };
                area.draw(&Circle::new(whole(marker.at), marker.radius, style))?;
            }
            if self.y.scale == Scale::Linear {
                continue;
            }
            let low = self.span(|point| point.1, &self.y).start;
            let zeros = self.series[index].points.iter().filter(|point| point.1 == 0.0);
            for &(x, _) in zeros.filter(|point| is_on(point.0, &self.x)) {
                let (x, _) = chart.plotting_area().map_coordinate(&(x, low));
                let (y, wide) = (bottom.end, 4 + 2 * index as i32);
                let corners = vec![(x - wide, y - 2 * wide), (x + wide, y - 2 * wide), (x, y)];
                let closed = [corners.clone(), vec![corners[0]]].concat();
                area.draw(&PathElement::new(closed, colour.stroke_width(2)))?;
            }
        }
        Ok(())
    }

    fn legend_width(&self) -> u32 {
        let note = lines(&self.note, NOTE_WIDTH).into_iter().map(|line| line.chars().count());
        let names = self.series.iter().map(|series| series.name.chars().count());
        let longest = names.chain(note).max();
        longest.map_or(0, |characters| 40 + LEGEND_CHARACTER * characters as u32)
    }

    /// Draws the names of the series from top to bottom, each after its colour.
    fn legend(&self, area: &Area<'_>) -> Drawn {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let behind = Pos::new(HPos::Left, VPos::Center);
        let style = TextStyle::from(("sans-serif", 14).into_font()).pos(behind);
        for (index, series) in self.series.iter().enumerate() {
            let (y, colour) = ((60 + LEGEND_LINE * index) as i32, self.colour(index));
            let box_of = |left: i32, right: i32, height: i32, colour: RGBAColor| {
                let corners = [(left, y - height / 2), (right, y + height / 2)];
                area.draw(&Rectangle::new(corners, colour.filled()))
            };
            match (self.groups.is_empty(), series.theirs) {
                (true, false) => box_of(0, 18, 2, colour.to_rgba())?,
                (true, true) => {
                    box_of(0, 7, 2, colour.to_rgba())?;
                    box_of(11, 18, 2, colour.to_rgba())?;
                }
                (false, _) => box_of(0, 18, 10, self.style(index))?,
            }
            area.draw_text(&series.name, &style, (26, y))?;
        }
        let below = 70 + LEGEND_LINE * self.series.len();
        for (index, line) in lines(&self.note, NOTE_WIDTH).iter().enumerate() {
            area.draw_text(line, &style, (0, (below + NAME_LINE * index) as i32))?;
        }
        Ok(())
    }

    /// Draws the names of the groups below them.
    fn names<X, Y>(&self, area: &Area<'_>, chart: &Chart<'_, X, Y>) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let below = Pos::new(HPos::Center, VPos::Top);
        let style = TextStyle::from(("sans-serif", 14).into_font()).pos(below);
        let (across, _) = chart.plotting_area().dim_in_pixel();
        let width = across as usize / (self.groups.len().max(1) * NAME_CHARACTER);
        for (index, group) in self.groups.iter().enumerate() {
            let (x, _) = chart.plotting_area().map_coordinate(&(index as f64 + 0.5, 1.0));
            for (line, text) in lines(group, width).iter().enumerate() {
                area.draw_text(
                    text,
                    &style,
                    (x, (SIZE.1 as usize - 54 + NAME_LINE * line) as i32),
                )?;
            }
        }
        Ok(())
    }

    /// Returns the bars of one series. Each has a foot, which is the only visible part of a short
    /// bar.
    fn columns(
        &self,
        index: usize,
        series: &Series,
        floor: f64,
        style: RGBAColor,
    ) -> Vec<Rectangle<(f64, f64)>> {
        let width = 0.8 / self.series.len() as f64;
        let bar = |&(group, height): &(f64, f64)| {
            let left = group + 0.1 + width * index as f64;
            let height = if self.is_zero(height) { floor } else { height };
            let corners = |height| [(left, floor), (left + width * 0.94, height)];
            [
                Rectangle::new(corners(height), style.filled()),
                Rectangle::new(corners(floor), style.stroke_width(2)),
            ]
        };
        let drawn = series.points.iter().filter(|point| point.1.is_finite());
        drawn.flat_map(bar).collect()
    }

    /// Returns whether a bar of this value has no height.
    fn is_zero(&self, height: f64) -> bool {
        height == 0.0 || self.y.scale == Scale::Log && height < 0.0
    }

    /// Draws a `0` above each bar without height.
    fn zeros<X, Y>(&self, area: &Area<'_>, chart: &Chart<'_, X, Y>, floor: f64) -> Drawn
    where
        X: Ranged<ValueType = f64>,
        Y: Ranged<ValueType = f64>,
    {
        use plotters::style::text_anchor::{HPos, Pos, VPos};
        let above = Pos::new(HPos::Center, VPos::Bottom);
        let width = 0.8 / self.series.len() as f64;
        for (index, series) in self.series.iter().enumerate() {
            let colour = self.colour(index);
            let style = TextStyle::from(("sans-serif", 12).into_font()).pos(above).color(&colour);
            for &(group, _) in series.points.iter().filter(|point| self.is_zero(point.1)) {
                let middle = group + 0.1 + width * (index as f64 + 0.47);
                let (x, y) = chart.plotting_area().map_coordinate(&(middle, floor));
                area.draw_text("0", &style, (x, y - 2))?;
            }
        }
        Ok(())
    }

    /// Returns the colour of the bars of a series, which is pale for a series from the paper.
    fn style(&self, index: usize) -> RGBAColor {
        let colour = self.colour(index);
        if self.series[index].theirs { colour.mix(PALE) } else { colour.to_rgba() }
    }

    /// Returns the colour of a series. The paper's series and ours for the same quantity, which are
    /// drawn next to each other, have the same colour.
    fn colour(&self, index: usize) -> RGBColor {
        let ours = self.series[..index].iter().filter(|series| !series.theirs).count();
        COLOURS[ours % COLOURS.len()]
    }
}

/// Splits a name into lines of at most `width` characters, unless one of its words is longer.
fn lines(name: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in name.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn svg(plot: &Plot) -> String {
        let file = format!("axon-{}-{}.svg", plot.name, std::process::id());
        let path = std::env::temp_dir().join(file);
        plot.draw(&path).unwrap();
        let svg = std::fs::read_to_string(&path).unwrap();
        std::fs::remove_file(path).unwrap();
        svg
    }

    #[test]
    fn a_plot_names_its_axes_lines_and_groups() {
        let series = || {
            vec![
                Series::theirs("paper", vec![(0.0, 1.0), (1.0, 100.0)]),
                Series::ours("ours", vec![(0.0, 2.0), (1.0, 200.0)]),
            ]
        };
        for axis in [Axis::linear("rate", "Mb/s"), Axis::log("rate", "Mb/s")] {
            let lines = Plot::lines("lines", "title", Axis::linear("hosts", ""), axis, series());
            let text = svg(&lines);
            for name in ["title", "hosts", "rate, Mb/s", "paper", "ours"] {
                assert!(text.contains(name), "{name}");
            }
        }
        let text = svg(&Plot::bars(
            "bars",
            "t",
            &["line", "ring"],
            Axis::linear("rate", "Mb/s"),
            series(),
        ));
        assert!(text.contains("line") && text.contains("ring"));
    }

    #[test]
    fn the_legend_stands_beside_the_plot() {
        let names = ["a curve of a long name", "theirs"];
        let series = names.map(|name| Series::ours(name, vec![(0.0, 9.0), (1.0, 1.0)])).to_vec();
        let (x, y) = (Axis::linear("x", ""), Axis::linear("y", ""));
        let text = svg(&Plot::lines("beside", "t", x, y, series.clone()));
        for name in names {
            // `<text x="846" y="60" ...>`, with the name on the next line.
            let before = text.split(name).next().unwrap();
            let left = before.rsplit("<text x=\"").next().unwrap().split('"').next().unwrap();
            assert!(left.parse::<u32>().unwrap() > SIZE.0, "{name} at {left}");
        }
        assert!(
            svg(&Plot::bars("bare", "t", &["a"], Axis::linear("y", ""), Vec::new()))
                .contains("width=\"820\"")
        );
    }

    #[test]
    fn names_of_groups_are_broken_between_words() {
        let name = "shortest path, ties fixed";
        assert_eq!(lines(name, 14), ["shortest path,", "ties fixed"]);
        assert_eq!(lines(name, 3), ["shortest", "path,", "ties", "fixed"]);
        assert_eq!(lines(name, 99), [name]);
        assert!(lines("", 5).is_empty());
    }

    #[test]
    fn a_zero_is_drawn_and_what_is_missing_is_not() {
        let points = vec![(0.0, 0.0), (1.0, f64::NAN), (2.0, 5.0)];
        let series = || vec![Series::ours("a", points.clone())];
        let bars = |y| svg(&Plot::bars("zero", "t", &["a", "b", "c"], y, series()));
        let zero = "fill=\"#1D70B8\">\n0\n";
        for y in [Axis::linear("y", ""), Axis::log("y", "")] {
            assert_eq!(bars(y).matches(zero).count(), 1, "a 0 above the first bar alone");
        }
        // On a logarithmic axis there are a triangle at the end and one point, and no line over the
        // gap.
        let of = |y| svg(&Plot::lines("zero", "t", Axis::linear("x", ""), y, series()));
        let counted = |text: &str| {
            let ours = "stroke=\"#1D70B8\"";
            let lines = text.lines().filter(|line| line.starts_with("<polyline"));
            (lines.filter(|line| line.contains(ours)).count(), text.matches("<circle").count())
        };
        assert_eq!(counted(&of(Axis::linear("y", ""))), (0, 2));
        assert_eq!(counted(&of(Axis::log("y", ""))), (1, 1));
    }

    #[test]
    fn a_plot_says_what_it_leaves_out() {
        let plot = Plot::lines("n", "t", Axis::linear("x", ""), Axis::linear("y", ""), Vec::new());
        assert!(svg(&plot.with_note("and 3 of 11 flows")).contains("and 3 of 11 flows"));
    }

    #[test]
    fn what_cannot_be_drawn_is_left_out() {
        let points = vec![(0.0, 0.0), (1.0, f64::NAN), (2.0, 5.0)];
        let axis = Axis::log("x", "");
        let plot = Plot::lines("odd", "t", axis.clone(), axis, vec![Series::ours("a", points)]);
        assert!(plot.span(|point| point.1, &plot.y).start > 0.0);
        svg(&plot);
        svg(&Plot::lines("none", "t", Axis::linear("x", ""), Axis::linear("y", ""), Vec::new()));
    }
}
