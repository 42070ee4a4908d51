//! Exact CPU time of processes, from the scheduler's account of each thread.
//!
//! Kernel work in an interrupt from a network device is charged to the interrupted thread. So on a
//! single machine, the path of a frame is charged to its sender, to the switches' processes, or to
//! `ksoftirqd`. /proc/stat counts ticks instead, and misses much of this work.

use std::collections::BTreeMap;
use std::fs;

/// Returns the parent of each process, as given in /proc.
fn parents() -> BTreeMap<u32, u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse::<u32>().ok();
    let parent = |pid: u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses, which may contain any characters.
        let parent = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        Some((pid, parent))
    };
    entries.filter_map(number).filter_map(parent).collect()
}

/// Returns those processes among `of` and its descendants that are running.
pub(crate) fn descendants(of: Option<u32>) -> Vec<u32> {
    let Some(of) = of else { return Vec::new() };
    below(of, &parents())
}

fn below(of: u32, parents: &BTreeMap<u32, u32>) -> Vec<u32> {
    let mut found = vec![of];
    let mut at = 0;
    while let Some(&parent) = found.get(at) {
        found.extend(parents.iter().filter(|(_, of)| **of == parent).map(|(pid, _)| pid));
        at += 1;
    }
    found
}

/// Returns the kernel threads that process packets left over by interrupts, or none if these
/// threads are not visible.
pub(crate) fn softirq_threads() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_one = |pid: &u32| {
        fs::read_to_string(format!("/proc/{pid}/comm"))
            .is_ok_and(|name| name.starts_with("ksoftirqd/"))
    };
    pids.filter(is_one).collect()
}

/// Returns the CPU time of all threads in these processes in ns, or `None` if the kernel keeps no
/// such account (CONFIG_SCHED_INFO). A process that has ended counts as zero.
pub(crate) fn nanos(processes: &[u32]) -> Option<u64> {
    fs::metadata("/proc/self/schedstat").ok()?;
    Some(processes.iter().filter_map(|&pid| of_process(pid)).sum())
}

fn of_process(pid: u32) -> Option<u64> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
    let account = threads.filter_map(|thread| {
        let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
        first_number(&text)
    });
    Some(account.sum())
}

/// Returns the first of the three numbers: time on a CPU, time waiting for one, and number of times
/// on one.
fn first_number(schedstat: &str) -> Option<u64> {
    schedstat.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_processes_is_followed_to_its_leaves() {
        let parents = BTreeMap::from([(2, 1), (3, 2), (4, 3), (5, 1), (6, 3)]);
        assert_eq!(below(2, &parents), [2, 3, 4, 6]);
        assert_eq!(below(9, &parents), [9]);
        assert!(descendants(None).is_empty());
        assert!(descendants(Some(std::process::id())).contains(&std::process::id()));
    }

    #[test]
    fn time_on_a_cpu_is_the_first_number() {
        assert_eq!(first_number("123 45 6\n"), Some(123));
        assert_eq!(first_number(""), None);
    }

    #[test]
    fn work_takes_time_and_a_process_that_is_none_takes_none() {
        let own = [std::process::id()];
        let Some(before) = nanos(&own) else { return };
        let mut sum = 0u64;
        while nanos(&own) <= Some(before) {
            sum = std::hint::black_box(sum + 1);
        }
        assert_eq!(nanos(&[u32::MAX]), Some(0));
    }
}
