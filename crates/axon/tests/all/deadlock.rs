//! Deadlocks that the routes allow and that traffic causes, from the command line.

use crate::common::{axon, bad, good, scenario};
use serde_json::Value;
use std::process::Output;

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_router_can_be_another_than_the_files_and_an_unknown_one_is_answered_with_those_there_are() {
    let file = scenario("deadlock5");
    assert_eq!(axon(&["prove", &file]).status.code(), Some(1));
    good(&axon(&["prove", &file, "--router", "up_down"]));
    let output = axon(&["prove", &file, "--router", "updown"]);
    let said = bad(&output, 2);
    assert!(said.contains("possible values: shortest_path, ecmp, spain"), "{said}");
}

#[test]
fn the_simulator_deadlocks_in_the_cycle_that_was_not_ruled_out() {
    let file = scenario("deadlock5");
    let proof = axon(&["prove", &file, "--json", "-"]);
    let run = axon(&["sim", &file, "--duration", "100ms", "--json", "-"]);
    assert_eq!(run.status.code(), Some(1), "{run:?}");
    let (proof, run) = (json(&proof), json(&run));
    assert!(run["deadlock"]["cycle"].is_array(), "{run}");
    assert_eq!(run["deadlock"]["cycle"], proof["deadlock"]["cycle"]["ports"]);
    let options = ["--router", "up_down", "--duration", "100ms", "--json", "-"];
    let run = axon(&[&["sim", file.as_str()][..], &options[..]].concat());
    assert!(json(&run)["deadlock"].is_null(), "{run:?}");
    good(&run);
}

#[test]
fn on_two_layers_the_ring_is_proved_and_goes_on_by_its_shortest_paths() {
    let file = scenario("deadlock5");
    let layered = |more: &[&str]| {
        axon(&[&["prove", &file, "--router", "layered", "--json", "-"], more].concat())
    };
    let proof = layered(&[]);
    good(&proof);
    let layers = &json(&proof)["layers"];
    assert_eq!((&layers[0]["priorities"][0], &layers[1]["priorities"][0]), (&3.into(), &4.into()));
    let routes = [&layers[0]["routes"], &layers[1]["routes"]].map(|count| count.as_u64().unwrap());
    assert!(routes[1] > 0 && routes[0] + routes[1] == 90, "{routes:?}");
    good(&layered(&["--pairs", "9", "--seed", "3"]));
    good(&layered(&["--fail", "s3,s4"]));
    let options = ["--router", "layered", "--duration", "100ms", "--json", "-"];
    let run = axon(&[&["sim", file.as_str()][..], &options[..]].concat());
    good(&run);
    assert!(json(&run)["deadlock"].is_null(), "{run:?}");
    let without = axon(&["prove", &scenario("torus5x5"), "--router", "layered"]);
    let said = bad(&without, 2);
    assert!(said.contains("no priority has layers; expected dcb.layers"), "{said}");
}
