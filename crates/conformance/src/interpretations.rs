//! What sources on the standards differ on, where a case's expectation depends on it: each is read
//! by a default, or the other way if the tester is configured so. `docs/ambiguities.md` says why.

macro_rules! ambiguities {
    ($($(#[$doc:meta])* $ambiguity:ident = $name:literal, $default:literal, $other:literal;)*) => {
        /// An ambiguity of the standards: two interpretations, of which one is the default.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Ambiguity { $($(#[$doc])* $ambiguity,)* }

        impl Ambiguity {
            /// All of them.
            pub const ALL: &'static [Ambiguity] = &[$(Ambiguity::$ambiguity,)*];

            /// Its name, its default interpretation, and the other.
            pub const fn words(self) -> (&'static str, [&'static str; 2]) {
                match self { $(Ambiguity::$ambiguity => ($name, [$default, $other]),)* }
            }
        }
    };
}

ambiguities! {
    /// Whether PFC with bits in the reserved octet of its enable vector is honoured without them,
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
    /// Whether the receiver of a CNM ignores version and reserved bits, or refuses it for them.
    CnmReserved = "cnm-reserved", "ignored", "refused";
}

/// How a CNM is read, where sources differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnmInterpretation {
    /// The quoted priority stands in the three highest bits of its word, or in the lowest.
    pub priority_in_high_bits: bool,
    /// The offset falls while the queue grows, or rises.
    pub offset_falls_with_queue: bool,
    /// The CNM for a frame without a CN-TAG has one of flow 0, or none.
    pub always_tagged: bool,
    /// The quote begins with the EtherType behind all tags, or behind that.
    pub msdu_has_ethertype: bool,
    /// It comes from the congestion point, or from where the sampled frame was going.
    pub source_is_point: bool,
    /// It has the tag of the sampled frame as it is.
    pub copies_tag: bool,
    /// Version and reserved bits other than zero are a reason to refuse it.
    pub strict: bool,
}

/// The ambiguities that have their other interpretation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpretations(Vec<Ambiguity>);

impl Interpretations {
    /// These have their other interpretation, all others their default.
    pub fn other(ambiguities: &[Ambiguity]) -> Interpretations {
        Interpretations(ambiguities.to_vec())
    }

    /// Takes in `NAME=READING`; of two interpretations of one ambiguity the last one holds.
    ///
    /// # Errors
    /// What there is instead.
    pub fn say(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = text.split_once('=').unwrap_or((text, ""));
        let named = Ambiguity::ALL.iter().find(|ambiguity| ambiguity.words().0 == name);
        let Some(&ambiguity) = named else {
            let all: Vec<&str> =
                Ambiguity::ALL.iter().map(|ambiguity| ambiguity.words().0).collect();
            return Err(format!("there are: {}", all.join(", ")));
        };
        let [default, other] = ambiguity.words().1;
        self.0.retain(|one| *one != ambiguity);
        match value {
            _ if value == default => {}
            _ if value == other => self.0.push(ambiguity),
            _ => return Err(format!("expected {name}={default} or {name}={other}")),
        }
        Ok(())
    }

    /// Whether a ambiguity is read the other way.
    pub fn is_other(&self, ambiguity: Ambiguity) -> bool {
        self.0.contains(&ambiguity)
    }

    /// How a CNM is read and written.
    pub fn cnm(&self) -> CnmInterpretation {
        CnmInterpretation {
            priority_in_high_bits: !self.is_other(Ambiguity::CnmPriority),
            offset_falls_with_queue: !self.is_other(Ambiguity::CnmOffset),
            always_tagged: !self.is_other(Ambiguity::CnmTag),
            msdu_has_ethertype: !self.is_other(Ambiguity::CnmQuote),
            source_is_point: !self.is_other(Ambiguity::CnmSource),
            copies_tag: self.is_other(Ambiguity::CnmVlan),
            strict: self.is_other(Ambiguity::CnmReserved),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ambiguity_is_read_as_it_is_said_last() {
        let mut interpretations = Interpretations::default();
        assert!(interpretations.cnm().always_tagged && !interpretations.cnm().strict);
        for text in ["cnm-tag=as-sampled", "tie=higher", "tie=lower", "cnm-reserved=refused"] {
            interpretations.say(text).unwrap();
        }
        assert!(!interpretations.is_other(Ambiguity::Tie));
        assert_eq!(
            (interpretations.cnm().always_tagged, interpretations.cnm().strict),
            (false, true)
        );
        assert_eq!(interpretations.say("tie=low").unwrap_err(), "expected tie=lower or tie=higher");
        assert!(interpretations.say("ties=lower").unwrap_err().contains("ets-bound"));
    }
}
