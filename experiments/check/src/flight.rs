//! Messages in flight, which may arrive in any order. The order in which they were sent is not part
//! of the state.

use crate::print::Print;
use std::fmt::{self, Debug};
use std::sync::Arc;

/// Multiset of messages. They are sorted by their contents without numbers, and then by their
/// numbers. States whose numbers have the same order are sorted alike.
#[derive(Clone)]
pub struct Flight<T>(Vec<(Arc<Print>, T)>);

impl<T: Debug> Debug for Flight<T> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(_, message)| message)).finish()
    }
}

impl<T> Default for Flight<T> {
    fn default() -> Flight<T> {
        Flight(Vec::new())
    }
}

impl<T: Clone + Debug> Flight<T> {
    /// Adds a message.
    pub(crate) fn push(&mut self, message: T) {
        let print = Arc::new(Print::new(&message));
        let at = self.0.partition_point(|(other, _)| *other < print);
        self.0.insert(at, (print, message));
    }

    /// Removes the message at this index.
    pub(crate) fn take(&mut self, at: usize) -> T {
        self.0.remove(at).1
    }

    /// Returns a copy of the message at this index, which stays in flight.
    pub fn copy(&self, at: usize) -> T {
        self.0[at].1.clone()
    }

    /// Returns the distinct messages with their indices. Among equal messages, it is the first.
    pub(crate) fn different(&self) -> impl Iterator<Item = (usize, &T)> {
        let is_first = |at: usize| at == 0 || self.0[at - 1].0 != self.0[at].0;
        (0..self.0.len()).filter(move |&at| is_first(at)).map(|at| (at, &self.0[at].1))
    }

    /// Keeps only the messages for which `keep` is true.
    pub(crate) fn retain(&mut self, mut keep: impl FnMut(&T) -> bool) {
        self.0.retain(|(_, message)| keep(message));
    }

    /// Returns the print of each message.
    pub(crate) fn prints(&self) -> impl Iterator<Item = &Print> {
        self.0.iter().map(|(print, _)| &**print)
    }

    /// Returns all messages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|(_, message)| message)
    }

    /// Returns whether there are no messages.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of messages.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::print;

    #[test]
    fn the_order_of_sending_is_forgotten_and_equal_messages_are_one_choice() {
        let (mut one, mut other) = (Flight::default(), Flight::default());
        [3, 1, 3].into_iter().for_each(|message| one.push(message));
        [3, 3, 1].into_iter().for_each(|message| other.push(message));
        assert_eq!(print::of(&one), print::of(&other));
        assert_eq!((one.different().count(), one.len()), (2, 3));
    }
}
