//! What sources on the standards differ on, where a case's expectation depends on it: each is
//! read by a default, or the other way if the tester is told so. `docs/ambiguities.md` says why.

use axon_wire::cn::CnmFormat;
use axon_wire::mac_control::Reserved;

macro_rules! doubts {
    ($($(#[$doc:meta])* $doubt:ident = $name:literal, $default:literal, $other:literal;)*) => {
        /// A doubt.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Doubt { $($(#[$doc])* $doubt,)* }

        impl Doubt {
            /// All of them.
            pub const ALL: &'static [Doubt] = &[$(Doubt::$doubt,)*];

            /// What it is called, its default reading, and the other.
            pub const fn words(self) -> (&'static str, [&'static str; 2]) {
                match self { $(Doubt::$doubt => ($name, [$default, $other]),)* }
            }
        }
    };
}

doubts! {
    /// Whether PFC with bits in the reserved octet of its enable vector is obeyed without them,
    /// or dropped.
    PfcReserved = "pfc-reserved", "ignored", "refused";
    /// Whether a class may be 10 % off of its own share, or of the link.
    EtsBound = "ets-bound", "share", "link";
    /// Whether shares are measured for 10 million bit times (10 ms at least), or for ten times
    /// that.
    EtsWindow = "ets-window", "usual", "long";
    /// Which of two willing ends keeps its PFC: the one with this address. For a device that the
    /// tester cannot configure.
    Tie = "tie", "lower", "higher";
    /// Where the quoted priority stands in its 16 bits.
    CnmPriority = "cnm-priority", "high", "low";
    /// Whether the offset of a CNM falls or rises with the queue.
    CnmOffset = "cnm-offset", "falls", "rises";
    /// Whether the CNM for a frame without a CN-TAG has one.
    CnmTag = "cnm-tag", "always", "as-sampled";
    /// Whether the quote begins with the EtherType behind all tags, or behind it.
    CnmQuote = "cnm-quote", "ethertype", "behind";
    /// Whether a CNM comes from the congestion point, or from where the sampled frame was going.
    CnmSource = "cnm-source", "point", "destination";
    /// Whether a CNM has a priority of its own, or the sampled frame's tag.
    CnmVlan = "cnm-vlan", "own", "copied";
    /// Whether who hears a CNM ignores version and reserved bits, or refuses it for them.
    CnmReserved = "cnm-reserved", "ignored", "refused";
}

/// Which doubts are read the other way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings(Vec<Doubt>);

impl Readings {
    /// These are read the other way than by default.
    pub fn other(doubts: &[Doubt]) -> Readings {
        Readings(doubts.to_vec())
    }

    /// Takes in `NAME=READING`; of two readings of one doubt the last one holds.
    ///
    /// # Errors
    /// What there is instead.
    pub fn say(&mut self, text: &str) -> Result<(), String> {
        let (name, reading) = text.split_once('=').unwrap_or((text, ""));
        let named = Doubt::ALL.iter().find(|doubt| doubt.words().0 == name);
        let Some(&doubt) = named else {
            let all: Vec<&str> = Doubt::ALL.iter().map(|doubt| doubt.words().0).collect();
            return Err(format!("there are: {}", all.join(", ")));
        };
        let [default, other] = doubt.words().1;
        self.0.retain(|one| *one != doubt);
        match reading {
            _ if reading == default => {}
            _ if reading == other => self.0.push(doubt),
            _ => return Err(format!("expected {name}={default} or {name}={other}")),
        }
        Ok(())
    }

    /// Whether a doubt is read the other way.
    pub fn is_other(&self, doubt: Doubt) -> bool {
        self.0.contains(&doubt)
    }

    /// How a CNM is written and heard.
    pub fn cnm(&self) -> CnmFormat {
        CnmFormat {
            priority_in_high_bits: !self.is_other(Doubt::CnmPriority),
            offset_falls_with_queue: !self.is_other(Doubt::CnmOffset),
            always_tagged: !self.is_other(Doubt::CnmTag),
            msdu_has_ethertype: !self.is_other(Doubt::CnmQuote),
            source_is_point: !self.is_other(Doubt::CnmSource),
            copies_tag: self.is_other(Doubt::CnmVlan),
            strict: self.is_other(Doubt::CnmReserved),
            ..CnmFormat::default()
        }
    }

    /// What becomes of PFC with reserved bits.
    pub fn pfc_reserved(&self) -> Reserved {
        if self.is_other(Doubt::PfcReserved) { Reserved::Refused } else { Reserved::Ignored }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_doubt_is_read_as_it_is_said_last() {
        let mut readings = Readings::default();
        assert_eq!(readings.cnm(), CnmFormat::default());
        for text in ["cnm-tag=as-sampled", "tie=higher", "tie=lower", "cnm-reserved=refused"] {
            readings.say(text).unwrap();
        }
        assert!(!readings.is_other(Doubt::Tie));
        assert_eq!((readings.cnm().always_tagged, readings.cnm().strict), (false, true));
        assert_eq!(readings.say("tie=low").unwrap_err(), "expected tie=lower or tie=higher");
        assert!(readings.say("ties=lower").unwrap_err().contains("ets-bound"));
    }
}
