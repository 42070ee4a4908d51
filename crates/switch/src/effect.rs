//! Requests of the parts of a node, by sender.

use axon_wire::vlan::VlanId;

/// Request of a part of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SwitchEffect {
    Link(axon_link::effect::Effect),
    /// With the VLAN of the hosts that it is about.
    Edge(VlanId, axon_edge::Effect),
    /// In a fabric without a controller.
    Controller(axon_controller::Effect),
}

/// Request of a part of a controller node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControllerEffect {
    Link(axon_link::effect::Effect),
    /// With the VLAN of the hosts that it is about.
    Controller(VlanId, axon_controller::Effect),
}

impl From<axon_link::effect::Effect> for SwitchEffect {
    fn from(effect: axon_link::effect::Effect) -> SwitchEffect {
        SwitchEffect::Link(effect)
    }
}

impl From<(VlanId, axon_edge::Effect)> for SwitchEffect {
    fn from((vlan, effect): (VlanId, axon_edge::Effect)) -> SwitchEffect {
        SwitchEffect::Edge(vlan, effect)
    }
}

impl From<axon_controller::Effect> for SwitchEffect {
    fn from(effect: axon_controller::Effect) -> SwitchEffect {
        SwitchEffect::Controller(effect)
    }
}

impl From<axon_link::effect::Effect> for ControllerEffect {
    fn from(effect: axon_link::effect::Effect) -> ControllerEffect {
        ControllerEffect::Link(effect)
    }
}

impl From<(VlanId, axon_controller::Effect)> for ControllerEffect {
    fn from((vlan, effect): (VlanId, axon_controller::Effect)) -> ControllerEffect {
        ControllerEffect::Controller(vlan, effect)
    }
}
