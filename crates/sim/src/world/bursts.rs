//! Random bursts of datagrams.

use axon_fabric::traffic::Sizes;
use axon_simhost::apps::Burst;
use axon_wire::Span;
use oorandom::Rand64;

/// Returns endless bursts whose payload in bytes and pause in ticks of 10 ps are drawn from these
/// distributions. Each seed has its own random numbers, which no other activity changes.
pub fn bursts(on: Sizes, off: Sizes, seed: u64) -> impl Iterator<Item = Burst> + Send {
    let mut random = Rand64::new(u128::from(seed));
    let mut draw = move |sizes: &Sizes| sizes.draw((random.rand_u64() >> 32) as u32);
    std::iter::repeat_with(move || {
        let bytes = draw(&on);
        Burst { bytes, pause: Span::from_ticks(draw(&off)) }
    })
}
