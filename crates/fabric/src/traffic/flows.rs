//! Hosts of a traffic entry, and the flows between them.

use super::entry::{ArpEntry, EntryEnds, Pattern};
use super::pattern;
use super::place::Place;
use crate::error::Problem;
use crate::model::Fabric;
use crate::names;
use std::collections::BTreeSet;

/// Hosts that an entry names.
pub(super) struct Ends<'a> {
    fabric: &'a Fabric,
    place: &'a Place,
    entry: &'a EntryEnds,
    /// Seed of random patterns.
    seed: u64,
}

impl<'a> Ends<'a> {
    pub(super) fn new(
        fabric: &'a Fabric,
        place: &'a Place,
        (number, entry): (usize, &'a EntryEnds),
    ) -> Ends<'a> {
        Ends { fabric, place, entry, seed: fabric.seed ^ (number as u64) << 32 }
    }

    fn host(&self, key: &str, name: &str) -> Result<usize, Problem> {
        names::host(self.fabric, self.place.key(key), name, "the name of a host such as h1")
    }

    /// Returns the hosts of the entry: those of its list in order, or all.
    pub(super) fn hosts(&self) -> Result<Vec<usize>, Problem> {
        let Some(names) = &self.entry.hosts else {
            return Ok((0..self.fabric.hosts.len()).collect());
        };
        let mut hosts = Vec::new();
        for (index, name) in names.iter().enumerate() {
            let key = format!("hosts[{index}]");
            match name.split_once("..") {
                None => hosts.push(self.host(&key, name)?),
                Some((first, last)) => {
                    let (first, last) = (self.host(&key, first)?, self.host(&key, last)?);
                    if first > last {
                        let what = format!("{name} runs backwards");
                        return Err(self.place.problem(&key, what, "the earlier host first"));
                    }
                    hosts.extend(first..=last);
                }
            }
        }
        let distinct: BTreeSet<usize> = hosts.iter().copied().collect();
        if distinct.len() < hosts.len() {
            return Err(self.place.problem("hosts", "a host is there twice", "every host once"));
        }
        Ok(hosts)
    }

    fn pair(
        &self,
        (from_key, from): (&str, &str),
        (to_key, to): (&str, &str),
    ) -> Result<(usize, usize), Problem> {
        let (a, b) = (self.host(from_key, from)?, self.host(to_key, to)?);
        if a == b {
            return Err(self.place.problem(
                to_key,
                format!("{to} would talk to itself"),
                "another host",
            ));
        }
        Ok((a, b))
    }

    fn two(&self, hosts: &[usize]) -> Result<(), Problem> {
        if hosts.len() >= 2 {
            return Ok(());
        }
        let what = format!("there are {} hosts", hosts.len());
        Err(self.place.problem("hosts", what, "two hosts or more"))
    }

    pub(super) fn flows(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        let EntryEnds { from, to, pairs, pattern, .. } = self.entry;
        match (from, to, pairs, pattern) {
            (Some(from), Some(to), None, None) => Ok(vec![self.pair(("from", from), ("to", to))?]),
            (None, None, Some(pairs), None) => {
                let pairs = pairs.iter().enumerate();
                let pair = |(index, [from, to]): (usize, &[String; 2])| {
                    let key = |end: u32| format!("pairs[{index}][{end}]");
                    self.pair((&key(0), from), (&key(1), to))
                };
                pairs.map(pair).collect()
            }
            (None, _, None, Some(Pattern::Incast)) => self.to_one(hosts),
            (None, None, None, Some(pattern)) => {
                self.two(hosts)?;
                Ok(match pattern {
                    Pattern::Permutation => pattern::permutation(hosts, self.seed),
                    Pattern::AllToAll => pattern::all_to_all(hosts),
                    Pattern::Random => pattern::random(hosts, self.seed),
                    Pattern::Pairs | Pattern::Incast => {
                        let two = hosts.chunks_exact(2);
                        if !two.remainder().is_empty() {
                            let what = format!("there are {} hosts", hosts.len());
                            return Err(self.place.problem(
                                "pattern",
                                what,
                                "an even number of hosts",
                            ));
                        }
                        two.map(|two| (two[0], two[1])).collect()
                    }
                })
            }
            _ => {
                let what = "senders and receivers are not given, or in more than one way";
                Err(self.place.problem("", what, "from and to, or pairs, or a pattern"))
            }
        }
    }

    /// Returns the flows from all others to `to`.
    pub(super) fn to_one(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        let Some(to) = &self.entry.to else {
            return Err(self.place.problem(
                "",
                "`to` is missing",
                "the host that all others send to",
            ));
        };
        let to = self.host("to", to)?;
        let flows: Vec<_> =
            hosts.iter().filter(|&&from| from != to).map(|&from| (from, to)).collect();
        if flows.is_empty() {
            return Err(self.place.problem("hosts", "there is no other host", "two hosts or more"));
        }
        Ok(flows)
    }

    /// Returns the flows from each to the next, and from the last to the first.
    pub(super) fn cycle(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        self.two(hosts)?;
        let next = hosts.iter().cycle().skip(1);
        Ok(hosts.iter().copied().zip(next.copied()).collect())
    }

    pub(super) fn questions(
        &self,
        hosts: &[usize],
        arp: &ArpEntry,
    ) -> Result<Vec<(usize, usize)>, Problem> {
        self.two(hosts)?;
        let per_host = self.place.count("arp.per_host", arp.per_host.map(u64::from))?.unwrap_or(5);
        let asked = pattern::arp_questions(arp.pattern, hosts.len(), per_host as u32, self.seed);
        let flows = asked
            .iter()
            .zip(hosts)
            .flat_map(|(asked, &from)| asked.iter().map(move |&to| (from, hosts[to])));
        Ok(flows.collect())
    }
}
