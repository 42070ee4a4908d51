//! Pings as text tables.

use axon_fabric::model::Fabric;
use axon_lab::Ping;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Maximum number of hosts for which each pair has a cell; beyond, each host has a row.
const MATRIX_HOSTS_MAX: usize = 12;
/// Maximum number of listed pairs without an answer.
const LISTED_MAX: usize = 8;

/// Returns the round trip times, the missing answers, and the totals.
pub(super) fn text(fabric: &Fabric, pings: &[Ping]) -> String {
    let hosts: BTreeSet<usize> = pings.iter().flat_map(|ping| [ping.from, ping.to]).collect();
    let name = |host: usize| fabric.hosts[host].name.as_str();
    let ends = |ping: &Ping| [ping.from, ping.to];
    let is_hub = |hub: &usize| pings.iter().all(|ping| ends(ping).contains(hub));
    let mut text = match (hosts.len(), hosts.iter().copied().find(is_hub)) {
        (3.., Some(hub)) => star(hub, &hosts, pings, name),
        (0..=MATRIX_HOSTS_MAX, _) => matrix(&hosts, pings, name),
        _ => rows(&hosts, pings, name),
    };
    let without = pings.iter().filter(|ping| ping.address.is_none());
    let without: BTreeSet<usize> = without.map(|ping| ping.to).collect();
    if !without.is_empty() {
        let names: Vec<&str> = without.iter().map(|&host| name(host)).collect();
        let (names, first) = (first(&names), names[0]);
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "no address: {names}; run a DHCP client there, such as `axon exec {first} -- udhcpc -i \
             {first}-p0`, or start the lab without --bare"
        );
    }
    let silent = pings.iter().filter(|ping| ping.address.is_some() && ping.rtt_ns.is_none());
    let silent: Vec<String> =
        silent.map(|ping| format!("{} to {}", name(ping.from), name(ping.to))).collect();
    if !silent.is_empty() {
        let _ = writeln!(text, "no answer: {}", first(&silent));
    }
    let answered = pings.iter().filter_map(|ping| Some((ping.rtt_ns?, ping)));
    let requests: u32 = pings.iter().map(|ping| ping.requests).sum();
    let (count, pairs) = (answered.clone().count(), pings.len());
    let _ = write!(text, "{count} of {pairs} pairs answered, {requests} requests");
    if let Some((rtt, ping)) = answered.max_by_key(|(rtt, _)| *rtt) {
        let (rtt, from, to) = (millis(rtt), name(ping.from), name(ping.to));
        let _ = write!(text, ", longest round trip {rtt} ms from {from} to {to}");
    }
    text.push('\n');
    text
}

/// Returns the first of some names, and the number of further ones.
fn first(names: &[impl AsRef<str>]) -> String {
    let listed = names.iter().take(LISTED_MAX).map(AsRef::as_ref);
    let text = listed.collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(LISTED_MAX) {
        0 => text,
        more => format!("{text} and {more} more"),
    }
}

/// Returns a table of both directions between one host and each other.
fn star<'a>(
    hub: usize,
    hosts: &BTreeSet<usize>,
    pings: &[Ping],
    name: impl Fn(usize) -> &'a str,
) -> String {
    let mut all =
        vec![vec!["ms".to_owned(), format!("from {}", name(hub)), format!("to {}", name(hub))]];
    for &other in hosts.iter().filter(|host| **host != hub) {
        let mut row = vec![name(other).to_owned()];
        row.extend([(hub, other), (other, hub)].map(|pair| cell(pings, pair)));
        all.push(row);
    }
    aligned(&all)
}

/// Returns the round trip time of one pair.
fn cell(pings: &[Ping], pair: (usize, usize)) -> String {
    let found = pings.iter().find(|ping| (ping.from, ping.to) == pair);
    found.map_or("-".to_owned(), |ping| ping.rtt_ns.map_or("none".to_owned(), millis))
}

/// Returns a table with a cell for each pair.
fn matrix<'a>(hosts: &BTreeSet<usize>, pings: &[Ping], name: impl Fn(usize) -> &'a str) -> String {
    let mut all = vec![vec!["ms".to_owned()]];
    all[0].extend(hosts.iter().map(|&host| name(host).to_owned()));
    for &from in hosts {
        let mut row = vec![name(from).to_owned()];
        row.extend(hosts.iter().map(|&to| cell(pings, (from, to))));
        all.push(row);
    }
    format!("round trips from the host of the row to that of the column\n{}", aligned(&all))
}

/// Returns a table with a row for each host.
fn rows<'a>(hosts: &BTreeSet<usize>, pings: &[Ping], name: impl Fn(usize) -> &'a str) -> String {
    let headings = ["from", "answered", "requests", "median rtt", "longest rtt"];
    let mut all = vec![headings.map(str::to_owned).to_vec()];
    for &host in hosts {
        let own: Vec<&Ping> = pings.iter().filter(|ping| ping.from == host).collect();
        let mut rtts: Vec<u64> = own.iter().filter_map(|ping| ping.rtt_ns).collect();
        rtts.sort_unstable();
        let rtt =
            |at: Option<&u64>| at.map_or("-".to_owned(), |&rtt| format!("{} ms", millis(rtt)));
        let requests: u32 = own.iter().map(|ping| ping.requests).sum();
        all.push(vec![
            name(host).to_owned(),
            format!("{} of {}", rtts.len(), own.len()),
            requests.to_string(),
            rtt(rtts.get(rtts.len() / 2)),
            rtt(rtts.last()),
        ]);
    }
    aligned(&all)
}

/// Aligns columns: the first to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows.first().map_or(0, Vec::len)).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let _ = write!(text, "{:<width$}", row[0], width = widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            let _ = write!(text, "  {cell:>width$}");
        }
        text.push('\n');
    }
    text
}

/// Formats milliseconds with three decimals.
fn millis(nanos: u64) -> String {
    format!("{:.3}", nanos as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fabric(hosts: u32) -> Fabric {
        let text =
            format!("name: a\ntopology: {{line: {{switches: 1, hosts_per_switch: {hosts}}}}}");
        axon_fabric::parse("a.yaml".as_ref(), &text).unwrap()
    }

    fn ping(from: usize, to: usize, rtt_ns: Option<u64>) -> Ping {
        let address = Some("10.0.0.2".parse().unwrap());
        Ping { from, to, address, requests: 1, rtt_ns }
    }

    #[test]
    fn each_pair_of_a_few_hosts_has_a_cell_and_what_is_missing_is_named() {
        let mut lost = ping(1, 0, None);
        lost.requests = 5;
        let nowhere = Ping { address: None, requests: 0, ..ping(1, 2, None) };
        let back = ping(2, 0, Some(900_000));
        let text = text(&fabric(3), &[ping(0, 1, Some(1_234_567)), lost, nowhere, back]);
        let expected = "\
round trips from the host of the row to that of the column
ms     h1     h2    h3
h1      -  1.235     -
h2   none      -  none
h3  0.900      -     -
no address: h3; run a DHCP client there, such as `axon exec h3 -- udhcpc -i h3-p0`, or start the \
lab without --bare
no answer: h2 to h1
2 of 4 pairs answered, 7 requests, longest round trip 1.235 ms from h1 to h2
";
        assert_eq!(text, expected);
    }

    #[test]
    fn the_pairs_of_one_host_have_a_row_for_each_other() {
        let pings = [ping(1, 0, Some(500_000)), ping(0, 1, None), ping(2, 1, Some(700_000))];
        let text = text(&fabric(3), &pings);
        assert!(
            text.starts_with("ms  from h2  to h2\nh1    0.500   none\nh3        -  0.700\n"),
            "{text}"
        );
    }

    #[test]
    fn each_of_many_hosts_has_a_row_and_a_long_list_is_cut_short() {
        let mut pings: Vec<Ping> = (1..20).map(|to| ping(0, to, None)).collect();
        pings.push(ping(1, 2, Some(1_000_000)));
        pings[0].rtt_ns = Some(2_000_000);
        let text = text(&fabric(20), &pings);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "from  answered  requests  median rtt  longest rtt");
        assert_eq!(lines[1], "h1     1 of 19        19    2.000 ms     2.000 ms");
        assert!(lines[21].ends_with("h1 to h10 and 10 more"), "{text}");
        assert!(lines[22].starts_with("2 of 20 pairs answered, 20 requests"), "{text}");
    }
}
