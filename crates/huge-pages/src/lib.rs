//! Huge pages for the memory of a process that walks through much of it.
//!
//! What a simulation of a large fabric needs for an event lies anywhere in its memory. With pages
//! of 4 KiB hardly any of it is in the processor's TLB, and each look-up walks through the tables
//! of pages, twice in a virtual machine. With pages of 2 MiB most of it is.
//!
//! A kernel hands out huge pages to those who ask (`madvise`), to all, or to nobody:
//! `/sys/kernel/mm/transparent_hugepage/enabled`. [`HugePages`] asks for all memory that the
//! process has allocated, and has what is in use already moved into them (`MADV_COLLAPSE`, from
//! Linux 6.1 on; an older one does so in its own time). The content stays as it is. The process has
//! more memory: all of a huge page is in use if a part of it is.

use std::fs;

/// A process that has less in memory keeps its small pages.
const WORTH: u64 = 8 << 20;
/// The size of a huge page of the processors that we know.
const HUGE: u64 = 2 << 20;

/// Huge pages for all that this process has allocated, and will have.
#[derive(Debug)]
pub struct HugePages {
    /// Bytes in memory from which they are asked for the next time.
    next: u64,
}

impl Default for HugePages {
    fn default() -> HugePages {
        let next = if is_allowed() { WORTH } else { u64::MAX };
        HugePages { next }
    }
}

impl HugePages {
    /// Asks for them if the process, of which at most so many bytes are in memory, has grown by an
    /// eighth since the last time, and is large. Says whether it did.
    pub fn ask(&mut self, resident: u64) -> bool {
        if self.next == u64::MAX || resident < self.next {
            return false;
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        // Addresses that are kept for later, such as those of a snapshot to come, are not walked
        // through.
        let most = 4 * resident;
        for range in maps.lines().filter_map(Range::of_heap).filter(|range| range.bytes() <= most) {
            range.advise(libc::MADV_HUGEPAGE);
            range.advise(libc::MADV_COLLAPSE);
        }
        self.next = resident / 8 * 9;
        true
    }
}

/// Whether the kernel hands out any.
fn is_allowed() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|enabled| !enabled.contains("[never]"))
}

/// A range of addresses: whole huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    begin: u64,
    end: u64,
}

impl Range {
    /// Of a line of `/proc/self/maps`, the huge pages in it, if it is of memory that was allocated:
    /// private and without a file. The stacks of threads look the same, and do no harm.
    fn of_heap(line: &str) -> Option<Range> {
        let mut words = line.split_whitespace();
        let (begin, end) = words.next()?.split_once('-')?;
        let (rights, _, _, inode) = (words.next()?, words.next()?, words.next()?, words.next()?);
        let is_heap = matches!(words.next(), None | Some("[heap]"));
        if rights != "rw-p" || inode != "0" || !is_heap {
            return None;
        }
        let address = |word| u64::from_str_radix(word, 16).ok();
        let begin = address(begin)?.next_multiple_of(HUGE);
        let end = address(end)? / HUGE * HUGE;
        (begin < end).then_some(Range { begin, end })
    }

    fn bytes(self) -> u64 {
        self.end - self.begin
    }

    /// Advises the kernel how this is used; says whether it agrees. That it may refuse does no
    /// harm.
    fn advise(self, advice: libc::c_int) -> bool {
        let begin = std::ptr::without_provenance_mut(self.begin as usize);
        // SAFETY: neither advice changes what any address holds, or whether it may be used.
        unsafe { libc::madvise(begin, self.bytes() as usize, advice) == 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_memory_that_was_allocated_is_asked_for() {
        let heap = "555557400000-555557dff000 rw-p 00000000 00:00 0              [heap]";
        assert_eq!(
            Range::of_heap(heap),
            Some(Range { begin: 0x5555_5740_0000, end: 0x5555_57c0_0000 })
        );
        let mapped = "7f5e10021000-7f5e14000000 rw-p 00000000 00:00 0 ";
        assert_eq!(
            Range::of_heap(mapped),
            Some(Range { begin: 0x7f5e_1020_0000, end: 0x7f5e_1400_0000 })
        );
        for other in [
            "7ffff7c00000-7ffff7ffe000 r--p 00000000 fd:00 1234   /usr/lib/libc.so.6",
            "7ffff7c00000-7ffff8ffe000 rw-p 00000000 fd:00 1234   /image",
            "7ffff7c00000-7ffff8ffe000 rw-s 00000000 00:01 0      ",
            "7ffff7c00000-7ffff8ffe000 ---p 00000000 00:00 0      ",
            "7ffffffde000-7ffffffff000 rw-p 00000000 00:00 0      [stack]",
            "7ffff7c00000-7ffff7d00000 rw-p 00000000 00:00 0      ",
            "nonsense",
            "",
        ] {
            assert_eq!(Range::of_heap(other), None, "{other}");
        }
    }

    #[test]
    fn what_is_in_memory_stays_as_it_is_and_moves_to_huge_pages() {
        let block: Vec<u64> = (0..8 << 20).collect();
        let mut pages = HugePages::default();
        let bytes = size_of_val(&block[..]) as u64;
        assert_eq!(pages.ask(bytes), is_allowed());
        assert!(!pages.ask(bytes), "it has not grown");
        let maps = fs::read_to_string("/proc/self/maps").expect("of this process");
        let address = block.as_ptr() as u64;
        let holds = |range: &Range| (range.begin..range.end).contains(&(address + HUGE));
        let range = maps.lines().filter_map(Range::of_heap).find(holds).expect("of the block");
        // A kernel before 6.1, or one without free huge pages, does not collapse them at once.
        if is_allowed() && range.advise(libc::MADV_COLLAPSE) {
            let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("of this process");
            let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            assert!(kib.is_some_and(|kib| kib << 10 >= bytes / 2), "{kib:?} KiB of {bytes} B");
        }
        assert!(block.iter().zip(0..).all(|(&word, place)| word == place));
    }
}
