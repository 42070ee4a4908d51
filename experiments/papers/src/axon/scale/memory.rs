//! Memory use of this process.

/// Returns the resident memory in bytes (proc(5), statm); 0 if unknown.
pub(crate) fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let page = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    pages.unwrap_or(0) * page.map_or(4096, |bytes| bytes as u64)
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_process_takes_memory_and_more_when_it_holds_more() {
        let before = super::resident_bytes();
        assert!(before > 1 << 20, "{before}");
        let held = vec![1_u8; 256 << 20];
        assert!(super::resident_bytes() > before + (128 << 20));
        assert_eq!(held.iter().step_by(4096).map(|&byte| u64::from(byte)).sum::<u64>(), 65_536);
    }
}
