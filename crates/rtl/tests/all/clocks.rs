//! The device stops the clocks of parts in which nothing changes. Beside one that runs all its
//! clocks it must show the same at every pin in every cycle: with random traffic and settings, and
//! with gaps in which clocks stop.

use crate::fates::{PORTS, WIDTHS, config, model};
use crate::frames::Frames;
use crate::needs;
use axon_node::{PortKind, RouteKey};
use axon_rtl::Model;
use axon_rtl::driver::{Bus, Driver};
use axon_rtl::gmii::{Carrier, Damage, Sender};
use axon_rtl::model::{Inputs, Outputs};
use axon_rtl::pins::SYMBOL_END;
use axon_wire::{HopWidth, PortNo};
use std::collections::VecDeque;

/// Cycles between two changes of settings.
const EPOCH_CYCLES: u64 = 6_000;
const EPOCHS: u64 = 12;
const FRAME_BYTES_MAX: usize = 400;

/// Two devices with the same input pins, of which one runs all its clocks.
struct Pair {
    models: [Model; 2],
    inputs: Inputs,
    senders: Vec<Sender>,
    inject: VecDeque<u16>,
    cycle: u64,
    frames: Frames,
    kinds: Vec<PortKind>,
    /// Bytes and symbols that have left.
    left: u64,
}

impl Pair {
    fn new(width: HopWidth) -> Option<Pair> {
        let mut models = [model(width)?, model(width)?];
        models[1].run_all_clocks();
        Some(Pair {
            models,
            inputs: Inputs { link_up: [1; PORTS as usize], ..Inputs::default() },
            senders: vec![Sender::default(); usize::from(PORTS)],
            inject: VecDeque::new(),
            cycle: 0,
            frames: Frames::new(7, width),
            kinds: vec![PortKind::Unknown; usize::from(PORTS)],
            left: 0,
        })
    }

    /// Runs one cycle of both, and compares.
    fn step(&mut self) -> Outputs {
        let mut inputs = self.inputs;
        for (port, sender) in self.senders.iter_mut().enumerate() {
            let Some((byte, is_error)) = sender.step() else { continue };
            (inputs.rxd[port], inputs.rx_dv[port]) = (byte, 1);
            inputs.rx_er[port] = u8::from(is_error);
        }
        if let Some(&symbol) = self.inject.front() {
            (inputs.inject_valid, inputs.inject_symbol) = (1, symbol);
        }
        inputs.punt_ready = u8::from(self.cycle % 64 < 48);
        let [outputs, expected] = self.models.each_mut().map(|model| model.step(&inputs));
        assert_eq!(outputs, expected, "cycle {}", self.cycle);
        if inputs.inject_valid == 1 && outputs.inject_ready == 1 {
            self.inject.pop_front();
        }
        self.left += outputs.tx_en.iter().map(|&sends| u64::from(sends)).sum::<u64>();
        self.left += u64::from(outputs.punt_valid);
        self.cycle += 1;
        outputs
    }

    /// Puts frames on the wires at random times, for an epoch.
    fn run(&mut self) {
        // Full load, load with gaps, and single frames.
        let one_in = [60, 1_200, 4_000][self.frames.below(3) as usize];
        for _ in 0..EPOCH_CYCLES {
            if self.frames.one_in(one_in) {
                let port = self.frames.below(PORTS.into()) as usize;
                let damage = match self.frames.below(12) {
                    0 => Some(Damage::Fcs),
                    1 => Some(Damage::Cut(self.frames.below(40) as usize)),
                    2 => Some(Damage::Start),
                    3 => Some(Damage::Runt),
                    _ => None,
                };
                let frame = self.frames.frame(self.kinds[port], FRAME_BYTES_MAX);
                self.senders[port].push(Carrier::of(&frame, damage));
            }
            if self.inject.is_empty() && self.frames.one_in(8 * one_in) {
                let port = self.frames.below(u64::from(PORTS) + 1) as u16;
                let frame = self.frames.frame(PortKind::Host, 100);
                let bytes = frame.into_iter().map(u16::from);
                self.inject.extend([port].into_iter().chain(bytes).chain([SYMBOL_END]));
            }
            self.step();
        }
    }
}

impl Bus for Pair {
    fn read(&mut self, address: u16) -> u32 {
        (self.inputs.reg_read, self.inputs.reg_address) = (1, address);
        self.step();
        self.inputs.reg_read = 0;
        self.step();
        self.step().reg_read_data
    }

    fn write(&mut self, address: u16, value: u32) {
        self.inputs.reg_write = 1;
        (self.inputs.reg_address, self.inputs.reg_write_data) = (address, value);
        self.step();
        self.inputs.reg_write = 0;
    }

    fn wait(&mut self, cycles: u64) {
        for _ in 0..cycles {
            self.step();
        }
    }
}

fn compare(width: HopWidth) {
    let Some(mut pair) = Pair::new(width) else { return };
    let size = pair.models[0].size();
    let mut driver = Driver::new(&mut pair, size, &config(width));
    for _ in 0..EPOCHS {
        for port in (0..PORTS).map(PortNo) {
            let kind = pair.frames.kind();
            pair.kinds[port.index()] = kind;
            driver.set_kind(&mut pair, port, kind);
            pair.inputs.link_up[port.index()] = u8::from(!pair.frames.one_in(6));
        }
        for _ in 0..8 {
            let port = PortNo(pair.frames.below(PORTS.into()) as u16);
            let key = RouteKey::to(pair.frames.host());
            let route = pair.frames.route();
            let _ = driver.install(&mut pair, port, key, route);
        }
        pair.run();
        driver.take_drops(&mut pair);
    }
    assert!(pair.left > 20_000, "{} bytes left the device", pair.left);
}

#[test]
fn clocks_that_stop_make_no_difference_at_the_pins() {
    WIDTHS.into_iter().for_each(compare);
}

#[test]
fn devices_end_in_any_order_and_in_any_thread() {
    let Ok(first) = Model::load(HopWidth::Eight) else {
        return needs::skip("no library of the device: make rtl-model");
    };
    let more = [(); 3].map(|()| Model::load(HopWidth::Eight).unwrap());
    drop(more);
    let last = Model::load(HopWidth::Eight).unwrap();
    std::thread::spawn(move || drop(first)).join().unwrap();
    drop(last);
}
