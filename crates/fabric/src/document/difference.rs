//! First difference of two documents.

use super::{Document, Node};

impl Document {
    /// Returns the path of the first value in which two documents differ, such as `links.rate` or
    /// `traffic[0].udp.rate`, outside the top-level keys in `except`.
    pub fn difference(&self, other: &Document, except: &[&str]) -> Option<String> {
        let (Node::Mapping(ours), Node::Mapping(theirs)) = (&self.root, &other.root) else {
            return (self != other).then(String::new);
        };
        let kept = |entries: &[(Node, Node)]| {
            let entries = entries.iter().filter(|(key, _)| !except.iter().any(|of| key.is_key(of)));
            entries.cloned().collect()
        };
        first(&Node::Mapping(kept(ours)), &Node::Mapping(kept(theirs)), "")
    }
}

/// Returns the path of the first difference below `done`.
fn first(ours: &Node, theirs: &Node, done: &str) -> Option<String> {
    match (ours, theirs) {
        (Node::Mapping(ours), Node::Mapping(theirs)) => {
            let value = |entries: &[(Node, Node)], key: &Node| {
                entries.iter().find(|(other, _)| other == key).map(|(_, value)| value.clone())
            };
            ours.iter().chain(theirs).find_map(|(key, _)| {
                let Node::Scalar { text, .. } = key else { return None };
                let path = if done.is_empty() { text.clone() } else { format!("{done}.{text}") };
                match (value(ours, key), value(theirs, key)) {
                    (Some(ours), Some(theirs)) => first(&ours, &theirs, &path),
                    _ => Some(path),
                }
            })
        }
        (Node::List(ours), Node::List(theirs)) => {
            let pairs = ours.iter().zip(theirs).enumerate();
            let mut pairs = pairs.map(|(at, pair)| (format!("{done}[{at}]"), pair));
            pairs.find_map(|(path, (ours, theirs))| first(ours, theirs, &path)).or_else(|| {
                let shorter = ours.len().min(theirs.len());
                (ours.len() != theirs.len()).then(|| format!("{done}[{shorter}]"))
            })
        }
        _ => (ours != theirs).then(|| done.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference(ours: &str, theirs: &str) -> Option<String> {
        let of = |text| Document::of(text).expect("YAML");
        of(ours).difference(&of(theirs), &["faults"])
    }

    #[test]
    fn the_first_key_that_differs_is_named_and_those_left_out_are_not() {
        let file = "{links: {rate: 10Gbps}, traffic: [{udp: {rate: 1Gbps}}], faults: [{at: 1ms}]}";
        assert_eq!(difference(file, file), None);
        assert_eq!(difference(file, &file.replace("at: 1ms", "at: 2ms")), None);
        let named = |from: &str, to: &str| difference(file, &file.replace(from, to));
        assert_eq!(named("10Gbps", "1Gbps").as_deref(), Some("links.rate"));
        assert_eq!(named("rate: 1Gbps", "rate: 2Gbps").as_deref(), Some("traffic[0].udp.rate"));
        assert_eq!(named("}}], f", "}}, {}], f").as_deref(), Some("traffic[1]"));
        assert_eq!(named("links", "link").as_deref(), Some("links"));
        assert_eq!(named("rate: 10Gbps", "rate: 10Gbps, mtu: 9").as_deref(), Some("links.mtu"));
        assert_eq!(difference("1", "2").as_deref(), Some(""));
    }
}
