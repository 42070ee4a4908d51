//! Numbers of servers, and next hops between them.

use core::fmt;

/// Maximum number of next hops in a header.
pub(super) const NHAS_MAX: usize = 8;

/// Structure of a BCube. Servers are numbered with k + 1 digits in base n. Servers whose numbers
/// differ only in the digit of level l are neighbours via a switch of level l.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cube {
    n: u32,
    levels: u32,
}

/// Next hop address (NHA): level of the changed digit and its new value, in one byte.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Nha(pub u8);

impl fmt::Display for Nha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Cube {
    /// Maximum number of next hops of a server. With eight index values each, they take half of a
    /// TCAM with 2,048 entries.
    pub(crate) const NEIGHBOURS_MAX: u32 = 128;
    /// Highest level, since a path of k + 2 hops must fit into eight next hops.
    pub(crate) const K_MAX: u32 = 6;

    /// Returns the BCube with n-port switches and levels 0 to k. Returns `None` if n is below 2 or
    /// the BCube does not fit into tables and header.
    pub fn new(n: u32, k: u32) -> Option<Cube> {
        let cube = Cube { n, levels: k.checked_add(1)? };
        let servers = n.checked_pow(cube.levels)?;
        let fits = (2..=256).contains(&n)
            && k <= Cube::K_MAX
            && cube.levels * n <= 256
            && cube.levels * (n - 1) <= Cube::NEIGHBOURS_MAX
            && servers < crate::server::SERVERS_MAX;
        fits.then_some(cube)
    }

    /// Returns the number of servers: n to the power of k + 1.
    pub(crate) fn servers(self) -> u32 {
        self.n.pow(self.levels)
    }

    /// Returns the number of levels: k + 1.
    pub(crate) fn levels(self) -> u32 {
        self.levels
    }

    /// Returns a digit, 0 to n - 1, of a server's number. `level` is 0 to k.
    pub(crate) fn digit(self, server: u32, level: u32) -> u32 {
        server / self.n.pow(level) % self.n
    }

    /// Returns the server whose number has another digit at `level`.
    fn with_digit(self, server: u32, level: u32, digit: u32) -> u32 {
        let weight = self.n.pow(level);
        server - self.digit(server, level) * weight + digit * weight
    }

    /// Returns the number of digits that differ, which is the length of a shortest path between the
    /// servers in hops.
    pub fn distance(self, a: u32, b: u32) -> u32 {
        (0..self.levels).filter(|&level| self.digit(a, level) != self.digit(b, level)).count()
            as u32
    }

    /// Returns the next hop that sets the digit at `level` to `digit`.
    pub(crate) fn nha(self, level: u32, digit: u32) -> Nha {
        Nha((level * self.n + digit) as u8)
    }

    /// Returns the level of a next hop. It is above k if the next hop is invalid.
    pub(crate) fn level_of(self, nha: Nha) -> u32 {
        u32::from(nha.0) / self.n
    }

    /// Returns the server reached from `server` by a next hop, or `None` if there is none.
    pub fn step(self, server: u32, nha: Nha) -> Option<u32> {
        let (level, digit) = (self.level_of(nha), u32::from(nha.0) % self.n);
        let next = (level < self.levels).then(|| self.with_digit(server, level, digit))?;
        (next != server).then_some(next)
    }

    /// Returns the next hop that sets the digit at `level` to that of `to`.
    pub(crate) fn toward(self, to: u32, level: u32) -> Nha {
        self.nha(level, self.digit(to, level))
    }

    /// Returns the (k + 1)(n - 1) next hops of a server, each with the neighbour that it leads to.
    pub(crate) fn neighbours(self, server: u32) -> impl Iterator<Item = (Nha, u32)> {
        let all = (0..self.levels * self.n).map(|nha| Nha(nha as u8));
        all.filter_map(move |nha| Some((nha, self.step(server, nha)?)))
    }

    /// Returns the level of a switch, given its node number. Switches follow the servers, level by
    /// level.
    pub(crate) fn level_of_switch(self, node: u32) -> Option<u32> {
        let switch = node.checked_sub(self.servers())?;
        let level = switch / (self.servers() / self.n);
        (level < self.levels).then_some(level)
    }

    /// Returns the level of the digit in which two servers differ, if it is the only one.
    pub(crate) fn level_between(self, a: u32, b: u32) -> Option<u32> {
        let mut differ =
            (0..self.levels).filter(|&level| self.digit(a, level) != self.digit(b, level));
        let level = differ.next()?;
        differ.next().is_none().then_some(level)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn servers_are_neighbours_if_one_digit_differs() {
        let cube = Cube::new(4, 1).unwrap();
        assert_eq!((cube.servers(), cube.levels()), (16, 2));
        let neighbours: Vec<(Nha, u32)> = cube.neighbours(6).collect();
        let expected = [(0, 4), (1, 5), (3, 7), (4, 2), (6, 10), (7, 14)];
        assert_eq!(neighbours, expected.map(|(nha, server)| (Nha(nha), server)));
        for (nha, server) in neighbours {
            assert_eq!(cube.level_between(6, server), Some(cube.level_of(nha)));
            assert_eq!(cube.toward(server, cube.level_of(nha)), nha);
            assert_eq!(cube.distance(6, server), 1);
        }
        assert_eq!(cube.level_between(6, 9), None, "both digits differ");
        assert_eq!((cube.step(6, Nha(2)), cube.step(6, Nha(8))), (None, None));
    }

    #[test]
    fn switches_stand_behind_the_servers_level_by_level() {
        let cube = Cube::new(4, 1).unwrap();
        let levels = [15, 16, 19, 20, 23, 24].map(|node| cube.level_of_switch(node));
        assert_eq!(levels, [None, Some(0), Some(0), Some(1), Some(1), None]);
    }

    #[test]
    fn a_cube_fits_header_and_tables() {
        assert!(Cube::new(8, 3).is_some() && Cube::new(2, 6).is_some());
        for (n, k) in [(1, 1), (2, 7), (70, 1), (300, 0), (12, 6), (u32::MAX, 1), (4, u32::MAX)] {
            assert_eq!(Cube::new(n, k), None, "{n} {k}");
        }
    }
}
