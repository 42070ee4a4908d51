//! How much of each kind of fault and of time a model has: this makes its states finite.

/// What may still happen, each so many times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Budget {
    /// Requests: a host asks for another, or an item is put on a stream.
    pub asks: u8,
    /// Steps of the clock, each to the next deadline of any node.
    pub ticks: u8,
    /// Messages that are lost.
    pub losses: u8,
    /// Messages that arrive twice.
    pub duplicates: u8,
    /// Links that fail.
    pub cuts: u8,
    /// Restarts of a switch, or of one end.
    pub restarts: u8,
    /// Restarts of the controller.
    pub controllers: u8,
}

impl Budget {
    /// Both together.
    #[must_use]
    pub const fn plus(self, other: Budget) -> Budget {
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

    /// Takes one of what `of` names; `None` if there is none left.
    #[must_use]
    pub fn take(mut self, of: impl FnOnce(&mut Budget) -> &mut u8) -> Option<Budget> {
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
