//! Budget of faults and time steps for a model, which makes its state space finite.

/// Number of events of each kind that remain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Requests: a host sends an ARP request, or an item is put on a stream.
    pub asks: u8,
    /// Clock steps, each of which goes to the next deadline of any node.
    pub ticks: u8,
    /// Message losses.
    pub losses: u8,
    /// Message duplications.
    pub duplicates: u8,
    /// Link failures.
    pub cuts: u8,
    /// Restarts of a switch, or of one end of a stream.
    pub restarts: u8,
    /// Restarts of the controller.
    pub controllers: u8,
}

impl Budget {
    /// Returns the sum of both budgets.
    #[must_use]
    pub(crate) const fn plus(self, other: Budget) -> Budget {
        Budget {
            asks: self.asks + other.asks,
            ticks: self.ticks + other.ticks,
            losses: self.losses + other.losses,
            duplicates: self.duplicates + other.duplicates,
            cuts: self.cuts + other.cuts,
            restarts: self.restarts + other.restarts,
            controllers: self.controllers + other.controllers,
        }
    }

    /// Takes one event from the field that `of` selects. Returns `None` if none is left.
    #[must_use]
    pub(crate) fn take(mut self, of: impl FnOnce(&mut Budget) -> &mut u8) -> Option<Budget> {
        let left = of(&mut self);
        *left = left.checked_sub(1)?;
        Some(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_cannot_be_taken() {
        let budget = Budget { losses: 1, ..Budget::default() };
        let left = budget.take(|left| &mut left.losses);
        assert_eq!(left, Some(Budget::default()));
        assert_eq!(Budget::default().take(|left| &mut left.losses), None);
    }
}
