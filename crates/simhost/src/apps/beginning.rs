//! Start of a source: at its start time, once the target's address is resolved.

/// Start state of a source. Only its first transmission waits for the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// The start time has not come.
    #[default]
    Before,
    /// The start time has come, but the target's address is not resolved.
    Waiting,
    /// The source has sent, or could have.
    Begun,
}

impl Beginning {
    /// Marks the source as started. Returns whether it starts now.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(self, Beginning::Begun) != Beginning::Begun
    }

    /// Marks the source as waiting. Returns the result for [`super::App::poll`]: the frame with the
    /// address polls the source again; the stack must be called once to request it.
    pub(crate) fn wait(&mut self) -> bool {
        std::mem::replace(self, Beginning::Waiting) != Beginning::Waiting
    }

    pub(crate) fn is_waiting(self) -> bool {
        self == Beginning::Waiting
    }

    pub(crate) fn has_begun(self) -> bool {
        self == Beginning::Begun
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stack_is_called_once_and_a_source_begins_once() {
        let mut beginning = Beginning::default();
        assert!(beginning.wait() && !beginning.wait() && beginning.is_waiting());
        assert!(beginning.begin() && !beginning.begin());
        assert!(beginning.has_begun() && !beginning.is_waiting());
    }
}
