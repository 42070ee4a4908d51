"""Tests of gmii_tx: the pins in every cycle against the frames that the test gave."""

import random

import bench
import cocotb

LATENCY = 4  # cycles between `read` and the symbol
PREAMBLE = b"\x55" * 7 + b"\xd5"
INVERTED = bytes(range(255, -1, -1))


class Buffer:
    """Frames in a row, as the buffer at an output: reads beyond an end are undone.

    `missing` has places in the row at which a read finds nothing, once each.
    """

    def __init__(self, frames, missing=()):
        self.row = []
        for frame, is_bad in frames:
            self.row += bench.symbols(frame, is_bad)
        self.missing = set(missing)
        self.place = 0
        self.pipeline = [None] * LATENCY

    def step(self, read):
        """Symbol in this cycle, or None, with `read` as it is in this cycle."""
        if read and self.place in self.missing:
            self.missing.remove(self.place)
            self.pipeline.append(None)
        elif read and self.place < len(self.row):
            self.pipeline.append(self.place)
            self.place += 1
        else:
            self.pipeline.append(None)
        place = self.pipeline.pop(0)
        if place is None:
            return None
        if place + 1 < self.place and self.row[place] & 0x100:
            self.place = place + 1  # what follows in the pipeline still comes out
        return self.row[place]


def on_pins(frame, is_bad=False, errors=()):
    """(txd, tx_er) of a frame: `errors` are places of bytes that were missing."""
    sent = frame + bytes(max(0, 60 - len(frame)))
    fcs = bench.fcs(sent)
    if is_bad or errors:
        fcs = fcs.translate(INVERTED)
    bits = [0] * 8 + [int(place in errors) for place in range(len(sent))] + [0] * 4
    return list(zip(PREAMBLE + sent + fcs, bits))


async def transmit(dut, frames, waits=None, missing=(), noise=False):
    """Sends frames, each `waits` cycles after `ready`; returns a list of what was seen of each.

    Checks the cycles of the first byte, of `read`, of `frame_done`, and of `ready`.
    With `noise`, `symbol` has random values with `symbol_valid` when none is asked for.
    """
    await bench.start(dut, start=0, symbol=0, symbol_valid=0)
    buffer = Buffer(frames, missing)
    waits = list(waits or [0] * len(frames))
    cycle, started, ended, reads, seen = 0, None, None, 0, []
    history = [0] * LATENCY  # of read
    while len(seen) < len(frames) or cycle < ended + 16:
        assert cycle < 200_000, "the frames do not end"
        # Outputs of this cycle.
        is_ready, tx_en = int(dut.ready.value), int(dut.tx_en.value)
        is_reading, is_done = int(dut.read.value), int(dut.frame_done.value)
        if tx_en:
            if started is not None and cycle == started + 1:
                pins = []
            assert started is not None and cycle == started + 1 + len(pins), f"cycle {cycle}"
            pins.append((int(dut.txd.value), int(dut.tx_er.value)))
        else:
            assert not dut.tx_er.value and int(dut.txd.value) == 0
        if is_done:
            assert tx_en
            ended = cycle
            seen.append((pins, int(dut.frame_bytes.value), int(dut.is_poisoned.value)))
            started = None
        elif tx_en:
            assert not is_ready
        elif started is not None:
            assert cycle == started, f"tx_en fell before the end, cycle {cycle}"
        if ended is not None and started is None:
            assert is_ready == (cycle >= ended + 12), f"cycle {cycle}, end in {ended}"
        # Inputs of this cycle.
        dut.start.value = 0
        if is_ready and len(seen) < len(frames):
            if waits[len(seen)] == 0:
                dut.start.value = 1
                started = cycle
            waits[len(seen)] -= 1
        if started is not None and cycle <= started + 4:
            assert is_reading == (cycle == started + 4), f"cycle {cycle}"
        symbol = buffer.step(is_reading)
        asked = history.pop(0)
        history.append(is_reading)
        if symbol is None:
            is_noise = noise and not asked
            dut.symbol.value = random.getrandbits(9) if is_noise else 0
            dut.symbol_valid.value = random.getrandbits(1) if is_noise else 0
        else:
            dut.symbol.value = symbol
            dut.symbol_valid.value = 1
        # `read` falls once, in the cycle after the end.
        if reads and not is_reading:
            assert was_end, f"read fell in cycle {cycle}"
        reads = is_reading
        was_end = symbol is not None and symbol & 0x100
        await bench.cycle(dut)
        cycle += 1
    assert buffer.place == len(buffer.row)
    return seen


def check(seen, frames):
    assert len(seen) == len(frames)
    for (pins, length, is_poisoned), (frame, is_bad) in zip(seen, frames):
        assert pins == on_pins(frame, is_bad)
        assert length == max(60, len(frame))
        assert is_poisoned == is_bad


@cocotb.test()
async def frames_at_full_load_have_a_gap_of_12(dut):
    """`transmit` starts a frame in the cycle of `ready`, and that is the 12th of the gap."""
    frames = [(bench.random_frame(random), False) for _ in range(30)]
    check(await transmit(dut, frames), frames)


@cocotb.test()
async def first_preamble_byte_is_at_the_pins_in_the_cycle_after_start(dut):
    frames = [(bench.random_frame(random, 60, 100), False) for _ in range(30)]
    waits = [random.randint(0, 30) for _ in frames]
    check(await transmit(dut, frames, waits), frames)


@cocotb.test()
async def short_frames_of_every_length_are_padded_to_60_bytes(dut):
    frames = [(random.randbytes(length), False) for length in range(66)]
    check(await transmit(dut, frames), frames)


@cocotb.test()
async def bad_frames_of_every_length_up_to_66_leave_with_an_inverted_fcs(dut):
    frames = []
    for length in range(66):
        frames += [(random.randbytes(length), True), (random.randbytes(60), False)]
    check(await transmit(dut, frames), frames)


@cocotb.test()
async def random_frames_good_and_bad_with_noise_on_symbols_that_are_not_asked_for(dut):
    frames = [(bench.random_frame(random, 0, 300), random.random() < 0.3) for _ in range(150)]
    waits = [random.choice([0, 0, 1, 5, 40]) for _ in frames]
    check(await transmit(dut, frames, waits, noise=True), frames)


@cocotb.test()
async def the_longest_frame(dut):
    frames = [(random.randbytes(9000), False), (random.randbytes(16383), False)]
    check(await transmit(dut, frames), frames)


@cocotb.test()
async def a_missing_symbol_is_sent_with_tx_er_and_poisons_its_frame_only(dut):
    for place in [0, 1, 30, 99, 100]:  # 100: the end
        frames = [(random.randbytes(100), False), (random.randbytes(80), False)]
        seen = await transmit(dut, frames, missing=[place])
        frame = frames[0][0]
        sent = frame[:place] + b"\0" + frame[place:]
        assert seen[0] == (on_pins(sent, errors=[place]), 101, 1)
        check(seen[1:], frames[1:])


@cocotb.test()
async def a_reset_in_a_frame_is_followed_by_a_gap_of_12(dut):
    for after in [1, 5, 8, 9, 40, 75, 78, 80, 85]:
        await bench.start(dut, start=0, symbol=0x55, symbol_valid=1)
        while not dut.ready.value:
            await bench.cycle(dut)
        dut.start.value = 1
        await bench.cycle(dut)
        dut.start.value = 0
        await bench.cycle(dut, after)
        dut.rst.value = 1
        await bench.cycle(dut)
        dut.rst.value = 0
        for _ in range(12):
            assert not dut.tx_en.value and not dut.ready.value and not dut.read.value
            await bench.cycle(dut)
        assert dut.ready.value
        frames = [(bench.random_frame(random), False)]
        check(await transmit(dut, frames), frames)


def test_gmii_tx():
    bench.run("gmii_tx", tests=__file__)
