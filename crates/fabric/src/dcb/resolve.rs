//! Data Center Bridging, from the file to the configuration of switches; refuses contradictions.

use super::{Buffers, Dcb, FlowControl, applications, congestion, layers, pauses};
use crate::error::Problem;
use crate::file::{self, File};
use crate::model::{Network, OnFull};
use crate::names::priority;
use crate::units::BytesText;
use axon_plane::schedule::{Algorithm, FrameCost, Larger, ScheduleConfig, ScheduleFault, Weights};
use axon_plane::shared_buffer::Share;
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, PrioritySet, TrafficClass};
use axon_wire::{Bytes, Span};

/// Minimum and maximum size of any part of the memory, in bytes.
const POOL: std::ops::RangeInclusive<u64> = 2048..=1 << 40;
/// Bytes of the FCS (IEEE 802.3 clause 3.2.9).
const FCS_BYTES: u16 = 4;

/// Settings of other sections that `dcb` depends on.
pub(crate) struct Beside {
    pub network: Network,
    pub on_full: OnFull,
    /// Length of the longest frame, without its route, in bytes.
    pub frame_bytes_max: u64,
}

/// Reads `dcb`.
pub(crate) fn resolve(file: &File, beside: &Beside) -> Result<Option<Box<Dcb>>, Problem> {
    let Some(asked) = &file.dcb else { return Ok(None) };
    fits_the_rest(file, beside)?;
    let (prio_tc, lossless) = classes(&asked.classes)?;
    let flow_control = flow_control(asked, lossless)?;
    if asked.quanta < 2 {
        return Err(Problem::range("dcb.quanta", asked.quanta, "2 to 65535"));
    }
    let priority = priority("dcb.control_priority", asked.control_priority)?;
    // PAUSE pauses all frames, whatever their priority.
    if flow_control == FlowControl::Pfc && lossless.contains(priority) {
        let what = format!(
            "priority {} is lossless, so control messages could be paused",
            priority.value()
        );
        return Err(Problem::new("dcb.control_priority", what, "a priority of a lossy class"));
    }
    let buffers = buffers(&asked.buffers, lossless, beside.frame_bytes_max)?;
    let pool = |priority| match lossless.contains(priority) {
        true => buffers.lossless_pool.0,
        false => buffers.lossy_pool.0,
    };
    let (cn, has_dcbx) = (asked.congestion_notification.as_ref(), asked.dcbx.is_some());
    let cn = cn.map(|asked| congestion::congestion(asked, pool, lossless, has_dcbx)).transpose()?;
    let mut ecn = [None; PRIORITIES];
    for (index, class) in asked.classes.iter().enumerate() {
        ecn[index] = congestion::ecn(index, class)?;
    }
    let mut dcb = Dcb {
        prio_tc,
        schedule: schedule(asked)?,
        lossless,
        layers: Vec::new(),
        flow_control,
        quanta: Quanta(asked.quanta),
        pfc_reserved: match asked.pfc_reserved {
            file::Reserved::Ignored => Reserved::Ignored,
            file::Reserved::Refused => Reserved::Refused,
        },
        buffers,
        watermarks: pauses::watermarks(asked.watermarks.as_ref(), lossless)?,
        watchdog: pauses::watchdog(asked.watchdog.as_ref(), lossless)?,
        applications: applications::of_hosts(&asked.applications)?,
        control_priority: priority,
        hosts: hosts(asked, lossless)?,
        dcbx: None,
        cn,
        ecn,
    };
    dcb.layers = layers::resolve(&asked.layers, &dcb)?;
    Ok(Some(Box::new(dcb)))
}

/// Checks that other settings permit traffic classes.
fn fits_the_rest(file: &File, beside: &Beside) -> Result<(), Problem> {
    if !matches!(beside.network, Network::Axon | Network::Program) {
        let what = "the switches of this network have no traffic classes";
        return Err(Problem::new("dcb", what, "network: axon, or no dcb"));
    }
    if beside.on_full != OnFull::Drop {
        let what = "with traffic classes dcb.buffers decides what is dropped";
        return Err(Problem::new("links.on_full", what, "drop, or no dcb"));
    }
    if file.self_congestion_pause {
        let what = "PAUSE pauses every priority (IEEE 802.1Q clause 36.1.1)";
        return Err(Problem::new("self_congestion_pause", what, "false, or no dcb"));
    }
    if file.hop_width == 4 {
        let what = "a header with hops of 4 bits has no room for a priority";
        return Err(Problem::new("hop_width", what, "8 or 16, or no dcb"));
    }
    Ok(())
}

/// Returns the class of each priority, and the lossless priorities.
fn classes(asked: &[file::DcbClass]) -> Result<([TrafficClass; PRIORITIES], PrioritySet), Problem> {
    if !(1..=PRIORITIES).contains(&asked.len()) {
        let what = format!("there are {}", asked.len());
        return Err(Problem::new("dcb.classes", what, "1 to 8 classes"));
    }
    let mut prio_tc = [None; PRIORITIES];
    let mut lossless = PrioritySet::EMPTY;
    for (index, (class, number)) in asked.iter().zip(TrafficClass::ALL).enumerate() {
        let key = format!("dcb.classes[{index}].priorities");
        for &value in &class.priorities {
            let priority = priority(&key, value)?;
            if prio_tc[priority.index()].replace(number).is_some() {
                let what = format!("priority {value} is in a class already");
                return Err(Problem::new(key, what, "each priority in one class"));
            }
            if class.lossless {
                lossless.insert(priority);
            }
        }
    }
    let mut table = [TrafficClass::ZERO; PRIORITIES];
    for (priority, class) in prio_tc.iter().enumerate() {
        let Some(class) = class else {
            let what = format!("priority {priority} is in no class");
            return Err(Problem::new("dcb.classes", what, "each priority in one class"));
        };
        table[priority] = *class;
    }
    Ok((table, lossless))
}

fn flow_control(asked: &file::Dcb, lossless: PrioritySet) -> Result<FlowControl, Problem> {
    let key = "dcb.flow_control";
    match asked.flow_control {
        FlowControl::Pfc => Ok(FlowControl::Pfc),
        FlowControl::Pause if asked.classes.iter().all(|class| class.lossless) => {
            Ok(FlowControl::Pause)
        }
        FlowControl::Pause => {
            let what = "PAUSE pauses every priority, and there are lossy classes";
            Err(Problem::new(key, what, "pfc, or `lossless: true` in every class"))
        }
        FlowControl::None if lossless.is_empty() => Ok(FlowControl::None),
        FlowControl::None => {
            let what = "a lossless class needs flow control";
            Err(Problem::new(key, what, "pfc or pause, or no lossless class"))
        }
    }
}

/// Returns whether hosts honour flow control: only where a class is lossless.
fn hosts(asked: &file::Dcb, lossless: PrioritySet) -> Result<bool, Problem> {
    if lossless.is_empty() && asked.hosts == Some(true) {
        let what = "no class is lossless, so hosts have no flow control";
        return Err(Problem::new("dcb.hosts", what, "a lossless class, or no `hosts: true`"));
    }
    Ok(asked.hosts.unwrap_or(!lossless.is_empty()))
}

/// Returns the scheduling of classes. Errors contain the keys of the file.
fn schedule(asked: &file::Dcb) -> Result<ScheduleConfig, Problem> {
    let algorithms: Result<Vec<Algorithm>, Problem> =
        asked.classes.iter().enumerate().map(|(index, class)| algorithm(index, class)).collect();
    let scheduling = &asked.scheduling;
    let overhead_bytes = match scheduling.charge {
        file::Charge::Wire => FrameCost::WIRE.overhead_bytes,
        file::Charge::Frame => FCS_BYTES,
    };
    let (weights, default) = match scheduling.weights {
        file::Weights::Fixed => (Weights::Fixed, Span::ZERO),
        file::Weights::Awc => {
            let window = scheduling.window.map_or(Span::from_secs(60), |window| window.0);
            (Weights::Awc { window, size_added_bytes: FCS_BYTES, larger: Larger::One }, window)
        }
        file::Weights::ByteFair => {
            let window = scheduling.window.map_or(Span::from_millis(10), |window| window.0);
            (Weights::ByteFair { window, size_added_bytes: FCS_BYTES }, window)
        }
    };
    if scheduling.weights == file::Weights::Fixed && scheduling.window.is_some() {
        let what = "it has no effect with fixed weights";
        return Err(Problem::new("dcb.scheduling.window", what, "weights: awc or byte_fair"));
    }
    if scheduling.weights != file::Weights::Fixed && default < Span::from_micros(100) {
        let what = format!("{} is too short to count frames", crate::units::span_text(default));
        return Err(Problem::new("dcb.scheduling.window", what, "100us or more"));
    }
    let cost = FrameCost { overhead_bytes, cell_bytes: scheduling.cell };
    let schedule = ScheduleConfig { classes: algorithms?, cost, weights };
    let fault = |fault: ScheduleFault| {
        let (key, expected) = match fault {
            ScheduleFault::ClassCount(_) => ("dcb.classes".into(), "1 to 8 classes"),
            ScheduleFault::EtsSum(_) => ("dcb.classes".into(), "100 in all"),
            ScheduleFault::Mixed(class) => {
                (format!("dcb.classes[{}]", class.index()), "ets, drr or wfq for all that share")
            }
            ScheduleFault::Quantum(class) => {
                (format!("dcb.classes[{}].drr", class.index()), "1B to 16MiB")
            }
            ScheduleFault::Weight(class) => {
                (format!("dcb.classes[{}].wfq", class.index()), "1 to 65536")
            }
            ScheduleFault::Unserved(_) => ("dcb.classes".into(), "each priority in one class"),
            ScheduleFault::Cell => ("dcb.scheduling.cell".into(), "1 or more"),
            ScheduleFault::NothingToAdapt => {
                ("dcb.scheduling.weights".into(), "classes with ets or drr, or fixed weights")
            }
        };
        Problem::new(key, fault.to_string(), expected)
    };
    schedule.check().map_err(fault)?;
    Ok(schedule)
}

fn algorithm(index: usize, class: &file::DcbClass) -> Result<Algorithm, Problem> {
    let key = format!("dcb.classes[{index}]");
    let quantum = |bytes: Bytes| u32::try_from(bytes.0).unwrap_or(u32::MAX);
    match (class.ets, class.drr, class.wfq) {
        (None, None, None) => Ok(Algorithm::Strict),
        (Some(percent), None, None) => Ok(Algorithm::Ets { percent }),
        (None, Some(bytes), None) => Ok(Algorithm::Drr { quantum_bytes: quantum(bytes.0) }),
        (None, None, Some(weight)) => Ok(Algorithm::Wfq { weight }),
        _ => Err(Problem::new(
            key,
            "it has more than one scheduling algorithm",
            "one of ets, drr, wfq",
        )),
    }
}

fn buffers(
    asked: &Buffers,
    lossless: PrioritySet,
    frame_bytes_max: u64,
) -> Result<Buffers, Problem> {
    let within = |key: &str, bytes: Bytes, range: std::ops::RangeInclusive<u64>| {
        if range.contains(&bytes.0) {
            return Ok(());
        }
        let expected = format!("{} to {} bytes", range.start(), range.end());
        Err(Problem::new(
            format!("dcb.buffers.{key}"),
            format!("{bytes} is out of range"),
            expected,
        ))
    };
    let share = |key: &str, share: Share| match share {
        Share::Static(bytes) => within(key, bytes, 0..=*POOL.end()),
        Share::Dynamic { .. } => Ok(()),
    };
    if lossless.is_empty() && asked.headroom.is_some() {
        let what = "no class is lossless";
        return Err(Problem::new("dcb.buffers.headroom", what, "a lossless class, or no headroom"));
    }
    if let Some(BytesText(bytes)) = asked.headroom {
        // A smaller headroom does not fit the largest frame.
        within("headroom", bytes, frame_bytes_max..=*POOL.end())?;
    }
    let delays = [
        ("reaction", asked.reaction.map(|delay| delay.0)),
        ("interface_delay", asked.interface_delay.map(|delay| delay.0)),
    ];
    for (key, delay) in delays {
        if delay.is_some_and(|delay| delay > Span::from_secs(1)) {
            let what = "it is out of range";
            return Err(Problem::new(format!("dcb.buffers.{key}"), what, "0s to 1s"));
        }
    }
    within("lossless_pool", asked.lossless_pool.0, POOL)?;
    within("lossy_pool", asked.lossy_pool.0, POOL)?;
    within("reserved", asked.reserved.0, 0..=*POOL.end())?;
    share("lossless_share", asked.lossless_share.0)?;
    share("lossy_share", asked.lossy_share.0)?;
    share("queue_share", asked.queue_share.0)?;
    let xon_offset = asked.xon_offset.unwrap_or(BytesText(Bytes(2 * frame_bytes_max)));
    within("xon_offset", xon_offset.0, 0..=*POOL.end())?;
    Ok(Buffers { xon_offset: Some(xon_offset), ..asked.clone() })
}
