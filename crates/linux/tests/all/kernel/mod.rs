//! The kernel's data plane: its programs take the same step as `axon_plane`, their tables outlive
//! the process, and everything is removed with its folder, device or namespace.
//!
//! Each test has network and mount namespaces of its own.

mod chain;
mod devices;
mod kept;
mod pins;
mod random;
mod step;

use crate::alone::needs;
use crate::runner::Test;
use axon_linux::kernel::{Hook, Kernel, KernelSettings};
use axon_wire::HopWidth;
use nix::mount::{MsFlags, mount};
use std::path::{Path, PathBuf};

/// Mount point of each test's private BPF file system.
const BPF: &str = "/sys/fs/bpf";

pub const TESTS: &[Test] = &[
    ("the_programs_take_the_step_as_in_the_vectors", step::vectors),
    ("the_programs_forward_a_million_random_frames_as_the_plane_does", random::frames),
    ("a_value_mixed_of_two_routes_is_none", random::mixed_routes),
    ("a_route_that_is_changed_is_never_half_seen", random::changed_routes),
    ("a_route_that_xdp_keeps_is_given_up_at_any_change", kept::routes),
    ("xdp_redirects_to_the_devices_that_its_ports_have", kept::devices),
    ("every_value_of_bytes_12_and_13_passes_push_transit_and_strip", chain::every_value),
    ("tags_of_hosts_and_what_reads_as_tags_pass_unchanged", chain::tags),
    ("long_routes_pass_whole_super_packets", chain::long_routes),
    ("what_tc_does_not_decide_comes_to_the_node_with_its_port", devices::node),
    ("a_host_does_not_take_the_node_from_the_others", devices::budget),
    ("what_xdp_does_not_decide_goes_up_the_stack", devices::xdp),
    ("a_program_goes_on_without_its_process_and_is_adopted", pins::adopted),
    ("without_tcx_links_a_filter_does_the_same", pins::filtered),
    ("a_device_that_is_replaced_gets_its_program_again", pins::replaced_device),
    ("programs_and_tables_are_gone_with_their_folder_or_namespace", pins::gone),
    ("what_cannot_be_is_refused_in_one_sentence", pins::refused),
];

pub use pins::run_part;

/// A BPF file system of this test's own; `None`, with a message, where BPF is not permitted.
fn bpf() -> Option<&'static Path> {
    let none: Option<&str> = None;
    let own = mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none)
        .and_then(|()| mount(Some("bpf"), BPF, Some("bpf"), MsFlags::empty(), none));
    if let Err(why) = own {
        needs::skip(&format!("no BPF file system can be mounted here ({why})"));
        return None;
    }
    let probe = Path::new(BPF).join("probe");
    match Kernel::open(&probe, settings(Hook::Xdp, HopWidth::Eight, 1)) {
        Ok(_) => Kernel::remove(&probe).unwrap(),
        Err(why) => {
            needs::skip(&why.to_string());
            return None;
        }
    }
    Some(Path::new(BPF))
}

fn settings(hook: Hook, hop_width: HopWidth, ports: u16) -> KernelSettings {
    let (routes_per_port_max, route_bytes_max, frame_bytes_max) = (4096, 128, 1514);
    KernelSettings {
        hook,
        hop_width,
        ports,
        routes_per_port_max,
        route_bytes_max,
        frame_bytes_max,
        node_frames_per_ms: 0,
    }
}

/// A new data plane in a folder of this name.
fn kernel(name: &str, settings: KernelSettings) -> Kernel {
    let folder: PathBuf = Path::new(BPF).join(name);
    Kernel::open(&folder, settings).unwrap()
}
