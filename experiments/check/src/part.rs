//! Parts of a state. Copies share a part and its print until one of them is changed.

use crate::print::Print;
use std::fmt::{self, Debug};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, OnceLock};

/// Part of a state.
#[derive(Clone)]
pub struct Part<T> {
    value: Arc<T>,
    print: OnceLock<Arc<Print>>,
}

impl<T> Part<T> {
    /// Creates a part with this value.
    pub(crate) fn new(value: T) -> Part<T> {
        Part { value: Arc::new(value), print: OnceLock::new() }
    }
}

impl<T: Debug> Part<T> {
    /// Returns the print of the part.
    pub(crate) fn print(&self) -> &Print {
        self.print.get_or_init(|| Arc::new(Print::new(&*self.value)))
    }
}

impl<T> Deref for Part<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

impl<T: Clone> DerefMut for Part<T> {
    /// Mutable access makes the print invalid.
    fn deref_mut(&mut self) -> &mut T {
        self.print = OnceLock::new();
        Arc::make_mut(&mut self.value)
    }
}

impl<T: Debug> Debug for Part<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        self.value.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_that_is_changed_leaves_the_other_as_it_was() {
        let one = Part::new(vec![1]);
        let before = one.print().clone();
        let mut other = one.clone();
        other.push(2);
        assert_ne!(*other.print(), before);
        other.pop();
        assert_eq!((other.print(), one.print()), (&before, &before));
    }
}
