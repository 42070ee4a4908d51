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

const CACHE: &str = "payload caching";
const PIPELINE: &str = "the programmable switch";

/// All of them, in the order of the papers. An experiment that comes takes its line away.
pub const MISSING: &[Missing] = &[
    Missing {
        id: "payload/table2",
        title: "Demands and saturation of NIC, bus and host, without and with a payload cache",
        source: "003, table 2",
        needs: CACHE,
    },
    Missing {
        id: "payload/fig4",
        title: "Cache size for a hit rate of 100 % against arrival rate",
        source: "003, figure 4",
        needs: CACHE,
    },
    Missing {
        id: "payload/fig6-7",
        title: "Forwarding bandwidth against packet size",
        source: "003, figures 6 and 7",
        needs: CACHE,
    },
    Missing {
        id: "payload/live",
        title: "A forwarding agent on this machine, without and with payload caching",
        source: "003 §3 and §4; the set-up is ours",
        needs: CACHE,
    },
    Missing {
        id: "serverswitch/fig10",
        title: "In-network cache: traffic saved and processor time against hit ratio",
        source: "004, figure 10",
        needs: PIPELINE,
    },
    Missing {
        id: "serverswitch/qcn-delay",
        title: "Delay of a congestion message made in software",
        source: "004 §5.2",
        needs: PIPELINE,
    },
];
