//! Ambiguities in the standards on which a case's expectation depends. Each has a default
//! interpretation and an alternative that can be configured. `docs/ambiguities.md` gives the
//! reasons.

macro_rules! ambiguities {
    ($($(#[$doc:meta])* $ambiguity:ident = $name:literal, $default:literal, $other:literal;)*) => {
        /// Ambiguity in the standards, with a default interpretation and an alternative.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Ambiguity { $($(#[$doc])* $ambiguity,)* }

        impl Ambiguity {
            /// All ambiguities.
            pub const ALL: &'static [Ambiguity] = &[$(Ambiguity::$ambiguity,)*];

            /// Returns the name, the default interpretation, and the alternative.
            pub const fn words(self) -> (&'static str, [&'static str; 2]) {
                match self { $(Ambiguity::$ambiguity => ($name, [$default, $other]),)* }
            }
        }
    };
}

ambiguities! {
    /// PFC with bits in the reserved octet of its enable vector: honoured without these bits,
    /// or dropped.
    PfcReserved = "pfc-reserved", "ignored", "refused";
    /// Tolerance of an ETS share: 10 % of the share itself, or 10 % of the link.
    EtsBound = "ets-bound", "share", "link";
    /// Time for which ETS shares are measured: 10 million bit times (at least 10 ms), or ten times
    /// as long.
    EtsWindow = "ets-window", "usual", "long";
    /// The one of two willing ends that keeps its PFC, by address. For a device that the tester
    /// cannot configure.
    Tie = "tie", "lower", "higher";
    /// Position of the quoted priority in its 16 bits: high or low bits.
    CnmPriority = "cnm-priority", "high", "low";
    /// Direction of the offset of a CNM as the queue grows: falling or rising.
    CnmOffset = "cnm-offset", "falls", "rises";
    /// CN-TAG of the CNM for a frame without one: always, or as in the sampled frame.
    CnmTag = "cnm-tag", "always", "as-sampled";
    /// Start of the quote: at the EtherType behind all tags, or behind that EtherType.
    CnmQuote = "cnm-quote", "ethertype", "behind";
    /// Source of a CNM: the congestion point, or the sampled frame's destination.
    CnmSource = "cnm-source", "point", "destination";
    /// VLAN tag of a CNM: one with the CNM's own priority, or a copy of the sampled frame's.
    CnmVlan = "cnm-vlan", "own", "copied";
    /// Unknown version and reserved bits in a CNM: ignored by the receiver, or refused.
    CnmReserved = "cnm-reserved", "ignored", "refused";
}

/// Format of CNMs, as far as interpretations differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CnmInterpretation {
    /// True if the quoted priority is in the three highest bits of its word, false if it is in the
    /// lowest.
    pub priority_in_high_bits: bool,
    /// True if the offset falls while the queue grows, false if it rises.
    pub offset_falls_with_queue: bool,
    /// True if the CNM for a frame without a CN-TAG has a CN-TAG with flow 0, false if it has none.
    pub always_tagged: bool,
    /// True if the quote begins with the EtherType behind all tags, false if it begins after that
    /// EtherType.
    pub msdu_has_ethertype: bool,
    /// True if the source address is that of the congestion point, false if it is the destination
    /// of the sampled frame.
    pub source_is_point: bool,
    /// True if the CNM copies the VLAN tag of the sampled frame.
    pub copies_tag: bool,
    /// True if a CNM with a non-zero version or reserved bits is refused.
    pub strict: bool,
}

/// Set of the ambiguities for which the alternative interpretation applies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Interpretations(Vec<Ambiguity>);

impl Interpretations {
    /// Returns a set in which the alternative applies to these ambiguities, and the default to all
    /// others.
    pub fn other(ambiguities: &[Ambiguity]) -> Interpretations {
        Interpretations(ambiguities.to_vec())
    }

    /// Applies `NAME=READING`. The last interpretation given for an ambiguity wins.
    ///
    /// # Errors
    /// Lists the known names or interpretations.
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

    /// Returns whether the alternative interpretation applies to an ambiguity.
    pub fn is_other(&self, ambiguity: Ambiguity) -> bool {
        self.0.contains(&ambiguity)
    }

    /// Returns the format of CNMs under these interpretations.
    pub(crate) fn cnm(&self) -> CnmInterpretation {
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
