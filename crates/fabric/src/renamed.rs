//! Renamed keys of the fabric file. The old name is accepted for one more version.

/// Renamed keys: old path, with `[]` for any index, and new name.
const RENAMED: [(&str, &str); 4] = [
    ("dcb.classes[].ecn.others", "non_ect"),
    ("dcb.dcbx.apart", "overrides"),
    ("dcb.turns", "scheduling"),
    ("dcb.watchdog.stopped", "paused"),
];

/// Returns the path with its new name, if `path` ends in a renamed key.
pub(crate) fn new_path(path: &str) -> Option<String> {
    let any_index = without_indices(path);
    let (_, name) = RENAMED.iter().find(|(old, _)| *old == any_index)?;
    let parent = path.rfind('.').map_or("", |dot| &path[..=dot]);
    Some(format!("{parent}{name}"))
}

/// Returns whether `name` is an old name of one of the keys in `current`.
pub(crate) fn is_old(name: &str, current: &[&str]) -> bool {
    let last = |path: &'static str| path.rsplit('.').next();
    RENAMED.iter().any(|&(old, new)| last(old) == Some(name) && current.contains(&new))
}

/// Converts `a[3].b` to `a[].b`.
fn without_indices(path: &str) -> String {
    let mut out = String::new();
    let mut inside = false;
    for c in path.chars() {
        inside &= c != ']';
        if !inside {
            out.push(c);
        }
        inside |= c == '[';
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_renamed_key_keeps_its_parent_and_its_indices() {
        assert_eq!(new_path("dcb.turns").as_deref(), Some("dcb.scheduling"));
        let ecn = "dcb.classes[12].ecn.others";
        assert_eq!(new_path(ecn).as_deref(), Some("dcb.classes[12].ecn.non_ect"));
        for path in ["turns", "dcb.turns.cell", "dcb.scheduling", "dcb.classes.ecn.others", ""] {
            assert_eq!(new_path(path), None, "{path}");
        }
    }

    #[test]
    fn an_old_name_is_only_old_among_the_keys_that_it_was_renamed_in() {
        assert!(is_old("stopped", &["detection", "paused"]));
        assert!(!is_old("stopped", &["detection"]));
        assert!(!is_old("paused", &["detection", "paused"]));
    }
}
