//! The memory of the NIC, which three DMA engines and the processor share.
//!
//! Between two events, all engines have constant shares of the memory's cycles. Whenever an engine
//! starts or ends, the shares are computed again from the priorities. So the time of the next end
//! is known, and no simulation cycle by cycle is needed.

use super::events::{Picos, micros, picos};

/// Engine that accesses the memory. Engines are listed with the highest priority first (003 §2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Engine {
    /// DMA over the I/O bus.
    External,
    /// Network receive, from the link.
    Receive,
    /// Network send, to the link.
    Send,
    /// Processor, which runs the firmware.
    Processor,
}

impl Engine {
    const ALL: [Engine; 4] = [Engine::External, Engine::Receive, Engine::Send, Engine::Processor];
}

/// Number of accesses that is not worth an event, because it comes from the rounding of sums.
const NOTHING: f64 = 1e-6;

#[derive(Clone, Copy, Debug, Default)]
struct Work {
    /// Number of accesses that remain.
    left: f64,
    /// Maximum number of accesses per microsecond, as limited by the bus or the link.
    most: f64,
    /// Current number of accesses per microsecond.
    rate: f64,
}

/// Memory, with the accesses in progress.
#[derive(Debug)]
pub(super) struct Memory {
    /// Capacity, in accesses per microsecond.
    cycles: f64,
    /// Rate of the processor if no DMA runs at the same time, in accesses per microsecond.
    alone: f64,
    work: [Option<Work>; 4],
    /// Time at which `left` was valid.
    at: Picos,
    epoch: u64,
    /// Number of accesses done since the start.
    done: f64,
}

impl Memory {
    /// Creates a memory with `mhz` accesses per microsecond, of which the processor gets `share` if
    /// no DMA runs at the same time.
    pub(super) fn new(mhz: f64, share: f64) -> Memory {
        Memory { cycles: mhz, alone: mhz * share, work: [None; 4], at: 0, epoch: 0, done: 0.0 }
    }

    /// Starts `accesses` accesses by an engine that gets at most `most` per microsecond.
    pub(super) fn start(&mut self, now: Picos, engine: Engine, accesses: f64, most: f64) {
        self.advance(now);
        debug_assert!(self.work[engine as usize].is_none(), "{engine:?} is busy");
        self.work[engine as usize] = Some(Work { left: accesses, most, rate: 0.0 });
        self.share();
    }

    /// Returns whether an engine is busy.
    pub(super) fn is_busy(&self, engine: Engine) -> bool {
        self.work[engine as usize].is_some()
    }

    /// Ends the transfers that are complete, and returns their engines in order of priority.
    pub(super) fn take_done(&mut self, now: Picos) -> Vec<Engine> {
        self.advance(now);
        let is_done =
            |engine: &Engine| self.work[*engine as usize].is_some_and(|work| work.left <= NOTHING);
        let done: Vec<Engine> = Engine::ALL.into_iter().filter(is_done).collect();
        done.iter().for_each(|&engine| self.work[engine as usize] = None);
        self.share();
        done
    }

    /// Returns the time of the next completion, if nothing starts before then, together with the
    /// epoch. The epoch changes with every start and end.
    pub(super) fn next(&self) -> Option<(Picos, u64)> {
        let running = self.work.iter().flatten().filter(|work| work.rate > 0.0);
        let first = running.map(|work| work.left / work.rate).reduce(f64::min)?;
        Some((self.at + picos(first), self.epoch))
    }

    /// Returns the number of starts and ends so far.
    pub(super) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the number of accesses done until `now`.
    pub(super) fn accesses(&mut self, now: Picos) -> f64 {
        self.advance(now);
        self.done
    }

    fn advance(&mut self, now: Picos) {
        let elapsed = micros(now - self.at);
        self.at = now;
        for work in self.work.iter_mut().flatten() {
            let some = (work.rate * elapsed).min(work.left);
            work.left -= some;
            self.done += some;
        }
    }

    /// Assigns each engine its share, by priority.
    fn share(&mut self) {
        self.epoch += 1;
        let half = self.cycles / 2.0;
        let mut free = self.cycles;
        for engine in [Engine::External, Engine::Receive, Engine::Send] {
            if let Some(work) = &mut self.work[engine as usize] {
                work.rate = work.most.min(half).min(free);
                free -= work.rate;
            }
        }
        let is_busy = |engine| self.is_busy(engine);
        let both = is_busy(Engine::Receive) && is_busy(Engine::Send);
        let any = is_busy(Engine::External) || is_busy(Engine::Receive) || is_busy(Engine::Send);
        if let Some(work) = &mut self.work[Engine::Processor as usize] {
            work.rate = match (both, any) {
                (true, _) => 0.0,
                (false, true) => half.min(free),
                (false, false) => self.alone,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the times at which accesses end that were all started at once, in us.
    fn ends(mhz: f64, share: f64, started: &[(Engine, f64, f64)]) -> Vec<(Engine, f64)> {
        let mut memory = Memory::new(mhz, share);
        for &(engine, accesses, most) in started {
            memory.start(0, engine, accesses, most);
        }
        let mut ends = Vec::new();
        while let Some((time, epoch)) = memory.next() {
            assert_eq!(epoch, memory.epoch());
            let done = memory.take_done(time);
            assert!(!done.is_empty(), "an event for nothing");
            ends.extend(done.into_iter().map(|engine| (engine, micros(time))));
        }
        let all: f64 = started.iter().map(|(_, accesses, _)| accesses).sum();
        let last = (ends.last().unwrap().1 * 1e6) as Picos;
        assert!((memory.accesses(last) - all).abs() < 1e-3);
        ends
    }

    #[test]
    fn a_narrow_memory_serves_two_dmas_and_then_the_third_with_the_processor() {
        // A LANai 4 with 4 KiB has 66 accesses per microsecond.
        let words = 1024.0;
        let ends = ends(
            66.0,
            1.0,
            &[
                (Engine::Processor, 1100.0, f64::INFINITY),
                (Engine::Send, words, 40.0),
                (Engine::Receive, words, 40.0),
                (Engine::External, words, 33.0),
            ],
        );
        let expected = [
            (Engine::External, 31.03),
            (Engine::Receive, 31.03),
            (Engine::Send, 62.06),
            (Engine::Processor, 63.21),
        ];
        assert_eq!(ends.len(), expected.len());
        for ((engine, at), (expected, us)) in ends.into_iter().zip(expected) {
            assert!(engine == expected && (at - us).abs() < 0.005, "{engine:?} {at}");
        }
    }

    #[test]
    fn a_wide_memory_slows_no_dma_but_the_processor_starves_beside_both_network_engines() {
        let words = 512.0;
        let ends = ends(
            132.0,
            0.5,
            &[
                (Engine::Processor, 1100.0, f64::INFINITY),
                (Engine::Send, words, 20.0),
                (Engine::Receive, words, 20.0),
            ],
        );
        // The link takes 25.6 us, and after that the processor gets every other cycle.
        let expected = 25.6 + 1100.0 / 66.0;
        assert_eq!(ends[2].0, Engine::Processor);
        assert!((ends[2].1 - expected).abs() < 0.001, "{ends:?}");
        assert!((ends[0].1 - 25.6).abs() < 0.001 && ends[0].1 == ends[1].1);
    }

    #[test]
    fn beside_one_dma_the_processor_has_every_other_cycle() {
        let started = [(Engine::Processor, 66.0, f64::INFINITY), (Engine::External, 660.0, 10.0)];
        let ends = ends(132.0, 1.0, &started);
        assert_eq!(ends[0].0, Engine::Processor);
        assert!((ends[0].1 - 1.0).abs() < 1e-5, "{ends:?}");
    }
}
