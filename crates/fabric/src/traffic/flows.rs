//! Hosts of a traffic entry, and the flows between them.

use super::check::Asked;
use super::entry::{ArpEntry, Entry, Pattern};
use super::pattern;
use crate::error::Problem;
use std::collections::BTreeSet;

impl Asked<'_> {
    fn host(&self, key: &str, name: &str) -> Result<usize, Problem> {
        let host = self.fabric.hosts.iter().position(|host| host.name == name);
        host.ok_or_else(|| {
            let what = format!("there is no host `{name}`");
            self.problem(key, what, "the name of a host such as h1")
        })
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
                        return Err(self.problem(&key, what, "the earlier host first"));
                    }
                    hosts.extend(first..=last);
                }
            }
        }
        let distinct: BTreeSet<usize> = hosts.iter().copied().collect();
        if distinct.len() < hosts.len() {
            return Err(self.problem("hosts", "a host is there twice", "every host once"));
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
            return Err(self.problem(to_key, format!("{to} would talk to itself"), "another host"));
        }
        Ok((a, b))
    }

    fn two(&self, hosts: &[usize]) -> Result<(), Problem> {
        if hosts.len() >= 2 {
            return Ok(());
        }
        let what = format!("there are {} hosts", hosts.len());
        Err(self.problem("hosts", what, "two hosts or more"))
    }

    pub(super) fn flows(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        let Entry { from, to, pairs, pattern, .. } = self.entry;
        let seed = self.fabric.seed ^ (self.number as u64) << 32;
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
                    Pattern::Permutation => pattern::permutation(hosts, seed),
                    Pattern::AllToAll => pattern::all_to_all(hosts),
                    Pattern::Random => pattern::random(hosts, seed),
                    Pattern::Pairs | Pattern::Incast => {
                        let two = hosts.chunks_exact(2);
                        if !two.remainder().is_empty() {
                            let what = format!("there are {} hosts", hosts.len());
                            return Err(self.problem("pattern", what, "an even number of hosts"));
                        }
                        two.map(|two| (two[0], two[1])).collect()
                    }
                })
            }
            _ => {
                let what = "senders and receivers are not given, or in more than one way";
                Err(self.problem("", what, "from and to, or pairs, or a pattern"))
            }
        }
    }

    /// Returns the flows from all others to `to`.
    pub(super) fn to_one(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        let Some(to) = &self.entry.to else {
            return Err(self.problem("", "`to` is missing", "the host that all others send to"));
        };
        let to = self.host("to", to)?;
        let flows: Vec<_> =
            hosts.iter().filter(|&&from| from != to).map(|&from| (from, to)).collect();
        if flows.is_empty() {
            return Err(self.problem("hosts", "there is no other host", "two hosts or more"));
        }
        Ok(flows)
    }

    /// Returns the flows from each to the next, and from the last to the first.
    pub(super) fn cycle(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        self.two(hosts)?;
        let next = hosts.iter().cycle().skip(1);
        Ok(hosts.iter().copied().zip(next.copied()).collect())
    }

    pub(super) fn questions(&self, hosts: &[usize]) -> Result<Vec<(usize, usize)>, Problem> {
        let Some(ArpEntry { pattern, per_host, .. }) = &self.entry.arp else {
            return Ok(Vec::new());
        };
        self.two(hosts)?;
        let per_host = self.count("arp.per_host", per_host.map(u64::from))?.unwrap_or(5) as u32;
        let seed = self.fabric.seed ^ (self.number as u64) << 32;
        let asked = pattern::arp_questions(*pattern, hosts.len(), per_host, seed);
        let flows = asked
            .iter()
            .zip(hosts)
            .flat_map(|(asked, &from)| asked.iter().map(move |&to| (from, hosts[to])));
        Ok(flows.collect())
    }
}
