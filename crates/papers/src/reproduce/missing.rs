//! Tables and figures of the papers that have no experiment yet. They count.

/// A table or figure without an experiment.
#[derive(Debug)]
pub struct Missing {
    /// The id that its experiment will have.
    pub id: &'static str,
    /// A few words.
    pub title: &'static str,
    /// Where in which paper.
    pub source: &'static str,
    /// What has to be there first.
    pub needs: &'static str,
}

const CACHE: &str = "commands that run agents on Linux";
const AGENTS: &str = "registers of the switch for agents on Linux";

/// All of them, in the order of the papers. An experiment that comes takes its line away.
pub const MISSING: &[Missing] = &[
    Missing {
        id: "payload/live",
        title: "A forwarding agent on this machine, without and with payload caching",
        source: "003 §3 and §4; the set-up is ours",
        needs: CACHE,
    },
    Missing {
        id: "serverswitch/qcn-delay",
        title: "Delay of a congestion message made in software",
        source: "004 §5.2",
        needs: AGENTS,
    },
];
