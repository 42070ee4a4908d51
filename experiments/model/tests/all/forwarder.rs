//! Compares the simulated forwarder with the queueing model, which is independent of it.

use axon_model::forwarder::{Arrivals, Plan, PlanError, Report, run};
use axon_model::hardware::{
    Bus, HOST_AGENT_US, HOST_MODEL_US, Nic, Overheads, PAGE_BYTES, RING_ENTRIES, pages,
};
use axon_model::lanai::Forwarder;

fn modelled(nic: Nic, bus: Bus, is_caching: bool) -> Forwarder {
    Forwarder { nic, bus, is_caching, host_us: HOST_MODEL_US, overheads: Overheads::NONE }
}

fn measured(nic: Nic, bus: Bus, is_caching: bool) -> Forwarder {
    Forwarder { nic, bus, is_caching, host_us: HOST_AGENT_US, overheads: Overheads::FITTED }
}

fn saturated(forwarder: Forwarder, bytes: u64) -> Report {
    run(&Plan::saturated(forwarder, bytes)).unwrap()
}

fn all() -> impl Iterator<Item = (Nic, bool)> {
    Nic::ALL.into_iter().flat_map(|nic| [false, true].map(|is_caching| (nic, is_caching)))
}

#[test]
fn saturation_is_within_2_percent_of_the_model_s() {
    for (nic, is_caching) in all() {
        let forwarder = modelled(nic, Bus::Pci33, is_caching);
        let model = forwarder.network(PAGE_BYTES).unwrap().saturation_mb_s();
        let simulated = saturated(forwarder, PAGE_BYTES).mb_s;
        let off = 100.0 * (simulated / model - 1.0);
        assert!(off.abs() < 2.0, "{nic} {is_caching}: {model:.2} {simulated:.2} {off:+.2} %");
    }
}

#[test]
fn a_payload_crosses_the_bus_once_with_a_cache_and_twice_without_page_by_page() {
    for (nic, is_caching) in all() {
        for bytes in [2_048, PAGE_BYTES, PAGE_BYTES + 1, 32_768] {
            let report = saturated(measured(nic, Bus::Pci33, is_caching), bytes);
            let crossings = if is_caching { 1.0 } else { 2.0 };
            let expected = crossings * pages(bytes) as f64;
            // A transfer that began before the last packet was sent counts.
            assert!((report.transfers - expected).abs() < 0.1, "{nic} {bytes}: {report:?}");
        }
    }
}

#[test]
fn packets_inside_are_rate_by_response_time() {
    for (nic, is_caching) in all() {
        let plan = Plan::saturated(modelled(nic, Bus::Pci33, is_caching), PAGE_BYTES);
        for plan in [plan, plan.at(40.0)] {
            let report = run(&plan).unwrap();
            let rate = report.mb_s / PAGE_BYTES as f64;
            let little = rate * report.response_us;
            let off = (little / report.population - 1.0).abs();
            assert!(off < 0.02, "{nic} {is_caching}: {report:?}");
        }
    }
}

#[test]
fn below_saturation_everything_that_arrives_is_forwarded() {
    let plan = Plan::saturated(modelled(Nic::Lanai9, Bus::Pci33, true), PAGE_BYTES);
    for mb_s in [10.0, 60.0, 110.0] {
        let report = run(&plan.at(mb_s)).unwrap();
        assert!((report.mb_s - mb_s).abs() < 0.01 * mb_s, "{mb_s}: {report:?}");
    }
}

#[test]
fn beyond_saturation_packets_wait_on_the_link_and_buffers_and_rings_do_not_overflow() {
    for (nic, is_caching) in all() {
        let slow_host = Forwarder { host_us: 500.0, ..modelled(nic, Bus::Pci33, is_caching) };
        let report = saturated(slow_host, PAGE_BYTES);
        assert!((report.mb_s - PAGE_BYTES as f64 / 500.0).abs() < 0.01, "{nic}: {report:?}");
        // The host reads 64 packets late; with a cache each of them holds a buffer meanwhile.
        let held = if is_caching { RING_ENTRIES..=RING_ENTRIES + 4 } else { 1..=4 };
        assert!(held.contains(&report.buffers_most), "{nic} {is_caching}: {report:?}");
    }
}

#[test]
fn packets_of_many_pages_share_what_buffers_there_are() {
    for (nic, is_caching) in all() {
        let slow_host = Forwarder { host_us: 20_000.0, ..measured(nic, Bus::Pci66, is_caching) };
        let plan = Plan { packets: 100, ..Plan::saturated(slow_host, 65_536) };
        let report = run(&plan).unwrap();
        let buffers = nic.profile().buffers;
        assert!(report.buffers_most <= buffers, "{nic}: {report:?}");
        assert!((report.mb_s - 65_536.0 / 20_000.0).abs() < 0.02, "{nic}: {report:?}");
        if is_caching {
            assert_eq!(report.buffers_most, buffers, "{nic}: {report:?}");
        }
    }
}

#[test]
fn a_byte_beyond_a_page_costs_bandwidth() {
    let of = |bytes| saturated(measured(Nic::Lanai9, Bus::Pci33, true), bytes).mb_s;
    for page in 1..8 {
        let [full, beyond] = [0, 1].map(|more| of(page * PAGE_BYTES + more));
        assert!(beyond < 0.99 * full, "{page}: {full} {beyond}");
    }
}

#[test]
fn the_same_plan_gives_the_same_report() {
    for (nic, is_caching) in all() {
        let plan = Plan::saturated(measured(nic, Bus::Pci66, is_caching), 10_000);
        assert_eq!(run(&plan), run(&plan));
    }
}

#[test]
fn plans_that_cannot_be_run_are_refused_with_what_is_expected() {
    let plan = Plan::saturated(modelled(Nic::Lanai4, Bus::Pci33, true), PAGE_BYTES);
    let size = run(&Plan { packet_bytes: 63, ..plan }).unwrap_err();
    assert_eq!(size, PlanError::PacketSize { found: 63, least: 64, most: 65_536 });
    for wrong in [
        Plan { packets: 0, ..plan },
        Plan { arrivals: Arrivals::Every(0.0), ..plan },
        Plan { arrivals: Arrivals::Every(f64::NAN), ..plan },
        Plan { forwarder: Forwarder { host_us: -1.0, ..plan.forwarder }, ..plan },
        Plan { forwarder: Forwarder { host_us: f64::INFINITY, ..plan.forwarder }, ..plan },
    ] {
        let error = run(&wrong).unwrap_err();
        assert!(matches!(error, PlanError::Value { .. }), "{error}");
        assert!(error.to_string().contains("expected"), "{error}");
    }
}
