//! Patterns for ids: `*` is any characters, `?` is one.

/// Whether all of `text` fits `pattern`.
///
/// In plain English: walk both; at a `*` remember the place and go on as if it were empty;
/// where the two part, go back to the last `*` and let it eat one character more.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) =
        (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == '?' || c == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match &mut star {
                Some((at, eaten)) => {
                    *eaten += 1;
                    (p, t) = (*at + 1, *eaten);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&c| c == '*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_and_question_marks_stand_for_others() {
        for (pattern, text, fits) in [
            ("axon/*", "axon/fig4.1", true),
            ("*", "", true),
            ("a*c*e", "abcdcde", true),
            ("a*c*e", "abcdcd", false),
            ("axon/fig4.?", "axon/fig4.10", false),
            ("axon/fig4.?", "axon/fig4.4", true),
            ("axon/fig4.1", "axon/fig4.10", false),
            ("", "x", false),
        ] {
            assert_eq!(matches(pattern, text), fits, "{pattern} {text}");
        }
    }
}
