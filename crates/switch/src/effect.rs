//! Requests of the parts of a node, by sender.

/// Request of a part of a switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SwitchEffect {
    Link(axon_link::effect::Effect),
    Edge(axon_edge::Effect),
    /// In a fabric without a controller.
    Controller(axon_controller::Effect),
}

/// Request of a part of a controller node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ControllerEffect {
    Link(axon_link::effect::Effect),
    Controller(axon_controller::Effect),
}

impl From<axon_link::effect::Effect> for SwitchEffect {
    fn from(effect: axon_link::effect::Effect) -> SwitchEffect {
        SwitchEffect::Link(effect)
    }
}

impl From<axon_edge::Effect> for SwitchEffect {
    fn from(effect: axon_edge::Effect) -> SwitchEffect {
        SwitchEffect::Edge(effect)
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

impl From<axon_controller::Effect> for ControllerEffect {
    fn from(effect: axon_controller::Effect) -> ControllerEffect {
        ControllerEffect::Controller(effect)
    }
}
