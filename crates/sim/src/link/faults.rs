//! Link faults: cut, silent, slow, noisy and disorderly links, and their repair.

use crate::engine::Engine;
use crate::link::disorder::Disorder;
use crate::link::links::LinkId;
use crate::link::noise::Noise;
use axon_wire::Rate;

impl Engine {
    /// Cuts a link, so that both ends lose carrier, or repairs it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.0].cut = cut;
        self.refresh_carrier(link);
    }

    /// Makes a link drop every frame while its ends keep carrier, or repairs it.
    pub fn set_silent(&mut self, link: LinkId, silent: bool) {
        (0..2).for_each(|side| self.set_silent_from(link, side, silent));
    }

    /// Makes a link drop every frame from end `side` only, or repairs it.
    pub fn set_silent_from(&mut self, link: LinkId, side: usize, silent: bool) {
        self.links[link.0].silent[side] = silent;
        self.with_cable_end(link, side, |cable| cable.silent = silent);
    }

    /// Sets the disorder of a link in both directions, which no FCS shows. Rates of 0 disable it.
    /// It ends when the link is connected anew.
    pub fn set_disorder(&mut self, link: LinkId, disorder: Disorder) {
        for side in 0..2 {
            self.with_noise(link, side, |noise| noise.set_disorder(disorder));
        }
    }

    /// Sets the rate of a link in both directions for further transmissions. Frames on the wire are
    /// not affected.
    pub fn set_rate(&mut self, link: LinkId, rate: Rate) {
        self.links[link.0].wire.rate = rate;
        let ends = self.links[link.0].ends;
        for side in 0..2 {
            if self.cable_end_at(link, 1 - side).is_some() {
                let way = self.way(link, side);
                self.with_cable_end(link, side, |cable| cable.way = way);
            }
        }
        ends.iter().for_each(|end| self.restore_ways(end.station));
    }

    /// Sets the loss rate of a link, in frames per million.
    pub fn set_loss(&mut self, link: LinkId, loss_ppm: u32) {
        self.links[link.0].wire.loss_ppm = loss_ppm;
        self.refresh_noise(link);
    }

    /// Sets the bit error rate of a link, in bits per 10^15.
    pub fn set_bit_errors(&mut self, link: LinkId, per_1e15: u64) {
        self.links[link.0].wire.bit_errors_per_1e15 = per_1e15;
        self.refresh_noise(link);
    }

    fn refresh_noise(&mut self, link: LinkId) {
        let wire = self.links[link.0].wire;
        for side in 0..2 {
            self.with_noise(link, side, |noise| noise.set(&wire));
        }
    }

    /// Changes the noise from end `side` of a link.
    fn with_noise(&mut self, link: LinkId, side: usize, change: impl FnOnce(&mut Noise)) {
        let fresh = self.fresh_noise(link, side);
        self.with_cable_end(link, side, |cable| {
            let noise = cable.rare.noise.get_or_insert_with(|| Box::new(fresh));
            change(noise);
            cable.noisy = noise.is_on();
        });
    }
}

#[cfg(test)]
mod tests {
    use crate::World;
    use crate::link::links::{LinkId, Loss};
    use axon_wire::Span;

    #[test]
    fn losses_of_a_link_that_is_not_connected_are_there_when_it_is() {
        let fabric = axon_fabric::samples::fat_tree(4);
        let mut world = World::new(&fabric, 1);
        world.run_for(Span::from_secs(1));
        let link = LinkId(0);
        let engine = world.engine_mut();
        let [a, b] = engine.links()[link.0].ends;
        engine.disconnect(link);
        engine.set_loss(link, 1_000_000);
        engine.reconnect(link, a, b);
        let delivered = engine.fates(link, 0).delivered;
        world.run_for(Span::from_secs(1));
        let fates = world.engine_mut().fates(link, 0);
        assert!(fates.lost[Loss::Noise as usize] > 0, "{fates:?}");
        assert_eq!(fates.delivered, delivered);
    }
}
