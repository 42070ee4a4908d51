//! A graph from a text file of its own, with one link a line.

use super::plan::{Plan, PlanEnd, PlanLink, SWITCHES_MAX, in_range};
use crate::error::Problem;
use crate::file::{BitErrorsText, GraphFile, WireKey, bit_errors};
use crate::names;
use crate::units::{RateText, SpanText, rate, span};
use std::collections::BTreeMap;

const KEY: &str = "topology.graph";
const FILE_KEY: &str = "topology.graph.file";
const LINE_EXPECTED: &str = "two switches and, where it differs, rate=, latency=, loss_ppm= or \
                             bit_error_rate=, such as `s1 s2 rate=10Gbps`";

/// Reads the lines in order; a switch gets its number at its first occurrence. `#` begins a
/// comment.
pub(super) fn plan(graph: &GraphFile, seed: u64) -> Result<Plan, Problem> {
    let mut plan = Plan::default();
    let mut switches = BTreeMap::new();
    // Some editors begin a text with a byte order mark.
    let text = graph.text.strip_prefix('\u{feff}').unwrap_or(&graph.text);
    for (number, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or("");
        let words: Vec<&str> = line.split_whitespace().collect();
        let problem = |what: String, expected: &str| {
            let what = format!("{}:{}: {what}", graph.file.display(), number + 1);
            Problem::new(FILE_KEY, what, expected)
        };
        let [a, b, changes @ ..] = &words[..] else {
            if words.is_empty() {
                continue;
            }
            return Err(problem(format!("`{}` is one word", words[0]), LINE_EXPECTED));
        };
        let mut end = |word: &str| -> Result<PlanEnd, Problem> {
            let bare = word.bytes().all(|byte| byte.is_ascii_digit());
            let name = if bare { format!("s{word}") } else { word.to_owned() };
            names::check(FILE_KEY, &name).map_err(|wrong| problem(wrong.what, &wrong.expected))?;
            let next = plan.switches.len();
            let switch = *switches.entry(name.clone()).or_insert(next);
            if switch == next {
                plan.switches.push(name);
            }
            Ok(PlanEnd { switch, port: None })
        };
        let ends = [end(a)?, end(b)?];
        if ends[0].switch == ends[1].switch {
            return Err(problem(format!("it links {a} to itself"), "two switches"));
        }
        let wire = changed(changes).map_err(|(what, expected)| problem(what, expected))?;
        let key = FILE_KEY.into();
        plan.links.push(PlanLink { ends, wire, key });
    }
    if plan.switches.is_empty() {
        let what = format!("{} has no link", graph.file.display());
        return Err(Problem::new(FILE_KEY, what, "one link a line, such as `s1 s2`"));
    }
    in_range(FILE_KEY, plan.switches.len(), 1, SWITCHES_MAX)?;
    let hosts = (graph.hosts_per_switch, 1, &graph.hosts);
    plan.place_hosts([KEY, "hosts_per_switch"], hosts, seed, 0..plan.switches.len())?;
    let number = |name: &str| name[1..].bytes().all(|byte| byte.is_ascii_digit());
    let taken = plan.switches.iter().find(|name| name.starts_with('h') && number(name));
    match taken {
        Some(name) if !plan.hosts.is_empty() => {
            let what = format!("a switch is called {name}");
            Err(Problem::new(FILE_KEY, what, "names like that for hosts only"))
        }
        _ => Ok(plan),
    }
}

/// Parses the words after the two ends.
fn changed(words: &[&str]) -> Result<Vec<WireKey>, (String, &'static str)> {
    let property = |word: &&str| {
        let unknown = || (format!("`{word}` is unknown"), LINE_EXPECTED);
        let (key, text) = word.split_once('=').ok_or_else(unknown)?;
        let property = match key {
            "rate" => rate(text).ok().map(|rate| WireKey::Rate(RateText(rate))),
            "latency" => span(text).ok().map(|span| WireKey::Latency(SpanText(span))),
            "bit_error_rate" => {
                bit_errors(text).ok().map(|bits| WireKey::BitErrorRate(BitErrorsText(bits)))
            }
            "loss_ppm" => text.parse().ok().map(WireKey::LossPpm),
            _ => return Err(unknown()),
        };
        property.ok_or_else(|| (format!("`{word}` cannot be read"), LINE_EXPECTED))
    };
    words.iter().map(property).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(text: &str) -> Result<Plan, Problem> {
        let file = "net.txt".into();
        plan(&GraphFile { file, hosts_per_switch: None, hosts: None, text: text.into() }, 1)
    }

    #[test]
    fn links_are_read_line_by_line() {
        let text = "# a triangle\n0 1\n1 core rate=10Gbps latency=5us # fast\n\ncore 0 loss_ppm=7";
        let plan = graph(text).unwrap();
        assert_eq!(plan.switches, ["s0", "s1", "core"]);
        assert_eq!((plan.links.len(), plan.hosts.len()), (3, 3));
        let [WireKey::Rate(rate), WireKey::Latency(_)] = plan.links[1].wire[..] else { panic!() };
        assert_eq!(rate.0, axon_wire::Rate::gbps(10));
        assert!(matches!(plan.links[2].wire[..], [WireKey::LossPpm(7)]));
    }

    #[test]
    fn a_byte_order_mark_is_no_part_of_a_name() {
        assert_eq!(graph("\u{feff}0 1").unwrap().switches, ["s0", "s1"]);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, wanted) in [
            ("", "net.txt has no link"),
            ("# nothing", "net.txt has no link"),
            ("a b\nb b", "net.txt:2: it links b to itself"),
            ("a b\na", "net.txt:2: `a` is one word"),
            ("a b c", "net.txt:1: `c` is unknown"),
            ("a b rate=7", "net.txt:1: `rate=7` cannot be read"),
            ("a B", "net.txt:1: `B` cannot name a node"),
            ("h1 s2", "a switch is called h1"),
        ] {
            assert_eq!(graph(text).unwrap_err().what, wanted);
        }
    }
}
