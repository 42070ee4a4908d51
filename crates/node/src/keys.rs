//! Keys of a node, with which its control messages are sealed. The algorithms are the control
//! plane's.

use axon_wire::NodeId;
use serde::{Deserialize, Serialize};

/// Bytes of one key.
pub const KEY_BYTES: usize = 32;

/// One key.
pub type Key = [u8; KEY_BYTES];

/// Secret of a node.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Secret {
    /// The fabric's master key, from which the keys of every node are derived. Its holder can
    /// impersonate the controller.
    Master(Key),
    /// The keys of one switch. Their holder can impersonate that switch, but not the controller.
    Switch(SwitchKeys),
}

/// Keys of one switch.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SwitchKeys {
    /// The switch.
    pub node: NodeId,
    /// Key shared by all switches: for discovery on links, and for answers between switches.
    pub link: Key,
    /// Key shared with the controller only.
    pub control: Key,
}

/// Secrets of a node: one for sealing, and during a key change another that is accepted too.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Keys {
    /// Secret with which messages are sealed.
    pub current: Secret,
    /// Additional secret with which sealed messages are accepted.
    pub other: Option<Secret>,
}

/// Errors for keys of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum KeyMismatch {
    /// The keys are those of another switch.
    #[error("the keys are those of node {0}")]
    OtherSwitch(NodeId),
    /// A controller needs the master key.
    #[error("the keys are those of a switch; a controller needs the master key")]
    NoMaster,
}

impl Keys {
    /// Iterates over the secrets, the sealing one first.
    pub fn secrets(&self) -> impl Iterator<Item = &Secret> {
        core::iter::once(&self.current).chain(&self.other)
    }

    /// Checks that a switch can use the keys.
    ///
    /// # Errors
    /// They are another switch's.
    pub fn check_switch(&self, node: NodeId) -> Result<(), KeyMismatch> {
        for secret in self.secrets() {
            if let Secret::Switch(keys) = secret
                && keys.node != node
            {
                return Err(KeyMismatch::OtherSwitch(keys.node));
            }
        }
        Ok(())
    }

    /// Checks that a controller can use the keys.
    ///
    /// # Errors
    /// One is a switch's.
    pub fn check_controller(&self) -> Result<(), KeyMismatch> {
        let masters = self.secrets().all(|secret| matches!(secret, Secret::Master(_)));
        if masters { Ok(()) } else { Err(KeyMismatch::NoMaster) }
    }
}

impl From<Key> for Keys {
    /// Returns keys with one master key.
    fn from(master: Key) -> Keys {
        Keys { current: Secret::Master(master), other: None }
    }
}

/// Hides the secret, so that it does not appear in logs.
impl core::fmt::Debug for Secret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            Secret::Master(_) => f.write_str("Master"),
            Secret::Switch(keys) => write!(f, "Switch({})", keys.node),
        }
    }
}

/// Hides the keys, as for a [`Secret`].
impl core::fmt::Debug for SwitchKeys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "SwitchKeys({})", self.node)
    }
}

/// Hides the secrets, as for a [`Secret`].
impl core::fmt::Debug for Keys {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_list().entries(self.secrets()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn switch(node: u64) -> Secret {
        Secret::Switch(SwitchKeys { node: NodeId(node), link: [1; 32], control: [2; 32] })
    }

    #[test]
    fn keys_of_another_node_are_refused_also_as_the_second() {
        let master = Keys::from([7; 32]);
        assert_eq!(master.check_switch(NodeId(1)), Ok(()));
        assert_eq!(master.check_controller(), Ok(()));
        let both = Keys { other: Some(switch(2)), ..master };
        assert_eq!(both.check_switch(NodeId(2)), Ok(()));
        assert_eq!(both.check_switch(NodeId(1)), Err(KeyMismatch::OtherSwitch(NodeId(2))));
        assert_eq!(both.check_controller(), Err(KeyMismatch::NoMaster));
    }

    #[test]
    fn no_key_stands_in_a_log() {
        let keys = Keys { current: switch(2), other: Some(Secret::Master([171; 32])) };
        let text = alloc::format!("{keys:?}");
        assert!(text.contains("Master") && !text.contains("171") && !text.contains("[1"), "{text}");
    }
}
