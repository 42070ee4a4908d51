//! Explicit paths from the fabric file, which take precedence over the paths of a router.

use super::{Flow, Loads, Router, ShortestPaths, Step};
use crate::topology::{Graph, SwitchIndex};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use axon_wire::message::{LinkEnd, PortBytes};
use axon_wire::{Layer, Span};

/// Explicit path for one flow, as given in the fabric file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedPath {
    /// Hash of the flow, see [`flow_hash`](super::flow_hash).
    pub flow: u64,
    /// Links from the source's switch to the destination's, nearest first, each given by its near
    /// end. The list is empty if both are the same switch.
    pub links: Vec<LinkEnd>,
    /// Links of the explicit backup path. The list is empty if the file has none.
    pub backup: Vec<LinkEnd>,
}

/// Router that takes the explicit path of a flow if all of its links are up and it leads to the
/// destination's switch. Otherwise it takes the explicit backup, and failing that, the path of
/// another router.
///
/// A flow that had to leave its explicit path returns to it in the round after the link has come
/// back. The explicit backup is used with the explicit path only.
#[derive(Clone, Debug)]
pub struct Explicit {
    paths: BTreeMap<u64, StatedPath>,
    inner: Box<dyn Router>,
}

impl Explicit {
    /// Combines these paths with `inner`, which routes all other flows. Returns `inner` itself if
    /// there are none.
    pub fn over(inner: Box<dyn Router>, paths: &[StatedPath]) -> Box<dyn Router> {
        if paths.is_empty() {
            return inner;
        }
        let paths = paths.iter().map(|path| (path.flow, path.clone())).collect();
        Box::new(Explicit { paths, inner })
    }

    /// Replaces `path` with the explicit path of a flow, or with its explicit backup if a link on
    /// the former is down.
    fn stated(&self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        let Some(StatedPath { links, backup, .. }) = self.paths.get(&flow.hash) else {
            return false;
        };
        Explicit::follow(graph, flow, links, path)
            || (!backup.is_empty() && Explicit::follow(graph, flow, backup, path))
    }

    /// Replaces `path` with these links, if they connect the two switches of the flow.
    fn follow(graph: &Graph, flow: &Flow, links: &[LinkEnd], path: &mut Vec<Step>) -> bool {
        path.clear();
        let end = links.iter().try_fold(flow.from, |at, link| {
            let here = graph.index_of(link.node).filter(|&switch| switch == at)?;
            let edge = graph.edge(here, link.port)?;
            path.push(Step { switch: at, egress: edge.egress });
            Some(edge.to)
        });
        if end != Some(flow.to) {
            path.clear();
        }
        end == Some(flow.to)
    }
}

impl Router for Explicit {
    fn path(&mut self, graph: &Graph, flow: &Flow, path: &mut Vec<Step>) -> bool {
        self.stated(graph, flow, path) || self.inner.path(graph, flow, path)
    }

    fn backup(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        primary: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        let Some(stated) = self.paths.get(&flow.hash).filter(|stated| !stated.backup.is_empty())
        else {
            return false;
        };
        let is_primary = Explicit::follow(graph, flow, &stated.links, path) && path == primary;
        is_primary && Explicit::follow(graph, flow, &stated.backup, path)
    }

    fn shortest(&mut self) -> &mut ShortestPaths {
        self.inner.shortest()
    }

    fn loads(&mut self) -> Option<&mut Loads> {
        self.inner.loads()
    }

    fn placed(&mut self, path: &[Step]) {
        self.inner.placed(path);
    }

    fn removed(&mut self, path: &[Step]) {
        self.inner.removed(path);
    }

    fn better(
        &mut self,
        graph: &Graph,
        flow: &Flow,
        current: &[Step],
        path: &mut Vec<Step>,
    ) -> bool {
        match self.stated(graph, flow, path) {
            true => path != current,
            false => self.inner.better(graph, flow, current, path),
        }
    }

    fn changed(&mut self, graph: &Graph) -> bool {
        self.inner.changed(graph)
    }

    fn allows(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        self.inner.allows(graph, path, layer)
    }

    fn climbs(&mut self, graph: &Graph, from: SwitchIndex, to: SwitchIndex) -> bool {
        self.inner.climbs(graph, from, to)
    }

    fn take_over(&mut self, graph: &Graph, path: &[Step], layer: Layer) -> bool {
        self.inner.take_over(graph, path, layer)
    }

    fn layer(&mut self, graph: &Graph, path: &[Step]) -> Option<Layer> {
        self.inner.layer(graph, path)
    }

    fn improves(&self) -> bool {
        self.inner.improves()
    }

    fn settled(&self, moved: usize, flows: usize) -> bool {
        self.inner.settled(moved, flows)
    }

    fn round(&mut self, graph: &Graph, flows: &[Flow]) {
        self.inner.round(graph, flows);
    }

    fn measures(&self) -> Option<u32> {
        self.inner.measures()
    }

    fn measured(&mut self, graph: &Graph, switch: SwitchIndex, over: Span, sent: &[PortBytes]) {
        self.inner.measured(graph, switch, over, sent);
    }
}
