//! Reaction point: the rate of a flow (IEEE 802.1Q clauses 31 and 32).

use super::jittered;
use axon_node::random::Random;
use axon_wire::cn::FEEDBACK_MAX;
use axon_wire::{Bytes, Rate, Span, Time};

/// Ratio of target to current rate above which the target falls in the first cycle after a cut.
const TARGET_FAR: u64 = 10;
/// Port rate for which the MIB's defaults are made.
const MADE_FOR: Rate = Rate::gbps(10);

/// MIB variables of a reaction point (IEEE8021-CN-MIB, `ieee8021CnRpGroupTable`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpConfig {
    /// `rpgTimeReset`: length of a cycle of the timer, not zero.
    pub time_reset: Span,
    /// `rpgByteReset`: length of a cycle of the byte counter, in bytes.
    pub byte_reset: Bytes,
    /// `rpgThreshold`: cycles of fast recovery before the target rate rises.
    pub threshold: u32,
    /// `rpgAiRate`: increase of the target rate by one cycle of active increase.
    pub ai_rate: Rate,
    /// `rpgHaiRate`: increase by the first cycle of hyper-active increase; by the n-th, n times.
    pub hai_rate: Rate,
    /// `rpgGd`: one step of `QntzFb` cuts the rate by 2^-this of itself, 0..=31.
    pub gd_log2: u8,
    /// `rpgMinDecFac`: minimum rate after a CNM, in percent of the rate before, 0..=100.
    pub min_dec_fac_percent: u8,
    /// `rpgMinRate`: minimum rate after a CNM.
    pub min_rate: Rate,
    /// `rpgMaxRate`: rate of a flow without CNMs; the port's rate.
    pub max_rate: Rate,
    /// Interpretations on which sources disagree.
    pub interpretations: RpInterpretations,
}

/// Interpretations of the reaction point on which sources disagree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RpInterpretations {
    /// End of fast recovery.
    pub increase: Increase,
    /// Condition for halving the cycles.
    pub half_period: HalfPeriod,
    /// Reduction of a target far above the rate, to 2^-this of itself: 3 in most sources, 1 in one
    /// firmware.
    pub reduction_log2: u8,
}

/// End of fast recovery and begin of active and hyper-active increase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Increase {
    /// A count of cycles reaches the threshold (802.1Q, and most implementations).
    Reaches,
    /// A count of cycles passes the threshold, one cycle later (the public pseudo-code 2.x).
    Passes,
    /// Immediately: every cycle adds the rate of active increase (one public simulator).
    Always,
}

/// Condition for halving the cycles, so that a flow probes for bandwidth faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HalfPeriod {
    /// For each counter by itself, from its threshold on (pseudo-code, papers, firmware).
    FromActive,
    /// For both counters, once both are at the threshold (one public simulator).
    OnlyHyper,
}

/// Errors in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RpError {
    /// The minimum rate is above the maximum rate.
    #[error("a least rate of {0} above the largest, {1}")]
    Rates(Rate, Rate),
    /// The timer's cycle is zero.
    #[error("a timer of no length")]
    TimeReset,
    /// A percentage above 100.
    #[error("a least decrease factor of {0} %")]
    MinDecFac(u8),
    /// A gain so small that cuts would have no effect.
    #[error("a gain of 2^-{0}, where 2^-31 is the least")]
    Gain(u8),
    /// A reduction so large that nothing would be left of the target.
    #[error("a target reduction of 2^-{0}, where 2^-3 is the most")]
    Reduction(u8),
}

impl Default for RpInterpretations {
    fn default() -> RpInterpretations {
        RpInterpretations {
            increase: Increase::Reaches,
            half_period: HalfPeriod::FromActive,
            reduction_log2: 3,
        }
    }
}

impl RpConfig {
    /// Returns the MIB's defaults for a port of `max_rate`; on a port slower than the MIB's minimum
    /// rate the minimum is the port's rate.
    pub fn for_port(max_rate: Rate) -> RpConfig {
        RpConfig {
            time_reset: Span::from_millis(15),
            byte_reset: Bytes(150_000),
            threshold: 5,
            ai_rate: Rate::mbps(5),
            hai_rate: Rate::mbps(50),
            gd_log2: 7,
            min_dec_fac_percent: 50,
            min_rate: Rate::mbps(5).min(max_rate),
            max_rate,
            interpretations: RpInterpretations::default(),
        }
    }

    /// Returns the MIB's defaults scaled from 10 Gb/s, for which they are made, to a port of
    /// `max_rate`: a timer that lasts for as many bytes, and increases that are the same fraction
    /// of the rate. The module's documentation describes the loop without scaling.
    pub fn scaled_for_port(max_rate: Rate) -> RpConfig {
        let made_for = u128::from(MADE_FOR.bits_per_second());
        let rate = u128::from(max_rate.bits_per_second());
        let part_of = |rate_made: Rate| {
            let bits = u128::from(rate_made.bits_per_second()) * rate / made_for;
            let bits = u64::try_from(bits).unwrap_or(u64::MAX);
            Rate::from_bits_per_second(bits).unwrap_or(rate_made)
        };
        let config = RpConfig::for_port(max_rate);
        let ticks = (u128::from(config.time_reset.ticks()) * made_for / rate).max(1);
        RpConfig {
            time_reset: Span::from_ticks(u64::try_from(ticks).unwrap_or(u64::MAX)),
            ai_rate: part_of(config.ai_rate),
            hai_rate: part_of(config.hai_rate),
            ..config
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// A value outside its range.
    pub fn check(&self) -> Result<(), RpError> {
        if self.min_rate > self.max_rate {
            return Err(RpError::Rates(self.min_rate, self.max_rate));
        }
        if self.time_reset == Span::ZERO {
            return Err(RpError::TimeReset);
        }
        if self.min_dec_fac_percent > 100 {
            return Err(RpError::MinDecFac(self.min_dec_fac_percent));
        }
        if self.gd_log2 > 31 {
            return Err(RpError::Gain(self.gd_log2));
        }
        if self.interpretations.reduction_log2 > 3 {
            return Err(RpError::Reduction(self.interpretations.reduction_log2));
        }
        Ok(())
    }

    /// Returns the rate after a CNM, from `rate` bits per second, rounded down.
    fn cut(&self, rate: u64, qntz_fb: u8) -> u64 {
        let whole = 1u64 << self.gd_log2;
        let kept = u128::from(rate) * u128::from(whole.saturating_sub(qntz_fb.into()));
        let kept = kept >> self.gd_log2;
        let floor = u128::from(rate) * u128::from(self.min_dec_fac_percent) / 100;
        // Neither exceeds the rate, which has 64 bits.
        (kept.max(floor) as u64).max(self.min_rate.bits_per_second())
    }
}

/// Reaction point of one flow, or of all flows of a priority that share one.
///
/// A CNM saves the current rate as the target and cuts the current rate by `QntzFb * 2^-gd` of
/// itself. Then two counters run, one of time and one of bytes sent; each end of a cycle of either
/// takes the rate half the way to the target. While both have counted fewer than `threshold` cycles
/// nothing else happens: fast recovery. When one has reached it, each cycle also raises the target
/// by `ai_rate`, to probe for bandwidth: active increase. When both have, the target rises by a
/// multiple of `hai_rate` that grows with every cycle: hyper-active increase. A CNM restarts both
/// counters.
///
/// A CNM before the end of the first byte cycle does not lower the target, since it reports frames
/// that left before the last cut took effect: extra fast recovery. A target more than ten times the
/// rate falls to an eighth in the first cycle, since it is outdated.
///
/// Halves are rounded up, so that a rate reaches its target instead of stopping one short.
#[derive(Clone, Debug)]
pub struct ReactionPoint {
    config: RpConfig,
    active: bool,
    /// `rpgCurrentRate`, bits per second.
    rate: u64,
    /// `rpgTargetRate`, bits per second; never below the rate.
    target: u64,
    byte_stage: u32,
    time_stage: u32,
    /// Bytes left in this cycle.
    bytes_left: u64,
    /// End of the timer's cycle.
    timer: Time,
    random: Random,
    cnms: u64,
}

impl ReactionPoint {
    /// Returns an inactive reaction point; `seed` fixes the jitter of its cycles.
    ///
    /// # Errors
    /// A configuration that [`RpConfig::check`] refuses.
    pub(crate) fn new(config: RpConfig, seed: u64) -> Result<ReactionPoint, RpError> {
        config.check()?;
        let max = config.max_rate.bits_per_second();
        Ok(ReactionPoint {
            config,
            active: false,
            rate: max,
            target: max,
            byte_stage: 0,
            time_stage: 0,
            bytes_left: config.byte_reset.0,
            timer: Time::ZERO,
            random: Random::new(seed),
            cnms: 0,
        })
    }

    /// Returns the current rate of the flow: the configured maximum while inactive.
    pub fn rate(&self) -> Rate {
        self.clamped(self.rate)
    }

    /// Returns the target rate of recovery.
    #[cfg(test)]
    pub(crate) fn target(&self) -> Rate {
        self.clamped(self.target)
    }

    /// Returns whether a CNM has arrived since the last release.
    pub fn active(&self) -> bool {
        self.active
    }

    /// Returns the number of CNMs that had an effect.
    #[cfg(test)]
    pub(crate) fn cnms(&self) -> u64 {
        self.cnms
    }

    fn clamped(&self, bits: u64) -> Rate {
        Rate::from_bits_per_second(bits).unwrap_or(self.config.min_rate)
    }

    /// Returns the time of the next call of [`advance`](Self::advance); `None` while inactive.
    pub(crate) fn deadline(&self) -> Option<Time> {
        (self.active && self.rate < self.config.max_rate.bits_per_second()).then_some(self.timer)
    }

    /// Processes a CNM for this flow, received at `now`. A `QntzFb` of zero has no effect; one that
    /// exceeds six bits counts as 63.
    pub(crate) fn notified(&mut self, now: Time, qntz_fb: u8) {
        self.advance(now);
        if qntz_fb == 0 {
            return;
        }
        if !self.active || self.byte_stage != 0 {
            self.target = self.rate;
            self.bytes_left = self.config.byte_reset.0;
        }
        self.active = true;
        self.byte_stage = 0;
        self.time_stage = 0;
        self.timer = now + self.config.time_reset;
        self.rate = self.config.cut(self.rate, qntz_fb.min(FEEDBACK_MAX));
        self.target = self.target.max(self.rate);
        self.cnms = self.cnms.saturating_add(1);
    }

    /// Records that `bytes` of the flow have left.
    pub(crate) fn sent(&mut self, now: Time, bytes: Bytes) {
        self.advance(now);
        if !self.active {
            return;
        }
        self.bytes_left = self.bytes_left.saturating_sub(bytes.0);
        if self.bytes_left > 0 {
            return;
        }
        self.byte_stage = self.byte_stage.saturating_add(1);
        let cycle = self.config.byte_reset.0;
        self.bytes_left = self.cycle(cycle, self.byte_stage);
        self.increase();
    }

    /// Ends the cycles of the timer that are over by `now`. Early or repeated calls are harmless.
    pub(crate) fn advance(&mut self, now: Time) {
        while let Some(timer) = self.deadline().filter(|timer| *timer <= now) {
            self.time_stage = self.time_stage.saturating_add(1);
            let cycle = self.config.time_reset.ticks();
            let cycle = self.cycle(cycle, self.time_stage).max(1);
            self.timer = timer + Span::from_ticks(cycle);
            self.increase();
        }
    }

    /// Deactivates the reaction point if the flow, which has nothing to send, is back at its full
    /// rate. Returns whether it is inactive.
    pub(crate) fn release(&mut self) -> bool {
        if self.rate == self.config.max_rate.bits_per_second() {
            self.active = false;
        }
        !self.active
    }

    /// Returns the length of the next cycle of a counter that has ended `stage` cycles.
    fn cycle(&mut self, full: u64, stage: u32) -> u64 {
        let reached = match self.config.interpretations.half_period {
            HalfPeriod::FromActive => stage,
            HalfPeriod::OnlyHyper => self.byte_stage.min(self.time_stage),
        };
        let half = self.cycles_beyond(reached) > 0;
        jittered(if half { full / 2 } else { full }, &mut self.random)
    }

    /// Returns the number of cycles by which `stage` is past fast recovery; 0 in it.
    fn cycles_beyond(&self, stage: u32) -> u64 {
        let threshold = u64::from(self.config.threshold);
        match self.config.interpretations.increase {
            Increase::Reaches | Increase::Always => {
                (u64::from(stage) + 1).saturating_sub(threshold)
            }
            Increase::Passes => u64::from(stage).saturating_sub(threshold),
        }
    }

    /// Handles the end of a cycle of either counter.
    fn increase(&mut self) {
        let bytes = self.cycles_beyond(self.byte_stage);
        let time = self.cycles_beyond(self.time_stage);
        let ai_rate = self.config.ai_rate.bits_per_second();
        let hai_rate = self.config.hai_rate.bits_per_second();
        let more = match (bytes.min(time), bytes.max(time)) {
            _ if self.config.interpretations.increase == Increase::Always => ai_rate,
            (0, 0) => 0,
            (0, _) => ai_rate,
            (cycles, _) => hai_rate.saturating_mul(cycles),
        };
        let first = self.byte_stage == 1 || self.time_stage == 1;
        if first && self.target > self.rate.saturating_mul(TARGET_FAR) {
            self.target >>= self.config.interpretations.reduction_log2;
        } else {
            let max = self.config.max_rate.bits_per_second();
            self.target = self.target.saturating_add(more).min(max);
        }
        self.rate = self.rate + (self.target - self.rate).div_ceil(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    const TEN: Rate = Rate::gbps(10);

    fn at_millis(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    fn config() -> RpConfig {
        RpConfig::for_port(TEN)
    }

    fn interpreted(change: impl Fn(&mut RpInterpretations)) -> RpConfig {
        let mut config = config();
        change(&mut config.interpretations);
        config
    }

    fn point(config: RpConfig) -> ReactionPoint {
        ReactionPoint::new(config, 5).unwrap()
    }

    /// Ends one cycle of bytes.
    fn cycle(rp: &mut ReactionPoint) -> u64 {
        rp.sent(Time::ZERO, Bytes(rp.bytes_left));
        rp.rate().bits_per_second()
    }

    #[test]
    fn a_cut_and_five_recoveries_are_the_reference_vector() {
        let mut rp = point(config());
        rp.notified(Time::ZERO, 16);
        assert_eq!((rp.rate(), rp.target()), (Rate::mbps(8_750), TEN));
        let rates: Vec<u64> = (0..5).map(|_| cycle(&mut rp)).collect();
        let expected = [9_375_000_000, 9_687_500_000, 9_843_750_000, 9_921_875_000, 9_960_937_500];
        assert_eq!(rates, expected);
    }

    #[test]
    fn the_deepest_cut_never_meets_the_least_decrease_factor_of_the_mib() {
        let mut rp = point(config());
        rp.notified(Time::ZERO, 63);
        assert_eq!(rp.rate().bits_per_second(), 5_078_125_000);
        let shallow = RpConfig { min_dec_fac_percent: 90, ..config() };
        let mut rp = point(shallow);
        rp.notified(Time::ZERO, 63);
        assert_eq!(rp.rate(), Rate::mbps(9_000));
        let gain = RpConfig { gd_log2: 0, ..config() };
        let mut rp = point(gain);
        rp.notified(Time::ZERO, 1);
        assert_eq!(rp.rate(), Rate::mbps(5_000), "all of it, but half is the most");
    }

    #[test]
    fn extra_fast_recovery_keeps_the_target_until_a_cycle_of_bytes_has_ended() {
        let mut rp = point(config());
        rp.notified(Time::ZERO, 16);
        rp.sent(Time::ZERO, Bytes(100_000));
        rp.notified(Time::ZERO, 16);
        assert_eq!(rp.target(), TEN);
        assert_eq!(rp.bytes_left, 50_000, "and the byte counter runs on");
        let rate = cycle(&mut rp);
        rp.notified(Time::ZERO, 16);
        assert_eq!(rp.target().bits_per_second(), rate);
        assert_eq!(rp.bytes_left, 150_000);
    }

    /// Returns the increase of the target by each of `cycles` cycles of one counter.
    fn added(config: RpConfig, cycles: usize, of_both: bool) -> Vec<u64> {
        let mut rp = point(config);
        for _ in 0..50 {
            rp.notified(Time::ZERO, 32);
            cycle(&mut rp);
        }
        rp.notified(Time::ZERO, 32);
        let mut targets = alloc::vec![rp.target];
        for _ in 0..cycles {
            if of_both {
                rp.time_stage += 1;
            }
            cycle(&mut rp);
            targets.push(rp.target);
        }
        targets.windows(2).map(|pair| (pair[1] - pair[0]) / 1_000_000).collect()
    }

    #[test]
    fn active_and_hyper_active_increase_begin_where_the_interpretation_says() {
        assert_eq!(added(config(), 7, false), [0, 0, 0, 0, 5, 5, 5]);
        assert_eq!(added(config(), 7, true), [0, 0, 0, 0, 50, 100, 150]);
        let passes = interpreted(|of| of.increase = Increase::Passes);
        assert_eq!(added(passes, 7, false), [0, 0, 0, 0, 0, 5, 5]);
        assert_eq!(added(passes, 7, true), [0, 0, 0, 0, 0, 50, 100]);
        let always = interpreted(|of| of.increase = Increase::Always);
        assert_eq!(added(always, 3, true), [5, 5, 5]);
    }

    #[test]
    fn cycles_are_halved_where_the_interpretation_says() {
        let lengths = |config: RpConfig| {
            let mut rp = point(config);
            rp.notified(Time::ZERO, 63);
            let lengths: Vec<u64> = (0..6)
                .map(|_| {
                    cycle(&mut rp);
                    rp.bytes_left
                })
                .collect();
            lengths
        };
        let (full, half) = (127_500..=172_500, 63_750..=86_250);
        let from_active = lengths(config());
        assert!(from_active[..4].iter().all(|length| full.contains(length)), "{from_active:?}");
        assert!(from_active[4..].iter().all(|length| half.contains(length)), "{from_active:?}");
        let only_hyper = lengths(interpreted(|of| of.half_period = HalfPeriod::OnlyHyper));
        assert!(only_hyper.iter().all(|length| full.contains(length)), "{only_hyper:?}");
    }

    #[test]
    fn a_target_out_of_reach_falls_to_an_eighth() {
        let far = |config: RpConfig| {
            let mut rp = point(config);
            for _ in 0..4 {
                rp.notified(Time::ZERO, 63);
            }
            assert_eq!((rp.rate, rp.target), (664_987_600, 10_000_000_000));
            cycle(&mut rp);
            (rp.rate().bits_per_second(), rp.target().bits_per_second())
        };
        assert_eq!(far(config()), (957_493_800, 1_250_000_000));
        let half = interpreted(|of| of.reduction_log2 = 1);
        assert_eq!(far(half).1, 5_000_000_000);
    }

    #[test]
    fn the_timer_alone_brings_a_silent_flow_back_and_then_rests() {
        let mut rp = point(config());
        assert_eq!(rp.deadline(), None);
        rp.notified(at_millis(1), 63);
        assert_eq!(rp.deadline(), Some(at_millis(16)));
        let mut stages = 0;
        while let Some(timer) = rp.deadline() {
            let before = rp.rate();
            rp.advance(timer - Span::from_ticks(1));
            assert_eq!(rp.rate(), before, "nothing happens early");
            rp.advance(timer);
            assert!(rp.rate() > before);
            stages += 1;
        }
        assert_eq!(rp.rate(), TEN);
        assert!((30..40).contains(&stages), "{stages} halvings of a 10 Gb/s gap");
        assert!(rp.active() && rp.release() && !rp.active());
    }

    #[test]
    fn a_late_call_makes_up_for_every_cycle_that_was_missed() {
        let (mut late, mut punctual) = (point(config()), point(config()));
        late.notified(Time::ZERO, 63);
        punctual.notified(Time::ZERO, 63);
        for millis in 0..200 {
            punctual.advance(at_millis(millis));
        }
        late.advance(at_millis(199));
        assert_eq!((late.rate(), late.deadline()), (punctual.rate(), punctual.deadline()));
        late.advance(Time::MAX);
        assert_eq!(late.rate(), TEN);
    }

    #[test]
    fn a_flow_below_its_full_rate_is_not_released() {
        let mut rp = point(config());
        rp.notified(Time::ZERO, 1);
        assert!(!rp.release());
        rp.notified(Time::ZERO, 0);
        assert_eq!(rp.cnms(), 1, "zero has no effect");
    }

    #[test]
    fn values_outside_their_ranges_are_refused() {
        let refused = |config: RpConfig| ReactionPoint::new(config, 0).unwrap_err();
        let slow = RpConfig { min_rate: Rate::gbps(11), ..config() };
        assert_eq!(refused(slow), RpError::Rates(Rate::gbps(11), TEN));
        assert_eq!(refused(RpConfig { time_reset: Span::ZERO, ..config() }), RpError::TimeReset);
        let whole = RpConfig { min_dec_fac_percent: 101, ..config() };
        assert_eq!(refused(whole), RpError::MinDecFac(101));
        assert_eq!(refused(RpConfig { gd_log2: 32, ..config() }), RpError::Gain(32));
        let reduction = interpreted(|of| of.reduction_log2 = 4);
        assert_eq!(refused(reduction), RpError::Reduction(4));
        assert!(RpConfig::for_port(Rate::mbps(1)).check().is_ok());
    }

    #[test]
    fn scaled_to_another_port_a_timer_lasts_for_as_many_bytes() {
        assert_eq!(RpConfig::scaled_for_port(TEN), config());
        for (rate, micros, kilobits) in
            [(Rate::gbps(1), 150_000, 500), (Rate::gbps(100), 1_500, 50_000)]
        {
            let scaled = RpConfig::scaled_for_port(rate);
            assert_eq!(scaled.time_reset, Span::from_micros(micros));
            assert_eq!(scaled.ai_rate.bits_per_second(), kilobits * 1_000);
            assert_eq!(scaled.hai_rate.bits_per_second(), kilobits * 10_000);
            assert_eq!(scaled.max_rate, rate);
        }
        for bits in [1, u64::MAX] {
            let rate = Rate::from_bits_per_second(bits).unwrap();
            assert_eq!(RpConfig::scaled_for_port(rate).check(), Ok(()));
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Cnm(u8),
        Sent(u64),
        Wait(u64),
    }

    fn event() -> impl Strategy<Value = Event> {
        prop_oneof![
            any::<u8>().prop_map(Event::Cnm),
            (0..1_000_000u64).prop_map(Event::Sent),
            Just(Event::Sent(u64::MAX)),
            (0..100_000_000_000u64).prop_map(Event::Wait),
        ]
    }

    proptest! {
        #[test]
        fn no_rate_leaves_its_bounds_at_800_gigabits_or_at_the_end_of_64_bits(
            events in prop::collection::vec(event(), 1..200),
            max in prop_oneof![Just(800_000_000_000u64), Just(u64::MAX), 1_000_000..u64::MAX],
            min in 1u64..1_000_000, gd_log2 in 0u8..=31, threshold in 0u32..8,
            increase in prop_oneof![
                Just(Increase::Reaches), Just(Increase::Passes), Just(Increase::Always)],
            step in prop_oneof![Just(5_000_000u64), Just(u64::MAX)],
        ) {
            let [min, max, step] =
                [min, max, step].map(|bits| Rate::from_bits_per_second(bits).unwrap());
            let interpretations = RpInterpretations { increase, ..RpInterpretations::default() };
            let config = RpConfig {
                min_rate: min, gd_log2, threshold, interpretations, ai_rate: step, hai_rate: step,
                min_dec_fac_percent: 0, ..RpConfig::for_port(max)
            };
            let mut rp = ReactionPoint::new(config, 9).unwrap();
            let mut now = Time::ZERO;
            for event in events {
                match event {
                    Event::Cnm(qntz_fb) => rp.notified(now, qntz_fb),
                    Event::Sent(bytes) => rp.sent(now, Bytes(bytes)),
                    Event::Wait(ticks) => {
                        now += Span::from_ticks(ticks);
                        rp.advance(now);
                    }
                }
                prop_assert!((min..=max).contains(&rp.rate()), "{}", rp.rate());
                prop_assert!((rp.rate()..=max).contains(&rp.target()));
            }
        }
    }
}
