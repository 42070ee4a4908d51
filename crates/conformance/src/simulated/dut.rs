//! Configuration of our own switch for a given setup.

use crate::interpretations::{Ambiguity, CnmInterpretation, Interpretations};
use crate::rig::Halt;
use crate::setup::{self, Dcbx, Form, Setup};
use axon_dcbx::lldp::LldpConfig;
use axon_dcbx::{DcbxConfig, DcbxNodeConfig, DcbxSettings, Mode, TieRule};
use axon_plane::dcb::DcbConfig;
use axon_plane::notification::CnConfig;
use axon_plane::qcn::{Choice, DefenceConfig, DefenceMode, Defences};
use axon_plane::schedule::{Algorithm, ScheduleConfig};
use axon_plane::shared_buffer::{MemoryConfig, PriorityGroupLimits, QueueLimits, Share};
use axon_prove::headroom::Headroom;
use axon_wire::cn::CnmFormat;
use axon_wire::dcbx::ieee::{Application, Selector};
use axon_wire::mac_control::{Quanta, Reserved};
use axon_wire::priority::{PRIORITIES, Priority, PrioritySet, TrafficClass};
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span};

/// Buffer for one priority at one ingress port, before XOFF is sent.
const SHARE: Bytes = Bytes(64 << 10);
/// Length of the longest frame, including FCS and tag.
const FRAME: Bytes = Bytes(1_522);
/// Number of octets of a sampled frame that a CNM quotes.
const QUOTE: u8 = 32;

/// Application that the switch advertises, which is FCoE, by its EtherType.
const FCOE: Application = Application {
    priority: Priority::from_low_bits(3),
    selector: Selector::ETHERTYPE,
    protocol: 0x8906,
};

/// Returns the DCB configuration of a switch whose ports have these rates, with this address and
/// cables of this latency.
pub(super) fn dcb(setup: &Setup, rates: &[Rate], (mac, cable): (MacAddr, Span)) -> DcbConfig {
    let group = PriorityGroupLimits {
        reserved: Bytes(0),
        share: Share::Static(SHARE),
        headroom: headroom(rates[0], cable),
        xon_offset: Bytes(2 * FRAME.0),
    };
    let queue = QueueLimits { reserved: Bytes(0), share: Share::Dynamic { shift: 0 } };
    let algorithm = |class: TrafficClass| match setup.shares[class.index()] {
        Some(percent) => Algorithm::Ets { percent },
        None => Algorithm::Strict,
    };
    DcbConfig {
        memory: MemoryConfig {
            lossless: if setup.pause { PrioritySet::ALL } else { setup.pfc },
            lossless_pool: Bytes(SHARE.0 * (PRIORITIES * rates.len()) as u64),
            lossy_pool: Bytes(4 << 20),
            groups: vec![[group; PRIORITIES]; rates.len()],
            queues: [queue; PRIORITIES],
        },
        prio_tc: setup.prio_tc,
        schedule: ScheduleConfig::of(TrafficClass::ALL.map(algorithm)),
        pfc: setup.pfc,
        pause: setup.pause,
        pfc_quanta: Quanta::MAX,
        ..DcbConfig::lossy(rates.to_vec(), mac)
    }
}

/// Returns the CNM format that the device uses.
pub(super) fn cnm_format(cnm: &CnmInterpretation) -> CnmFormat {
    CnmFormat {
        priority_in_high_bits: cnm.priority_in_high_bits,
        offset_falls_with_queue: cnm.offset_falls_with_queue,
        always_tagged: cnm.always_tagged,
        msdu_has_ethertype: cnm.msdu_has_ethertype,
        source_is_point: cnm.source_is_point,
        copies_tag: cnm.copies_tag,
        strict: cnm.strict,
        ..CnmFormat::default()
    }
}

/// Returns the device's handling of PFC frames with reserved bits.
pub(super) fn pfc_reserved(interpretations: &Interpretations) -> Reserved {
    let refused = interpretations.is_other(Ambiguity::PfcReserved);
    if refused { Reserved::Refused } else { Reserved::Ignored }
}

/// Returns the congestion notification configuration of a switch with this number of ports and this
/// CNM format. Its port `tested` has the defence mode of the setup.
pub(super) fn congestion(
    setup: &Setup,
    tested: PortNo,
    (ports, format): (u16, CnmFormat),
) -> Result<Option<CnConfig>, Halt> {
    if setup.congestion.is_empty() {
        return Ok(None);
    }
    let mut config = CnConfig::new(ports, setup.congestion);
    for point in &mut config.points {
        (point.format, point.header_octets_min) = (format, QUOTE);
    }
    let auto = DefenceConfig { cnpvs: setup.congestion, ..DefenceConfig::default() };
    let alternate = |priority| setup.alternate.unwrap_or(auto.alternate(priority));
    let mode = match setup.defence {
        setup::DefenceMode::Disabled => DefenceMode::Disabled,
        setup::DefenceMode::Edge => DefenceMode::Edge,
        setup::DefenceMode::Interior => DefenceMode::Interior,
        setup::DefenceMode::InteriorReady => DefenceMode::InteriorReady,
    };
    let component = Priority::ALL.map(|priority| Choice::Admin(mode, alternate(priority)));
    let defence = DefenceConfig { component, ..auto };
    let refused = |fault| Halt::Failed(format!("the device refuses this: {fault}"));
    let defences = Defences::new(defence).map_err(refused)?;
    config.treatments[tested.index()] = Priority::ALL.map(|one| defences.treatment(one));
    Ok(Some(config))
}

/// Returns the headroom: the delay value of IEEE 802.1Q, plus one frame that no longer fits the
/// share.
fn headroom(rate: Rate, cable: Span) -> Bytes {
    let delay = Headroom::new(rate, cable, FRAME).map_or(Bytes(0), |headroom| headroom.bytes());
    delay + FRAME
}

/// Returns the DCBX configuration of a switch with this data plane configuration. The switch
/// advertises one application, which is FCoE, by its EtherType.
pub(super) fn dcbx(said: Dcbx, dcb: &DcbConfig) -> DcbxNodeConfig {
    let asked = DcbxSettings {
        mode: match said.form {
            Form::Ieee => Mode::Ieee,
            Form::Cee => Mode::Cee,
        },
        ets_willing: said.ets_willing,
        pfc_willing: said.pfc_willing,
        applications: vec![FCOE],
        tie: if said.higher_keeps { TieRule::HigherKeeps } else { TieRule::LowerKeeps },
        ..DcbxSettings::default()
    };
    DcbxNodeConfig {
        system_name: "s1".into(),
        lldp: LldpConfig::default(),
        dcbx: DcbxConfig::for_plane(dcb, &asked),
        defences: Vec::new(),
    }
}
