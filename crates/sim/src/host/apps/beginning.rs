//! How a source begins: when its time has come and the address of its target is here.

/// How far a source has come. Only the first of what it sends waits for the address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Beginning {
    /// Its time has not come.
    #[default]
    Before,
    /// It is time to start, but the target's address is not here.
    Waiting,
    /// It has sent, or could have.
    Begun,
}

impl Beginning {
    /// It may send; says whether it begins now.
    pub(crate) fn begin(&mut self) -> bool {
        std::mem::replace(self, Beginning::Begun) != Beginning::Begun
    }

    /// It has to wait; answers what [`super::App::poll`] has to. The frame that brings the
    /// address polls the source again; the stack has to be called once, to ask for it.
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
