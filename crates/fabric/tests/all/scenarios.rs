//! Every scenario loads, and the published schema is that of the code.

use std::path::{Path, PathBuf};

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn every_scenario_loads_under_its_own_name() {
    let mut count = 0;
    for entry in std::fs::read_dir(scenarios()).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "yaml") {
            continue;
        }
        let fabric = axon_fabric::load(&path).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(fabric.name.as_str()), path.file_stem().unwrap().to_str());
        count += 1;
    }
    assert!(count >= 5, "only {count} scenarios");
}

#[test]
fn the_hand_written_scenario_means_what_its_comments_say() {
    let fabric = axon_fabric::load(&scenarios().join("all-keys.yaml")).unwrap();
    let ports = |link: usize| (fabric.links[link].a.port.0, fabric.links[link].b.port.0);
    assert_eq!(ports(0), (1, 1));
    assert_eq!(ports(1), (6, 7));
    assert_eq!(fabric.hosts[1].port.0, 4);
    assert_eq!(fabric.links[1].wire.rate, axon_wire::Rate::mbps(500));
    assert_eq!(fabric.links[2].wire.loss_ppm, 10);
    assert_eq!(fabric.controller.wire.latency, axon_wire::Span::from_micros(10));
    let reserved: Vec<_> = fabric.dhcp.reservations.values().map(|ip| ip.octets()).collect();
    assert_eq!(reserved, [[10, 0, 0, 20], [10, 0, 0, 11]], "h3's fixed address too");
    assert_eq!(fabric.faults.len(), 23, "the flap is four of them");
    assert_eq!(fabric.controller.wire.bit_errors_per_1e15, 1000);
}

#[test]
fn the_published_schema_is_that_of_the_code() {
    let path = scenarios().join("fabric.schema.json");
    let schema = axon_fabric::json_schema();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &schema).unwrap();
    }
    let published = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(published == schema, "stale: run the tests with BLESS=1 and review the diff");
}

/// Collects the descriptions of a schema that do not name their subject, with their places.
fn bare_descriptions(value: &serde_json::Value, place: &str, found: &mut Vec<String>) {
    const WORDS_MIN: usize = 4;
    let below = |key: &str| format!("{place}/{key}");
    match value {
        serde_json::Value::Object(keys) => {
            // A property may be named `description`; its value is then a schema, not a text.
            let text = keys.get("description").and_then(serde_json::Value::as_str);
            let is_bare = |text: &&str| {
                text.split_whitespace().count() < WORDS_MIN || text.starts_with("See `")
            };
            found.extend(text.filter(is_bare).map(|text| format!("{place}: {text}")));
            keys.iter().for_each(|(key, value)| bare_descriptions(value, &below(key), found));
        }
        serde_json::Value::Array(all) => {
            let all = all.iter().enumerate();
            all.for_each(|(n, value)| bare_descriptions(value, &below(&n.to_string()), found));
        }
        _ => {}
    }
}

#[test]
fn every_description_in_the_schema_says_what_it_is_about() {
    let mut found = Vec::new();
    let schema = serde_json::from_str(&axon_fabric::json_schema()).unwrap();
    bare_descriptions(&schema, "", &mut found);
    assert!(found.is_empty(), "say what it is, in which unit:\n{}", found.join("\n"));
    let bare =
        serde_json::json!({ "a": [{ "description": "Both." }, { "description": "See `A::b`." }] });
    bare_descriptions(&bare, "", &mut found);
    assert_eq!(found, ["/a/0: Both.", "/a/1: See `A::b`."]);
}

#[test]
fn the_page_of_ambiguities_names_keys_that_there_are() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ambiguities.md");
    let page = std::fs::read_to_string(page).unwrap();
    let block = page.split("```yaml\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let classes =
        "  classes:\n    - {priorities: [0, 1, 2, 4, 5, 6, 7]}\n    - {priorities: [3]}\n";
    let block = block.replacen("dcb:\n", &format!("dcb:\n{classes}"), 1);
    let text = format!("name: ambiguities\ntopology: {{line: {{switches: 1}}}}\n{block}");
    axon_fabric::parse("ambiguities.yaml".as_ref(), &text)
        .unwrap_or_else(|error| panic!("{error}"));
    // Every key named in a row must be one of them.
    for named in page.split('`').skip(1).step_by(2).filter(|named| named.starts_with("dcb.")) {
        let key = named.split(':').next().unwrap().rsplit('.').next().unwrap();
        assert!(block.contains(&format!("{key}:")), "{named}");
    }
}

const RENAMED: &str = "\
name: a
topology: {ring: {switches: 3}}
dcb:
  classes:
    - {priorities: [0, 1, 2, 5, 6, 7], ets: 40, ecn: {threshold: 30kB, non_ect: pass}}
    - {priorities: [3, 4], ets: 60, lossless: true}
  scheduling: {charge: frame}
  watchdog: {paused: 90%}
  dcbx:
    overrides: [{switches: [s2], willing: both}]
";

/// Returns a fabric file with the former names of keys.
fn with_old_keys() -> String {
    let new_and_old = [
        ("non_ect:", "others:"),
        ("scheduling:", "turns:"),
        ("paused:", "stopped:"),
        ("overrides:", "apart:"),
    ];
    new_and_old.iter().fold(RENAMED.to_owned(), |text, (new, old)| text.replace(new, old))
}

#[test]
fn a_file_with_old_keys_gives_the_same_fabric_and_a_warning_for_each() {
    let path = std::env::temp_dir().join(format!("axon-old-keys-{}.yaml", std::process::id()));
    std::fs::write(&path, with_old_keys()).unwrap();
    let loaded = axon_fabric::load_with_warnings(&path);
    let (_, real) = axon_fabric::load_real(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let (fabric, warnings) = loaded.unwrap();
    let same = axon_fabric::parse("a.yaml".as_ref(), RENAMED).unwrap();
    assert_eq!(fabric, same);
    let of = |place: &str, old: &str, new: &str| {
        let file = path.display();
        let rest = "the next version of axon will refuse the old key";
        format!("{file}:{place}: {old} is now {new}; {rest}")
    };
    let wanted = [
        of("5:72", "dcb.classes[0].ecn.others", "dcb.classes[0].ecn.non_ect"),
        of("7:3", "dcb.turns", "dcb.scheduling"),
        of("8:14", "dcb.watchdog.stopped", "dcb.watchdog.paused"),
        of("10:5", "dcb.dcbx.apart", "dcb.dcbx.overrides"),
    ];
    assert_eq!(warnings, wanted);
    assert_eq!(real, wanted, "real ports warn of them too");
}

#[test]
fn a_key_by_its_old_and_its_new_name_is_refused() {
    let both = RENAMED.replace("  watchdog:", "  turns: {charge: wire}\n  watchdog:");
    let error = axon_fabric::parse("a.yaml".as_ref(), &both).unwrap_err().to_string();
    let wanted = "a.yaml:8:3: dcb.turns: it is the old name of dcb.scheduling, which is there too; \
                  expected dcb.scheduling alone";
    assert_eq!(error, wanted);
}

#[test]
fn an_error_below_an_old_key_has_its_place_and_the_new_name() {
    let text = with_old_keys().replace("stopped: 90%", "stopped: 5%");
    let error = axon_fabric::parse("a.yaml".as_ref(), &text).unwrap_err().to_string();
    assert!(error.starts_with("a.yaml:8:23: dcb.watchdog.paused: 5%"), "{error}");
}
