//! Numbering of servers, cells and links (DCell paper, section 3.2).

use crate::server::SERVERS_MAX;
use alloc::vec::Vec;

/// Structure of a DCell. A cell of level 0 consists of n servers on one switch. The number of cells
/// of level l - 1 in a cell of level l exceeds the number of servers in one of them by one. There
/// is one link between each pair of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cells {
    /// Number of servers in a cell, by level.
    sizes: Vec<u32>,
}

/// Ends of the link between two cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CellLink {
    /// Server at the end in the cell of the given server.
    pub near: u32,
    /// Server at the end in the other cell.
    pub far: u32,
}

impl Cells {
    /// Maximum number of prefixes on a server. They take twice as many TCAM entries.
    pub(crate) const PREFIXES_MAX: u32 = 960;

    /// Returns the DCell with n-server cells and levels 0 to k. Returns `None` if n is below 2 or
    /// above 256, k is above 3, or the DCell does not fit into tables and addresses.
    pub fn new(n: u32, k: u32) -> Option<Cells> {
        if !(2..=256).contains(&n) || k > 3 {
            return None;
        }
        let mut sizes = alloc::vec![n];
        let mut prefixes = n - 1;
        for level in 0..k as usize {
            let below = sizes[level];
            prefixes += below.checked_mul(2 * (below.ilog2() + 1))?;
            sizes.push(below.checked_mul(below + 1)?);
        }
        let fits = *sizes.last()? < SERVERS_MAX && prefixes <= Cells::PREFIXES_MAX;
        fits.then_some(Cells { sizes })
    }

    /// Returns the highest level.
    pub(crate) fn k(&self) -> usize {
        self.sizes.len() - 1
    }

    /// Returns the number of servers in a cell of a level from 0 to k.
    pub fn size(&self, level: usize) -> u32 {
        self.sizes[level]
    }

    /// Returns the total number of servers.
    pub fn servers(&self) -> u32 {
        self.sizes[self.k()]
    }

    /// Returns the lowest level of a cell that contains both servers.
    pub(crate) fn level(&self, a: u32, b: u32) -> usize {
        let together = |&level: &usize| a / self.sizes[level] == b / self.sizes[level];
        (0..self.k()).find(together).unwrap_or(self.k())
    }

    /// Returns the first server in the cell of a level that contains `server`.
    pub(crate) fn first(&self, server: u32, level: usize) -> u32 {
        server - server % self.sizes[level]
    }

    /// Returns the position of the server's cell of `level - 1` within its cell of `level`, which
    /// is 1 to k.
    pub(crate) fn place(&self, server: u32, level: usize) -> u32 {
        server % self.sizes[level] / self.sizes[level - 1]
    }

    /// Returns the link between the server's cell of `level - 1` and another one within its cell of
    /// `level`. The other cell is given by its position.
    pub(crate) fn link(&self, server: u32, level: usize, other: u32) -> CellLink {
        let (first, size) = (self.first(server, level), self.sizes[level - 1]);
        let own = self.place(server, level);
        // For cells i < j: server j - 1 of cell i, and server i of cell j.
        let end = |cell: u32, toward: u32| {
            let index = if cell < toward { toward - 1 } else { toward };
            first + cell * size + index
        };
        CellLink { near: end(own, other), far: end(other, own) }
    }

    /// Returns the server at the other end of the server's link at a level from 1 to k.
    pub fn peer(&self, server: u32, level: usize) -> u32 {
        let own = self.place(server, level);
        let index = server % self.sizes[level - 1];
        let other = if index >= own { index + 1 } else { index };
        self.link(server, level, other).far
    }

    /// Returns the neighbours of a server, each with its level: first those in its cell of level 0,
    /// then its peer at each level.
    pub(crate) fn neighbours(&self, server: u32) -> impl Iterator<Item = (usize, u32)> {
        let first = self.first(server, 0);
        let cell = (first..first + self.sizes[0]).filter(move |&other| other != server);
        let peers = (1..=self.k()).map(move |level| (level, self.peer(server, level)));
        cell.map(|other| (0, other)).chain(peers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_links_of_a_server_are_those_of_figure_one() {
        let cells = Cells::new(4, 1).unwrap();
        assert_eq!((cells.servers(), cells.k()), (20, 1));
        // [0,0] with [1,0], [0,3] with [4,0], [3,3] with [4,3].
        for (a, b) in [(0, 4), (3, 16), (15, 19)] {
            assert_eq!((cells.peer(a, 1), cells.peer(b, 1)), (b, a));
        }
        assert_eq!(cells.link(1, 1, 4), CellLink { near: 3, far: 16 });
        let neighbours: Vec<(usize, u32)> = cells.neighbours(6).collect();
        assert_eq!(neighbours, [(0, 4), (0, 5), (0, 7), (1, cells.peer(6, 1))]);
    }

    #[test]
    fn every_link_has_two_ends_and_every_pair_of_cells_one_link() {
        for (n, k) in [(2, 1), (3, 1), (4, 1), (2, 2), (3, 2), (4, 2)] {
            let cells = Cells::new(n, k).unwrap();
            for server in 0..cells.servers() {
                for level in 1..=cells.k() {
                    let peer = cells.peer(server, level);
                    assert_eq!(cells.peer(peer, level), server);
                    assert_eq!(cells.level(server, peer), level);
                    let link = cells.link(server, level, cells.place(peer, level));
                    assert_eq!(link, CellLink { near: server, far: peer });
                }
            }
        }
    }

    #[test]
    fn what_does_not_fit_the_tables_is_refused() {
        assert!(Cells::new(6, 2).is_some() && Cells::new(16, 1).is_some());
        for (n, k) in [(1, 1), (300, 0), (2, 4), (16, 2), (256, 3)] {
            assert_eq!(Cells::new(n, k), None, "{n} {k}");
        }
    }
}
