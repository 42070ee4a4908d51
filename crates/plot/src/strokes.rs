//! Strokes of the lines in a plot, drawn so that lines that coincide are all visible.
//!
//! The plot is divided into columns of a few pixels. Where lines coincide within a column, only one
//! of them is drawn there, and the next one in the next column, so that they appear as one line of
//! changing colours. A line that does not coincide with others is drawn in every column. A dashed
//! line is drawn in the first part of its columns. Markers that coincide become concentric rings.

use std::collections::BTreeMap;

/// Width of a column in pixels.
const COLUMN: f64 = 12.0;
/// Length of a dash as a share of a column.
const DASH: f64 = 0.6;
/// Distance in pixels below which lines coincide.
const NEAR: f64 = 2.5;
/// Radius of a marker, in pixels.
const RADIUS: i32 = 3;
/// Difference between the radii of concentric rings, in pixels.
const RING: i32 = 3;

/// Point, in pixels.
pub type Point = (f64, f64);

/// Line through points, in pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// Points in order; `None` is a gap.
    pub points: Vec<Option<Point>>,
    /// True if the line is dashed.
    pub dashed: bool,
}

/// Marker at a point. The marker with the smallest radius is filled, and others are rings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Marker {
    /// Center of the marker.
    pub at: Point,
    /// Radius of the outline, in pixels.
    pub radius: i32,
    /// True if the marker is filled.
    pub is_full: bool,
}

/// Heights of a line at the two edges and in the middle of each of its columns.
type Heights = BTreeMap<i64, [Option<f64>; 3]>;

/// A part of a line within one column.
#[derive(Clone, Copy, Debug)]
struct Piece {
    column: i64,
    from: Point,
    to: Point,
}

/// Returns the strokes of each line.
pub(crate) fn strokes(lines: &[Line]) -> Vec<Vec<Vec<Point>>> {
    let pieces: Vec<Vec<Piece>> = lines.iter().map(pieces).collect();
    let heights: Vec<_> = pieces.iter().map(|pieces| heights(pieces)).collect();
    let strokes = |(index, line): (usize, &Line)| {
        let turn = |piece: &&Piece| {
            let (rank, of) = rank(&heights, index, piece.column);
            piece.column.rem_euclid(of) == rank
        };
        let mut strokes: Vec<Vec<Point>> = Vec::new();
        for piece in pieces[index].iter().filter(turn) {
            let Some((from, to)) =
                (if line.dashed { dash(piece) } else { Some((piece.from, piece.to)) })
            else {
                continue;
            };
            match strokes.last_mut() {
                Some(stroke) if stroke.last() == Some(&from) => stroke.push(to),
                _ => strokes.push(vec![from, to]),
            }
        }
        strokes
    };
    lines.iter().enumerate().map(strokes).collect()
}

/// Returns the markers of each line. If it has at most `few` points, every point has one.
/// Otherwise, they are where the line begins and ends, and on both sides of its gaps.
pub(crate) fn markers(lines: &[Line], few: usize) -> Vec<Vec<Marker>> {
    let mut taken: Vec<Point> = Vec::new();
    let of = |line: &Line| {
        let points = &line.points;
        let is_end = |&at: &usize| {
            let beside = |at: Option<usize>| at.and_then(|at| points.get(at)).copied().flatten();
            points.len() <= few
                || beside(at.checked_sub(1)).is_none()
                || beside(Some(at + 1)).is_none()
        };
        let marked: Vec<Point> =
            (0..points.len()).filter(is_end).filter_map(|at| points[at]).collect();
        let marker = |&at: &Point| {
            let below = taken.iter().filter(|other| is_near(at, **other)).count() as i32;
            Marker { at, radius: RADIUS + RING * below, is_full: below == 0 }
        };
        let markers = marked.iter().map(marker).collect();
        taken.extend(marked);
        markers
    };
    lines.iter().map(of).collect()
}

fn is_near(a: Point, b: Point) -> bool {
    (a.0 - b.0).hypot(a.1 - b.1) < NEAR
}

fn pieces(line: &Line) -> Vec<Piece> {
    let mut pieces = Vec::new();
    for pair in line.points.windows(2) {
        let &[Some(from), Some(to)] = pair else { continue };
        let (first, last) = (column(from.0.min(to.0)), column(from.0.max(to.0)));
        if from.0 == to.0 {
            pieces.push(Piece { column: first, from, to });
            continue;
        }
        let mut columns: Vec<i64> = (first..=last).collect();
        if from.0 > to.0 {
            columns.reverse();
        }
        for column in columns {
            let edges = (column as f64 * COLUMN, (column + 1) as f64 * COLUMN);
            let clip = |x: f64| along(from, to, x.clamp(edges.0, edges.1));
            let (from, to) = (clip(from.0), clip(to.0));
            if from != to {
                pieces.push(Piece { column, from, to });
            }
        }
    }
    pieces
}

fn column(x: f64) -> i64 {
    (x / COLUMN).floor() as i64
}

/// Returns the point of a segment at `x`, which lies between its ends.
fn along(from: Point, to: Point, x: f64) -> Point {
    if x == from.0 {
        return from;
    }
    if x == to.0 {
        return to;
    }
    (x, from.1 + (to.1 - from.1) * (x - from.0) / (to.0 - from.0))
}

/// Returns the part of a piece that a dashed line draws in its column.
fn dash(piece: &Piece) -> Option<(Point, Point)> {
    let end = (piece.column as f64 + DASH) * COLUMN;
    let (from, to) = (piece.from, piece.to);
    if from.0.min(to.0) >= end {
        return None;
    }
    let clip = |x: f64| along(from, to, x.min(end));
    Some(if from.0 <= end && to.0 <= end { (from, to) } else { (clip(from.0), clip(to.0)) })
}

/// Returns the heights of a line at the edges and in the middle of its columns, in column order.
fn heights(pieces: &[Piece]) -> Heights {
    let mut all = BTreeMap::new();
    for piece in pieces {
        let heights: &mut [Option<f64>; 3] = all.entry(piece.column).or_default();
        for (place, height) in [0.02, 0.5, 0.98].into_iter().zip(heights) {
            let x = (piece.column as f64 + place) * COLUMN;
            let (least, most) = (piece.from.0.min(piece.to.0), piece.from.0.max(piece.to.0));
            if (least..=most).contains(&x) {
                *height = Some(along(piece.from, piece.to, x).1);
            }
        }
    }
    all
}

/// Returns the position of a line among the lines that coincide with it in a column, and their
/// number.
fn rank(heights: &[Heights], index: usize, column: i64) -> (i64, i64) {
    let coincide = |a: usize, b: usize| {
        let (Some(a), Some(b)) = (heights[a].get(&column), heights[b].get(&column)) else {
            return false;
        };
        let apart = a.iter().zip(b).filter_map(|(a, b)| Some(((*a)? - (*b)?).abs()));
        let (count, near) =
            apart.fold((0, true), |(count, near), apart| (count + 1, near && apart < NEAR));
        count > 0 && near
    };
    // Lines that coincide with a line in the group also belong to the group.
    let mut together = vec![index];
    let mut next = 0;
    while let Some(&one) = together.get(next) {
        let more: Vec<usize> = (0..heights.len())
            .filter(|other| !together.contains(other) && coincide(one, *other))
            .collect();
        together.extend(more);
        next += 1;
    }
    let before = together.iter().filter(|&&other| other < index).count();
    (before as i64, together.len() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(points: &[Point]) -> Line {
        Line { points: points.iter().copied().map(Some).collect(), dashed: false }
    }

    fn width(strokes: &[Vec<Point>]) -> f64 {
        let ends = strokes.iter().map(|stroke| (stroke[0].0, stroke[stroke.len() - 1].0));
        ends.map(|(from, to)| (to - from).abs()).sum()
    }

    #[test]
    fn lines_on_each_other_are_each_drawn_in_a_share_of_the_columns() {
        let flat = || line(&[(0.0, 50.0), (720.0, 50.0)]);
        let apart = line(&[(0.0, 90.0), (360.0, 90.0), (720.0, 90.0)]);
        let drawn = strokes(&[flat(), apart, flat(), flat()]);
        assert_eq!([0, 2, 3].map(|index| width(&drawn[index])), [240.0; 3]);
        assert_eq!(
            drawn[1],
            [[(0.0, 90.0), (360.0, 90.0), (720.0, 90.0)]].map(|stroke| {
                let cuts = (1..60).map(|column| (f64::from(column) * COLUMN, 90.0));
                let mut all: Vec<Point> = [stroke[0]].into_iter().chain(cuts).collect();
                all.push(stroke[2]);
                all
            })
        );
        let mut all: Vec<Point> =
            [0, 2, 3].iter().flat_map(|&index| drawn[index].concat()).collect();
        all.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!(all.len(), 120, "no column has two of them");
    }

    #[test]
    fn a_line_alternates_only_where_it_coincides() {
        let drawn = strokes(&[
            line(&[(0.0, 10.0), (120.0, 10.0), (240.0, 200.0)]),
            line(&[(0.0, 10.0), (240.0, 10.0)]),
        ]);
        assert_eq!([0, 1].map(|index| width(&drawn[index])), [180.0; 2]);
    }

    #[test]
    fn a_gap_is_not_drawn_over_and_a_point_between_gaps_has_a_marker() {
        let mut gap = line(&[(0.0, 1.0), (10.0, 1.0), (20.0, 5.0), (30.0, 1.0), (40.0, 1.0)]);
        gap.points[1] = None;
        gap.points[3] = None;
        assert_eq!(strokes(std::slice::from_ref(&gap)), [Vec::<Vec<Point>>::new()]);
        let at: Vec<f64> = markers(&[gap], 0)[0].iter().map(|marker| marker.at.0).collect();
        assert_eq!(at, [0.0, 20.0, 40.0]);
    }

    #[test]
    fn markers_on_each_other_are_rings() {
        let one = || line(&[(5.0, 5.0), (90.0, 5.0)]);
        let all = markers(&[one(), one(), line(&[(5.0, 6.0), (90.0, 60.0)])], 32);
        let seen = |index: usize| all[index].iter().map(|one| (one.radius, one.is_full)).collect();
        let seen: [Vec<(i32, bool)>; 3] = [0, 1, 2].map(seen);
        assert_eq!(seen[0], [(3, true), (3, true)]);
        assert_eq!(seen[1], [(6, false), (6, false)]);
        assert_eq!(seen[2], [(9, false), (3, true)]);
    }

    #[test]
    fn a_dashed_line_has_a_gap_in_every_column() {
        let dashed = Line { dashed: true, ..line(&[(0.0, 1.0), (120.0, 1.0)]) };
        let back = Line { dashed: true, ..line(&[(120.0, 9.0), (0.0, 9.0)]) };
        for strokes in strokes(&[dashed, back]) {
            assert_eq!(strokes.len(), 10);
            assert!((width(&strokes) - 72.0).abs() < 1e-9, "{strokes:?}");
        }
    }
}
