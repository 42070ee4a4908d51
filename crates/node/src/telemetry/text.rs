//! Text forms of binary values in telemetry: MAC addresses as text, sets of priorities as lists of
//! numbers. For `#[serde(with = "...")]`.

/// A [`MacAddr`](axon_wire::MacAddr) as `02:00:00:00:00:01`.
pub mod mac {
    use alloc::string::String;
    use axon_wire::MacAddr;
    use serde::{Deserialize, Deserializer, Serializer, de};

    /// Writes six bytes in hexadecimal with colons between.
    ///
    /// # Errors
    /// An error of the serializer.
    pub fn serialize<S: Serializer>(mac: &MacAddr, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(mac)
    }

    /// Parses the output of [`serialize`].
    ///
    /// # Errors
    /// The text is not six bytes in hexadecimal with colons between.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<MacAddr, D::Error> {
        let text = String::deserialize(from)?;
        let mut bytes = [0; 6];
        let mut parts = text.split(':');
        let digits = |part: &&str| part.len() == 2;
        for byte in &mut bytes {
            let part = parts.next().filter(digits);
            let read = part.and_then(|part| u8::from_str_radix(part, 16).ok());
            *byte = read.ok_or_else(|| de::Error::custom("not a MAC address"))?;
        }
        match parts.next() {
            None => Ok(MacAddr(bytes)),
            Some(_) => Err(de::Error::custom("more than a MAC address")),
        }
    }
}

/// An optional [`MacAddr`](axon_wire::MacAddr) as `02:00:00:00:00:01` or nothing.
pub mod optional_mac {
    use axon_wire::MacAddr;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Text(#[serde(with = "super::mac")] MacAddr);

    /// Writes the text of [`mac`](super::mac), or nothing for `None`.
    ///
    /// # Errors
    /// An error of the serializer.
    pub(crate) fn serialize<S: Serializer>(
        mac: &Option<MacAddr>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        mac.map(Text).serialize(to)
    }

    /// Parses the output of [`serialize`].
    ///
    /// # Errors
    /// The text is not a MAC address.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<MacAddr>, D::Error> {
        Ok(Option::<Text>::deserialize(from)?.map(|Text(mac)| mac))
    }
}

/// A [`PrioritySet`](axon_wire::PrioritySet) as a list of numbers from 0 to 7, in ascending order.
pub mod priorities {
    use alloc::vec::Vec;
    use axon_wire::PrioritySet;
    use axon_wire::priority::Priority;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes the list.
    ///
    /// # Errors
    /// An error of the serializer.
    pub(crate) fn serialize<S: Serializer>(set: &PrioritySet, to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(set.iter().map(Priority::value))
    }

    /// Parses a list, in any order.
    ///
    /// # Errors
    /// A number is not a priority.
    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PrioritySet, D::Error> {
        Ok(Vec::<Priority>::deserialize(from)?.into_iter().collect())
    }
}
