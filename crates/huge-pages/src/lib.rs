//! Huge pages for processes that access much of their memory at random.
//!
//! An event in a large simulation may touch any part of memory. With pages of 4 KiB, the TLB covers
//! little of it, and each miss walks the page tables, twice in a virtual machine. With pages of 2
//! MiB, the TLB covers most of it.
//!
//! A kernel provides huge pages on request (`madvise`), always, or never
//! (`/sys/kernel/mm/transparent_hugepage/enabled`). [`HugePages`] requests them for all allocated
//! memory of the process, and moves memory in use into them (`MADV_COLLAPSE`, since Linux 6.1;
//! older kernels do so in their own time). The contents are unchanged. Resident memory grows,
//! because a huge page in use is resident as a whole.

use std::fs;

/// Number of resident bytes below which a process keeps small pages.
const WORTH: u64 = 8 << 20;
/// Size of a huge page on the known processors, in bytes.
const HUGE: u64 = 2 << 20;

/// Requests huge pages for all current and future allocations of this process.
#[derive(Debug)]
pub struct HugePages {
    /// Number of resident bytes that triggers the next request.
    next: u64,
}

impl Default for HugePages {
    fn default() -> HugePages {
        let next = if is_allowed() { WORTH } else { u64::MAX };
        HugePages { next }
    }
}

impl HugePages {
    /// Requests huge pages if the process is large and has grown by an eighth since the last
    /// request. `resident` is an upper bound of its resident bytes. Returns whether a request was
    /// made.
    pub fn ask(&mut self, resident: u64) -> bool {
        if self.next == u64::MAX || resident < self.next {
            return false;
        }
        let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
        // Skip address ranges that are only reserved, such as arenas of the allocator.
        let most = 4 * resident;
        for range in maps.lines().filter_map(Range::of_heap).filter(|range| range.bytes() <= most) {
            range.advise(libc::MADV_HUGEPAGE);
            range.advise(libc::MADV_COLLAPSE);
        }
        self.next = resident / 8 * 9;
        true
    }
}

/// Returns whether the kernel provides huge pages.
fn is_allowed() -> bool {
    let enabled = fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    enabled.is_ok_and(|enabled| !enabled.contains("[never]"))
}

/// Address range that consists of whole huge pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    begin: u64,
    end: u64,
}

impl Range {
    /// Returns the huge pages in a line of `/proc/self/maps` if the line describes allocated
    /// memory, that is, private memory without a file. Thread stacks look the same, which does no
    /// harm.
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

    /// Advises the kernel on the use of the range. Returns whether the kernel accepted the advice.
    /// A refusal does no harm.
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
        // A kernel older than 6.1, or one without free huge pages, does not collapse them at once.
        if is_allowed() && range.advise(libc::MADV_COLLAPSE) {
            let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("of this process");
            let line = rollup.lines().find_map(|line| line.strip_prefix("AnonHugePages:"));
            let kib = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            assert!(kib.is_some_and(|kib| kib << 10 >= bytes / 2), "{kib:?} KiB of {bytes} B");
        }
        assert!(block.iter().zip(0..).all(|(&word, place)| word == place));
    }
}
