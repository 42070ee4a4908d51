//! Layers: priorities that hosts see as one, from the file to the configuration of switches.

use super::{Dcb, FlowControl};
use crate::error::Problem;
use crate::names::priority;
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet};

/// Reads `dcb.layers`. Each layer needs buffers, a queue and pauses of its own, or its frames would
/// wait for those of others; each lossless priority needs the same number of layers, since its
/// frames take the routes of all.
pub(super) fn resolve(asked: &[Vec<u8>], dcb: &Dcb) -> Result<Vec<Vec<Priority>>, Problem> {
    if !asked.is_empty() {
        fits_the_rest(dcb)?;
    }
    let mut seen = PrioritySet::EMPTY;
    let mut groups: Vec<Vec<Priority>> = Vec::with_capacity(asked.len());
    for (index, values) in asked.iter().enumerate() {
        let key = format!("dcb.layers[{index}]");
        if !(2..=PRIORITIES).contains(&values.len()) || values.len() != asked[0].len() {
            let what = format!("there are {} in it", values.len());
            let expected = format!("2 to {PRIORITIES}, as many in each");
            return Err(Problem::new(key, what, expected));
        }
        let mut group = Vec::with_capacity(values.len());
        for (place, &value) in values.iter().enumerate() {
            let key = format!("{key}[{place}]");
            let priority = priority(&key, value)?;
            if seen.contains(priority) {
                let what = format!("priority {value} is a layer already");
                return Err(Problem::new(key, what, "each priority once"));
            }
            if !dcb.lossless.contains(priority) {
                let what = format!("priority {value} is not lossless, so it needs no layer");
                return Err(Problem::new(key, what, "priorities of lossless classes"));
            }
            if dcb.beside(priority) != PrioritySet::only(priority) {
                let what = format!("priority {value} shares its class and is paused with others");
                return Err(Problem::new(key, what, "a class for each layer"));
            }
            seen.insert(priority);
            group.push(priority);
        }
        groups.push(group);
    }
    let left = dcb.lossless.iter().find(|priority| !asked.is_empty() && !seen.contains(*priority));
    if let Some(priority) = left {
        let what = format!("priority {} is lossless and has no layers", priority.value());
        return Err(Problem::new("dcb.layers", what, "all lossless priorities or none"));
    }
    Ok(groups)
}

/// Checks that other settings permit layers.
fn fits_the_rest(dcb: &Dcb) -> Result<(), Problem> {
    let key = "dcb.layers";
    if dcb.flow_control != FlowControl::Pfc {
        let what = "only PFC pauses priorities one by one";
        return Err(Problem::new(key, what, "flow_control: pfc"));
    }
    if dcb.watermarks.is_some() {
        let what = "watermarks stop senders by class, and a class at hosts has several layers";
        return Err(Problem::new(key, what, "no watermarks, or no layers"));
    }
    if dcb.cn.is_some() {
        let what = "a congestion notification would name the layer, which hosts do not know";
        return Err(Problem::new(key, what, "no congestion_notification, or no layers"));
    }
    Ok(())
}
