//! Selection of subjects and measurements: the words of `--only`, and the settings of a run.

use anyhow::{Result, bail, ensure};
use serde::Serialize;

/// Maximum number of switches in a line.
pub const SWITCHES_MAX: u32 = 16;
/// Maximum number of rounds.
pub(crate) const ROUNDS_MAX: u32 = 1000;
/// Maximum duration of each measurement, in seconds.
pub(crate) const SECONDS_MAX: u32 = 600;

/// Subject that carries the frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Subject {
    /// Linux bridges that learn addresses, without a spanning tree.
    Bridges,
    /// A tc program that sends every frame out of the other port.
    Redirect,
    /// Open vSwitch with its user-space datapath, one process for each switch.
    Ovs,
    /// Axon with the data plane `full`, the process of each switch.
    Full,
    /// Axon with the data plane `tc`, in the kernel.
    Tc,
    /// Axon with the data plane `xdp`, in drivers.
    Xdp,
    /// The programmable switch with the program `bridge`, the process of each switch.
    Program,
}

impl Subject {
    /// All subjects, in the order in which the table has them. The first one is the reference.
    pub(crate) const ALL: [Subject; 7] = [
        Subject::Bridges,
        Subject::Redirect,
        Subject::Ovs,
        Subject::Full,
        Subject::Tc,
        Subject::Xdp,
        Subject::Program,
    ];

    /// Returns the name of the subject in `--only`, in the table and in the JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Subject::Bridges => "bridges",
            Subject::Redirect => "redirect",
            Subject::Ovs => "ovs",
            Subject::Full => "full",
            Subject::Tc => "tc",
            Subject::Xdp => "xdp",
            Subject::Program => "program",
        }
    }

    /// Returns whether the subject is a data plane of Axon.
    pub(crate) const fn is_axon(self) -> bool {
        matches!(self, Subject::Full | Subject::Tc | Subject::Xdp | Subject::Program)
    }
}

/// Kind of measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// One and four TCP streams.
    Tcp,
    /// Round trips, paced and back to back.
    Ping,
    /// Frames of 64 bytes: the peak, overload, CPU time.
    Packets,
    /// Integrity of TCP over IPv6 and of UDP super-packets.
    Intact,
    /// Shares of two ingress ports in one rated egress.
    Shares,
}

impl Part {
    /// All kinds of measurements.
    pub(crate) const ALL: [Part; 5] =
        [Part::Tcp, Part::Ping, Part::Packets, Part::Intact, Part::Shares];

    /// Returns the name of the measurement in `--only`.
    pub const fn name(self) -> &'static str {
        match self {
            Part::Tcp => "tcp",
            Part::Ping => "ping",
            Part::Packets => "packets",
            Part::Intact => "intact",
            Part::Shares => "shares",
        }
    }
}

/// Settings of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Number of rounds, 1 or more.
    pub rounds: u32,
    /// Approximate duration of each measurement in whole seconds, 1 or more.
    pub seconds: u32,
    /// Numbers of switches in the line, each of which is measured.
    pub switches: Vec<u32>,
    /// Subjects that are measured.
    pub subjects: Vec<Subject>,
    /// Measurements that are taken.
    pub parts: Vec<Part>,
}

impl Settings {
    /// Checks the numbers, and parses the words in `--only`, which are names of subjects and of
    /// measurements. If no subject is named, all of them are selected, and likewise for
    /// measurements.
    ///
    /// # Errors
    /// A number is out of its range, or a word is unknown. In the latter case, the error lists the
    /// known words.
    pub fn new(rounds: u32, seconds: u32, switches: &[u32], only: &[String]) -> Result<Settings> {
        let within = |name: &str, value: u32, max: u32| {
            ensure!((1..=max).contains(&value), "{name} {value}: expected 1 to {max}");
            Ok(())
        };
        within("--rounds", rounds, ROUNDS_MAX)?;
        within("--seconds", seconds, SECONDS_MAX)?;
        ensure!(!switches.is_empty(), "--switches: expected numbers such as 1,3,5");
        switches.iter().try_for_each(|&count| within("--switches", count, SWITCHES_MAX))?;
        let mut switches = switches.to_vec();
        switches.sort_unstable();
        switches.dedup();
        let (mut subjects, mut parts) = (Vec::new(), Vec::new());
        for word in only {
            let subject = Subject::ALL.into_iter().find(|subject| subject.name() == word);
            let part = Part::ALL.into_iter().find(|part| part.name() == word);
            if subject.is_none() && part.is_none() {
                let names = Subject::ALL.iter().map(|subject| subject.name());
                let names = names.chain(Part::ALL.iter().map(|part| part.name()));
                let names: Vec<&str> = names.collect();
                bail!("--only {word}: expected one of {}", names.join(", "));
            }
            subjects.extend(subject);
            parts.extend(part);
        }
        let chosen = |wanted: &[Subject]| {
            let all = Subject::ALL.into_iter();
            all.filter(|one| wanted.is_empty() || wanted.contains(one)).collect()
        };
        let parts: Vec<Part> =
            Part::ALL.into_iter().filter(|part| parts.is_empty() || parts.contains(part)).collect();
        Ok(Settings { rounds, seconds, switches, subjects: chosen(&subjects), parts })
    }

    /// Returns whether a measurement other than shares is selected, which requires a line.
    pub(crate) fn has_line(&self) -> bool {
        self.parts.iter().any(|&part| part != Part::Shares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(only: &[&str]) -> Result<Settings> {
        let only: Vec<String> = only.iter().map(|&word| word.to_owned()).collect();
        Settings::new(3, 1, &[5, 1, 3, 3], &only)
    }

    #[test]
    fn words_of_one_kind_leave_the_other_kind_whole() {
        let all = of(&[]).unwrap();
        assert_eq!((all.subjects.len(), all.parts.len(), all.switches), (7, 5, vec![1, 3, 5]));
        let planes = of(&["tc", "bridges"]).unwrap();
        assert_eq!(planes.subjects, [Subject::Bridges, Subject::Tc], "in the table's order");
        assert_eq!(planes.parts.len(), 5);
        let tcp = of(&["tcp"]).unwrap();
        assert_eq!((tcp.subjects.len(), tcp.parts), (7, vec![Part::Tcp]));
        assert!(!of(&["shares"]).unwrap().has_line());
    }

    #[test]
    fn what_names_nothing_is_refused_with_the_names_there_are() {
        let error = of(&["tpc"]).unwrap_err().to_string();
        assert!(error.starts_with("--only tpc: expected one of bridges, redirect"), "{error}");
        assert!(error.ends_with("tcp, ping, packets, intact, shares"), "{error}");
        assert!(Settings::new(0, 1, &[3], &[]).is_err());
        assert!(Settings::new(1, 0, &[3], &[]).is_err());
        assert!(Settings::new(1, 1, &[], &[]).is_err());
        assert!(Settings::new(1, 1, &[17], &[]).is_err());
    }
}
