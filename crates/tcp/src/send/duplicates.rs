//! Duplicate acknowledgements of a peer without SACK.

/// Number of duplicate acknowledgements that indicate a loss (RFC 5681 §3.2).
const DUPLICATES: u8 = 3;

/// Consecutive duplicate acknowledgements.
#[derive(Clone, Debug, Default)]
pub(super) struct Duplicates {
    count: u8,
    /// Unacknowledged bytes already counted by duplicate acknowledgements.
    counted: u32,
}

impl Duplicates {
    /// Returns the bytes that an acknowledgement delivers. Each duplicate counts as one segment,
    /// which is not counted again when it is acknowledged. The first of those segments was missing,
    /// so no duplicate stands for it (RFC 6937 §3). `is_open` is whether no loss is known.
    pub(super) fn delivered(&mut self, advance: u32, mss: u32, is_open: bool) -> u32 {
        if advance == 0 {
            self.counted = self.counted.saturating_add(mss);
            return mss;
        }
        let again = self.counted.min(advance.saturating_sub(mss));
        self.counted = if is_open { 0 } else { self.counted - again };
        advance - again
    }

    /// Counts an acknowledgement if it is a plain duplicate. Returns whether the count indicates a
    /// loss.
    pub(super) fn count(&mut self, plain: bool) -> bool {
        self.count = self.count.saturating_add(u8::from(plain));
        self.count == DUPLICATES
    }

    /// Restarts the count of duplicates.
    pub(super) fn restart(&mut self) {
        self.count = 0;
    }
}
