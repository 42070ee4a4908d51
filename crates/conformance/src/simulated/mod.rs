//! Rig around our own switch in simulated time: the production switch and controller, with a
//! simulated tester at each port.

mod device;
mod dut;
mod end_station;
pub mod plant;
mod tester;

use crate::interpretations::Interpretations;
use crate::rig::{Halt, Rig, Seen, Stream};
use crate::setup::{Dcbx, Setup};
use axon_fabric::assemble::{controller_config, host_mac, switch_config, switch_mac};
use axon_fabric::model::Wire;
use axon_fabric::samples;
use axon_sim::links::WireEnd;
use axon_sim::station::StationNode;
use axon_sim::{DataplaneKind, Engine, SwitchPlane};
use axon_switch::ControllerNode;
use axon_wire::{Bytes, MacAddr, PortNo, Rate, Span, Time};
use device::Device;
use end_station::EndStation;
use plant::Plant;
use std::sync::{Arc, Mutex, PoisonError};
use tester::Tester;

/// Number of the tester's ports: one connected to the tested port, and one for each priority.
const PORTS: usize = 9;
/// Rate of all links.
const RATE: Rate = Rate::gbps(10);
/// One-way latency of a link, as for one hundred metres of fibre.
const LATENCY: Span = Span::from_nanos(500);
/// Stations in the engine: the device, the controller, and then the tester's ports.
const DEVICE: usize = 0;
const CONTROLLER: usize = 1;
const TESTERS: usize = 2;
const WIRE: Wire =
    Wire { rate: RATE, latency: LATENCY, loss_ppm: 0, bit_errors_per_1e15: 0, queue: Bytes(0) };

const fn at(station: usize, port: PortNo) -> WireEnd {
    WireEnd { station, port }
}

/// Rig in simulated time, see the module.
pub struct Simulated {
    plant: Option<Plant>,
    /// Interpretations that the device uses, and those that the cases use.
    interpretations: [Interpretations; 2],
    seed: u64,
    engine: Engine,
    testers: Vec<Arc<Mutex<tester::State>>>,
    streams: u16,
}

impl Simulated {
    /// Creates a rig around our own switch, optionally with a fault.
    pub fn new(plant: Option<Plant>, seed: u64) -> Simulated {
        Simulated::with_interpretations(plant, Default::default(), seed)
    }

    /// Creates a rig with interpretations for the switch (the first) and for the cases (the
    /// second).
    pub fn with_interpretations(
        plant: Option<Plant>,
        interpretations: [Interpretations; 2],
        seed: u64,
    ) -> Simulated {
        Simulated {
            plant,
            interpretations,
            seed,
            engine: Engine::new(seed, None),
            testers: Vec::new(),
            streams: 0,
        }
    }

    fn tester(&self, port: usize) -> std::sync::MutexGuard<'_, tester::State> {
        self.testers[port].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn nudge(&mut self) {
        (0..self.testers.len()).for_each(|port| self.engine.nudge(TESTERS + port));
    }

    /// Returns the DCBX configuration of the switch, changed by the fault if it affects DCBX.
    fn said(&self, dcbx: Dcbx) -> Dcbx {
        self.plant.map_or(dcbx, |plant| plant.take_part(dcbx))
    }

    /// Starts an end station connected to port 0 of the tester.
    fn begin_station(&mut self, setup: &Setup) {
        self.engine.connect(at(DEVICE, PortNo(0)), at(TESTERS, PortNo(0)), WIRE);
        let priority = setup.congestion.iter().next().unwrap_or_default();
        let sender = (host_mac(0), priority);
        let format = dut::cnm_format(&self.interpretations[0].cnm());
        let station = EndStation::new(sender, RATE, format, self.seed);
        self.engine.power_on(DEVICE, StationNode::Other(Box::new(station)));
    }

    /// Starts a switch as if it was built from a fabric file, with the tester's ports as hosts.
    fn begin_switch(&mut self, setup: &Setup) -> Result<(), Halt> {
        let fabric = samples::line(1, PORTS);
        let ports = usize::from(fabric.switches[0].ports);
        let mut dcb = dut::dcb(setup, &vec![RATE; ports], (switch_mac(0), LATENCY));
        let interpretations = &self.interpretations[0];
        dcb.pfc_reserved = dut::pfc_reserved(interpretations);
        let tested = fabric.hosts[0].port;
        dcb.cn = dut::congestion(
            setup,
            tested,
            (ports as u16, dut::cnm_format(&interpretations.cnm())),
        )?;
        if let Some(plant) = self.plant {
            plant.configure(&mut dcb);
        }
        let refused = |fault| Halt::Failed(format!("the device refuses this: {fault}"));
        dcb.schedule.check().map_err(refused)?;
        self.engine.connect(at(DEVICE, fabric.controller.at.port), at(CONTROLLER, PortNo(0)), WIRE);
        for (port, host) in fabric.hosts.iter().enumerate() {
            self.engine.connect(at(DEVICE, host.port), at(TESTERS + port, PortNo(0)), WIRE);
        }
        let mut config = switch_config(&fabric, 0, 1, self.seed);
        config.control.dcbx = setup.dcbx.map(|said| Box::new(dut::dcbx(self.said(said), &dcb)));
        config.plane.dcb = Some(Box::new(dcb));
        let switch = config.on_software();
        let plant = self.plant.map(|plant| (plant, RATE));
        let device = Device::new(switch, plant);
        self.engine.power_on(DEVICE, StationNode::Other(Box::new(device)));
        let setup = controller_config(&fabric, 1, self.seed);
        let plane = SwitchPlane::new(DataplaneKind::Software, setup.plane);
        let controller = ControllerNode::new(setup.control, plane, Time::ZERO);
        self.engine.power_on(CONTROLLER, StationNode::Controller(Box::new(controller)));
        Ok(())
    }
}

impl Rig for Simulated {
    fn ports(&self) -> usize {
        PORTS
    }

    fn rate(&self) -> Rate {
        RATE
    }

    fn slack(&self) -> Span {
        LATENCY * 2
    }

    fn interpretations(&self) -> &Interpretations {
        &self.interpretations[1]
    }

    fn absences(&self) -> &[(Time, Time)] {
        &[]
    }

    fn lost(&mut self) -> u64 {
        0
    }

    fn given(&self) -> Option<&Setup> {
        None
    }

    fn set_up(&mut self, setup: &Setup) -> Result<(), Halt> {
        self.engine = Engine::new(self.seed, None);
        self.testers = (0..PORTS).map(|port| tester::State::new(port, RATE)).collect();
        let names = ["s1".to_owned(), "c1".to_owned()].into_iter();
        for name in names.chain((0..PORTS).map(|port| format!("h{}", port + 1))) {
            self.engine.add_station(&name);
        }
        if setup.station {
            self.begin_station(setup);
        } else {
            self.begin_switch(setup)?;
        }
        for (port, state) in self.testers.iter().enumerate() {
            let tester = StationNode::Other(Box::new(Tester::new(state.clone())));
            self.engine.power_on(TESTERS + port, tester);
        }
        Ok(())
    }

    fn device_mac(&self) -> Option<MacAddr> {
        Some(switch_mac(0))
    }

    fn now(&self) -> Time {
        self.engine.now()
    }

    fn send(&mut self, port: usize, at: Time, frame: Vec<u8>) {
        self.tester(port).station.order(at, frame);
    }

    fn stream(&mut self, stream: Stream) -> u16 {
        self.streams += 1;
        self.tester(stream.from).station.add(self.streams, stream);
        self.streams
    }

    fn pass(&mut self, until: Time) -> Result<Vec<Seen>, Halt> {
        self.nudge();
        self.engine.run(until);
        let mut seen = Vec::new();
        for port in 0..self.testers.len() {
            let mut state = self.tester(port);
            let (now, later) =
                std::mem::take(&mut state.seen).into_iter().partition(|one: &Seen| one.at <= until);
            state.seen = later;
            seen.extend::<Vec<Seen>>(now);
        }
        seen.sort_by_key(|one| (one.at, one.port));
        Ok(seen)
    }
}
