//! `--over KEY=VALUES`: parameters of a sweep, and the product of their values.

use anyhow::{Context, Result, anyhow, bail, ensure};
use axon_fabric::Document;
use axon_fabric::model::RouterKind;
use std::collections::BTreeSet;

/// Maximum number of runs of one sweep.
pub(crate) const RUNS_MAX: usize = 100_000;
const EXPECTED: &str = "KEY=VALUES, such as seed=1..100 or links.rate=1Gbps,10Gbps";
/// Key of the file whose name is that of an option.
const FILE_SEED: &str = "file.seed";

/// Setting that an axis varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target<'a> {
    /// Option `axon sim --seed`.
    Seed,
    /// Option `axon sim --router`.
    Router,
    /// A key of the fabric file, by its path.
    Key(&'a str),
}

/// One `--over` option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Key as given.
    pub key: String,
    /// Distinct values, in the order given.
    pub values: Vec<String>,
}

impl Axis {
    fn read(text: &str) -> Result<Axis> {
        let (key, values) =
            text.split_once('=').ok_or_else(|| anyhow!("it has no `=`; expected {EXPECTED}"))?;
        let key = key.trim().to_owned();
        ensure!(!key.is_empty(), "it has no key; expected {EXPECTED}");
        let mut all = Vec::new();
        for value in parts(values) {
            ensure!(!value.is_empty(), "a value is missing; expected {EXPECTED}");
            match range(value)? {
                Some(range) => all.extend(range),
                None => all.push(value.to_owned()),
            }
            ensure!(all.len() <= RUNS_MAX, "it has more than {RUNS_MAX} values");
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = all.iter().find(|value| !seen.insert(value.as_str())) {
            bail!("{twice} is there twice; expected every value once");
        }
        let axis = Axis { key, values: all };
        axis.values.iter().try_for_each(|value| axis.check(value))?;
        Ok(axis)
    }

    /// Returns the setting that the axis varies.
    pub(crate) fn target(&self) -> Target<'_> {
        match self.key.as_str() {
            "seed" => Target::Seed,
            "router" => Target::Router,
            FILE_SEED => Target::Key("seed"),
            key => Target::Key(key),
        }
    }

    /// Returns the path of keys to the setting, with indices as numbers.
    fn path(&self) -> Vec<String> {
        let keys = match self.target() {
            // Not a key of a file.
            Target::Seed => return vec!["--seed".to_owned()],
            Target::Router => "controller.router",
            Target::Key(key) => key,
        };
        let index = |name: &str| name.parse::<usize>().map_or(name.into(), |at| at.to_string());
        keys.replace('[', ".").replace(']', "").split('.').map(index).collect()
    }

    /// Refuses a value that is wrong in every fabric.
    fn check(&self, value: &str) -> Result<()> {
        let is_good = match self.target() {
            Target::Seed => value.parse::<u64>().is_ok(),
            Target::Router => RouterKind::named(value).is_some(),
            Target::Key(_) => Document::of(value).is_ok(),
        };
        let routers = || RouterKind::ALL.map(RouterKind::name).join(", ");
        let expected = match self.target() {
            _ if is_good => return Ok(()),
            Target::Seed => format!("whole numbers from 0 to {}", u64::MAX),
            Target::Router => format!("some of {}", routers()),
            Target::Key(_) => "values in YAML".to_owned(),
        };
        bail!("`{value}` does not fit; expected {expected}")
    }
}

/// Parses all `--over` options.
///
/// # Errors
/// The first invalid option, and the expected form.
pub(crate) fn axes(texts: &[String]) -> Result<Vec<Axis>> {
    let mut axes: Vec<Axis> = Vec::new();
    for text in texts {
        let axis = Axis::read(text).with_context(|| format!("--over {text}"))?;
        let path = axis.path();
        for other in &axes {
            let there = other.path();
            if there == path {
                bail!("--over {text}: there is one for this key already; expected every key once");
            }
            if there.starts_with(&path) || path.starts_with(&there) {
                let key = &other.key;
                bail!("--over {text}: it and {key} set the same; expected keys that lie apart");
            }
        }
        axes.push(axis);
    }
    count(&axes)?;
    Ok(axes)
}

/// Returns the number of runs of the product.
///
/// # Errors
/// More than [`RUNS_MAX`].
pub(crate) fn count(axes: &[Axis]) -> Result<usize> {
    let product = axes.iter().try_fold(1usize, |all, axis| all.checked_mul(axis.values.len()));
    let runs = product.filter(|runs| *runs <= RUNS_MAX);
    runs.ok_or_else(|| anyhow!("the product of all --over has more than {RUNS_MAX} runs"))
}

/// Returns the values of one run, counted from 0: the last axis varies fastest.
pub(crate) fn values(axes: &[Axis], run: usize) -> Vec<&str> {
    let mut rest = run;
    let mut values: Vec<&str> = Vec::new();
    for axis in axes.iter().rev() {
        values.push(&axis.values[rest % axis.values.len()]);
        rest /= axis.values.len();
    }
    values.reverse();
    values
}

/// Splits a text at commas outside of brackets and quotes.
fn parts(text: &str) -> Vec<&str> {
    let (mut parts, mut begin, mut depth, mut quote) = (Vec::new(), 0, 0usize, None);
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth = depth.saturating_sub(1),
            (None, ',') if depth == 0 => {
                parts.push(text[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[begin..].trim());
    parts
}

/// Returns the values of `1..100` or `10..100..10`; `None` if the text is no range of whole
/// numbers.
fn range(text: &str) -> Result<Option<impl Iterator<Item = String>>> {
    let numbers: Option<Vec<u64>> = text
        .split("..")
        .map(|number| number.parse().ok().filter(|_| number.bytes().all(|b| b.is_ascii_digit())))
        .collect();
    let (first, last, step) = match numbers.as_deref() {
        Some([first, last]) => (*first, *last, 1),
        Some([first, last, step]) => (*first, *last, *step),
        _ => return Ok(None),
    };
    ensure!(step > 0, "{text} has steps of 0; expected FIRST..LAST..STEP, such as 10..100..10");
    ensure!(first <= last, "{text} is empty; expected the smaller number first");
    let count = ((last - first) / step).saturating_add(1);
    ensure!(count <= RUNS_MAX as u64, "{text} has {count} values; expected at most {RUNS_MAX}");
    Ok(Some((0..count).map(move |index| (first + index * step).to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Axis {
        Axis::read(text).unwrap()
    }

    fn refused(text: &str) -> String {
        format!("{:#}", axes(&text.split(' ').map(str::to_owned).collect::<Vec<_>>()).unwrap_err())
    }

    #[test]
    fn values_are_a_list_or_a_range_with_both_ends() {
        assert_eq!(read("seed=1..3").values, ["1", "2", "3"]);
        assert_eq!(read("seed=7,10..35..10").values, ["7", "10", "20", "30"]);
        assert_eq!(read("seed=4..4").values, ["4"]);
        assert_eq!(read("a=h1..h4").values, ["h1..h4"], "hosts by name");
        assert_eq!(
            read("a=[h1, h2],{b: 1, c: 2},'x,y'").values,
            ["[h1, h2]", "{b: 1, c: 2}", "'x,y'"]
        );
        assert_eq!(read("a=b=c").values, ["b=c"]);
    }

    #[test]
    fn the_product_has_every_combination_and_the_last_axis_varies_fastest() {
        let axes =
            axes(&["seed=1,2".into(), "router=ecmp,spain".into(), "mtu=900".into()]).unwrap();
        assert_eq!(count(&axes).unwrap(), 4);
        let all: Vec<String> = (0..4).map(|run| values(&axes, run).join(" ")).collect();
        assert_eq!(all, ["1 ecmp 900", "1 spain 900", "2 ecmp 900", "2 spain 900"]);
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_was_expected() {
        for (text, right) in [
            ("seed", "--over seed: it has no `=`; expected KEY=VALUES"),
            ("=1", "--over =1: it has no key"),
            ("seed=", "--over seed=: a value is missing"),
            ("seed=1,,2", "--over seed=1,,2: a value is missing"),
            ("seed=x", "--over seed=x: `x` does not fit; expected whole numbers"),
            ("seed=1,2,1", "--over seed=1,2,1: 1 is there twice"),
            ("seed=3..1", "--over seed=3..1: 3..1 is empty"),
            ("seed=1..9..0", "--over seed=1..9..0: 1..9..0 has steps of 0"),
            ("seed=0..18446744073709551615", "--over seed=0..18446744073709551615: 0..184"),
            ("seed=0..100000", "--over seed=0..100000: 0..100000 has 100001 values"),
            (
                "router=ecmp,nope",
                "--over router=ecmp,nope: `nope` does not fit; expected some of shor",
            ),
            ("mtu=[1", "--over mtu=[1: `[1` does not fit; expected values in YAML"),
            ("seed=1 seed=2", "--over seed=2: there is one for this key already"),
            ("router=ecmp controller.router=spain", "--over controller.router=spain: there is"),
            ("a.0.b=1 a[0].b=2", "--over a[0].b=2: there is one for this key already"),
            ("a.0.b=1 a[00].b=2", "--over a[00].b=2: there is one for this key already"),
            ("links.rate=1 links={}", "--over links={}: it and links.rate set the same"),
            ("links={} links.rate=1", "--over links.rate=1: it and links set the same"),
            ("seed=1..1000 mtu=1..1000", "the product of all --over has more than 100000 runs"),
        ] {
            let said = refused(text);
            assert!(said.starts_with(right), "{text}: {said}");
        }
        assert!(axes(&["seed=1".into(), "file.seed=1".into()]).is_ok());
    }
}
