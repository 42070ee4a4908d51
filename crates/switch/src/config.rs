//! Configuration of a switch as a whole.

use alloc::boxed::Box;
use axon_controller::config::{ControllerConfig, StaticTopology};
use axon_dcbx::DcbxNodeConfig;
use axon_edge::config::EdgeConfig;

/// Configuration of a switch.
#[derive(Clone, Debug)]
pub struct SwitchConfig {
    /// The edge, and what is common to every node.
    pub edge: EdgeConfig,
    /// LLDP and DCBX on the ports; `None` disables them. The advertised scheduling and PFC follow
    /// from the configuration of the data plane
    /// ([`DcbxConfig::for_plane`](axon_dcbx::DcbxConfig::for_plane)).
    pub dcbx: Option<Box<DcbxNodeConfig>>,
    /// Static control plane, for a fabric without a controller; `None` if the fabric has one.
    pub alone: Option<Box<StaticConfig>>,
}

/// Configuration of a switch in a fabric without a controller.
#[derive(Clone, Debug)]
pub struct StaticConfig {
    /// Configuration of the controller within the switch. `node` is that of the switch, the router
    /// depends on the graph and the flow alone (`RouterKind::is_fixed`), and the address pool is
    /// empty.
    pub controller: ControllerConfig,
    /// Topology of the fabric file.
    pub topology: StaticTopology,
}
