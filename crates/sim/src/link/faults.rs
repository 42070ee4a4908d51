//! Faults of links: cut, silent, slow, noisy, disorderly, and mended again.

use crate::engine::Engine;
use crate::link::disorder::Disorder;
use crate::link::links::LinkId;
use crate::link::noise::Noise;
use axon_wire::Rate;

impl Engine {
    /// Breaks a link (both ends lose carrier) or mends it.
    pub fn set_cut(&mut self, link: LinkId, cut: bool) {
        self.links[link.0].cut = cut;
        self.refresh_carrier(link);
    }

    /// Makes a link swallow every frame while its ends keep carrier, or mends it.
    pub fn set_silent(&mut self, link: LinkId, silent: bool) {
        (0..2).for_each(|side| self.set_silent_from(link, side, silent));
    }

    /// The same for the frames that end `side` sends only; those of the other end pass.
    pub fn set_silent_from(&mut self, link: LinkId, side: usize, silent: bool) {
        self.links[link.0].silent[side] = silent;
        self.with_cable_end(link, side, |cable| cable.silent = silent);
    }

    /// Lets a link disturb the frames of both directions in ways that no FCS shows, or, with rates
    /// of 0, no longer. A link that is connected anew does not.
    pub fn set_disorder(&mut self, link: LinkId, disorder: Disorder) {
        for side in 0..2 {
            self.with_noise(link, side, |noise| noise.set_disorder(disorder));
        }
    }

    /// Changes the rate of a link, in both directions, for all that is sent from now on. What is
    /// on the wire goes on as it was.
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

    /// Changes how many frames a link loses, per million.
    pub fn set_loss(&mut self, link: LinkId, loss_ppm: u32) {
        self.links[link.0].wire.loss_ppm = loss_ppm;
        self.refresh_noise(link);
    }

    /// Changes how many bits a link flips, per 10^15.
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
        let fabric = axon_fabric::topology::fat_tree(4);
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
