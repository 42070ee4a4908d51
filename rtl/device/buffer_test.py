"""Tests of buffer.sv: whole frames in order, drops, limits and times."""

import random
from collections import deque

import bench
import cocotb

BYTES = 256
FRAMES = 32


class Buffer:
    """Drives a buffer; the reader behaves as gmii_tx: first read 4 cycles after the take."""

    def __init__(self, dut):
        self.dut = dut
        self.items = deque()  # of the writer: symbols, None, announcements
        self.out, self.full_drops, self.bad_drops = [], 0, 0
        self.takes = False  # whether the reader takes frames
        self.age = None  # cycles since the take

    def send(self, frame, is_bad=False, stored=False, priority=0, gap=1, pause=0.0):
        self.items.append(("announce", stored, priority))
        self.items.extend([None] * gap)
        for symbol in bench.symbols(frame, is_bad):
            while random.random() < pause:
                self.items.append(None)
            self.items.append(symbol)

    async def step(self):
        dut = self.dut
        item = self.items.popleft() if self.items else None
        # The end of a frame and the announcement of the next one may share a cycle.
        announced = item if isinstance(item, tuple) else None
        if isinstance(item, int) and item & 0x100 and self.items and self.items[0] == "now":
            self.items.popleft()
            announced = ("announce", False, 0)
        dut.announce.value = announced is not None
        dut.is_stored.value = announced[1] if announced else random.getrandbits(1)
        dut.frame_priority.value = announced[2] if announced else random.getrandbits(3)
        dut.write.value = isinstance(item, int)
        dut.write_symbol.value = item if isinstance(item, int) else random.getrandbits(9)
        dut.read.value = self.age is not None and self.age >= 4
        await bench.settle()
        take = self.takes and self.age is None and int(dut.has_frame.value) == 1
        dut.take.value = take
        if int(dut.read_valid.value):
            self.out.append(int(dut.read_symbol.value))
        if int(dut.frame_out.value):
            self.age = None
        elif self.age is not None:
            self.age += 1
        if take:
            self.age = 1
        await bench.cycle(dut)
        self.full_drops += int(dut.full_drop.value)
        self.bad_drops += int(dut.bad_drop.value)

    async def run(self, cycles=None):
        """Runs for a number of cycles, or until all is written and read."""
        for _ in range(cycles if cycles is not None else 20000):
            await self.step()
            if cycles is None and not self.items and self.age is None:
                if not self.takes or not int(self.dut.has_frame.value):
                    break
        else:
            assert cycles is not None, "the buffer does not become idle"
        return bench.frames_of(self.out) if self.age is None else None


async def start(dut):
    random.seed(int(cocotb.RANDOM_SEED))
    await bench.start(dut, announce=0, write=0, write_symbol=0, take=0, read=0, paused=0,
                      is_stored=0, frame_priority=0)
    return Buffer(dut)


@cocotb.test()
async def a_frame_is_shown_in_the_cycle_after_its_announcement(dut):
    await start(dut)
    for priority in range(8):
        dut.paused.value = 1 << priority
        dut.announce.value, dut.frame_priority.value = 1, priority
        dut.is_stored.value = 0
        await bench.settle()
        assert int(dut.has_frame.value) == 0
        await bench.cycle(dut)
        dut.announce.value = 0
        assert int(dut.has_frame.value) == 1 and int(dut.is_blocked.value) == 1
        dut.paused.value = 0xFF ^ 1 << priority
        dut.write.value, dut.write_symbol.value = 1, 0x101
        await bench.cycle(dut)
        dut.write.value = 0
        assert int(dut.is_blocked.value) == 0
        assert int(dut.has_frame.value) == 0 and int(dut.bad_drop.value) == 1


@cocotb.test()
async def frames_that_are_cut_through_come_out_as_they_went_in(dut):
    buffer = await start(dut)
    buffer.takes = True
    sent = []
    for _ in range(200):
        # Longer than the buffer, too: a taken frame is read as fast as it is written.
        frame = random.randbytes(random.choice([60, 100, 300, 1000]))
        is_bad = random.random() < 0.2
        buffer.send(frame, is_bad, gap=random.choice([1, 1, 3]))
        sent.append((frame, is_bad))
        assert (await buffer.run())[-1] == sent[-1]
    assert bench.frames_of(buffer.out) == sent
    assert (buffer.full_drops, buffer.bad_drops) == (0, 0)


@cocotb.test()
async def stored_frames_leave_only_when_they_are_whole_and_good(dut):
    buffer = await start(dut)
    buffer.takes = True
    sent, bad = [], 0
    for _ in range(100):
        frame = random.randbytes(random.randint(1, 200))
        is_bad = random.random() < 0.3
        buffer.send(frame, is_bad, stored=True, pause=0.3)
        while buffer.items:
            assert int(dut.has_frame.value) == 0
            await buffer.step()
        bad += is_bad
        if not is_bad:
            sent.append((frame, False))
        await buffer.run(5)
        await buffer.run()
    assert bench.frames_of(buffer.out) == sent
    assert (buffer.full_drops, buffer.bad_drops) == (0, bad)


@cocotb.test()
async def a_bad_frame_that_has_not_begun_to_leave_is_dropped_whole(dut):
    buffer = await start(dut)
    buffer.send(b"a" * 60)
    buffer.send(b"b" * 60, is_bad=True)
    buffer.send(b"c" * 60)
    await buffer.run()
    await buffer.run(2)
    assert int(dut.occupancy.value) == 2 * 61, "the room of the bad frame is free again"
    buffer.takes = True
    frames = await buffer.run()
    assert frames == [(b"a" * 60, False), (b"c" * 60, False)]
    assert (buffer.full_drops, buffer.bad_drops) == (0, 1)


@cocotb.test()
async def a_frame_without_room_is_dropped_whole(dut):
    buffer = await start(dut)
    buffer.send(b"a" * 200)
    buffer.send(b"b" * 200)
    buffer.send(b"c" * 20)
    await buffer.run()
    await buffer.run(3)
    assert int(dut.occupancy.value) == 201 + 21
    buffer.takes = True
    assert await buffer.run() == [(b"a" * 200, False), (b"c" * 20, False)]
    assert (buffer.full_drops, buffer.bad_drops) == (1, 0)
    buffer.send(b"d" * 200, stored=True)
    assert (await buffer.run(3000))[-1] == (b"d" * 200, False), "the room came back"
    buffer.send(b"e" * 300, stored=True)
    await buffer.run(1000)
    assert buffer.full_drops == 2, "a stored frame longer than the buffer"
    await buffer.run(3)
    assert int(dut.occupancy.value) == 0


@cocotb.test()
async def at_most_32_frames_wait(dut):
    buffer = await start(dut)
    for number in range(FRAMES + 3):
        buffer.send(bytes([number]), stored=number % 2 == 0, priority=number % 8)
    await buffer.run()
    assert buffer.full_drops == 3
    buffer.takes = True
    assert await buffer.run() == [(bytes([number]), False) for number in range(FRAMES)]
    buffer.send(b"z")
    assert (await buffer.run())[-1] == (b"z", False)


@cocotb.test()
async def a_take_in_the_cycle_of_a_drop_wins(dut):
    for length in (40, 250):  # dropped because its end is bad; because there is no room
        buffer = await start(dut)
        taken = 0
        for at in range(220, 235) if length == 250 else range(38, 50):
            before = len(buffer.out)
            buffer.send(bytes(length), is_bad=length == 40)
            await buffer.run(at)
            buffer.takes = True
            await buffer.run(1)
            buffer.takes = buffer.age is not None
            is_taken = buffer.age is not None
            await buffer.run()
            buffer.takes = False
            out = bench.frames_of(buffer.out[before:])
            assert out == ([(bytes(length), length == 40)] if is_taken else [])
            taken += is_taken
        assert 0 < taken < 12, "the take came before, in and after the cycle of the drop"
        assert buffer.full_drops + buffer.bad_drops == (15 if length == 250 else 12) - taken


@cocotb.test()
async def random_frames_have_one_fate_each(dut):
    buffer = await start(dut)
    sent = []
    for number in range(600):
        length = random.choice([1, 20, 60, 120, 230])
        frame = number.to_bytes(2, "big") + random.randbytes(length)
        is_bad = random.random() < 0.2
        sent.append((frame, is_bad))
        buffer.send(frame, is_bad, stored=random.random() < 0.3, gap=random.choice([1, 3]))
        if random.random() < 0.5 and len(buffer.items) > 1:
            buffer.items.extend([None] * random.randint(0, 200))
        elif random.random() < 0.5:
            # The next one is announced in the cycle of this one's end, if nothing is between.
            frame = number.to_bytes(2, "big") + b"next"
            buffer.items.append("now")
            buffer.items.extend([None, *bench.symbols(frame)])
            sent.append((frame, False))
    while buffer.items:
        if random.random() < 0.01:
            buffer.takes = not buffer.takes
        await buffer.step()
    buffer.takes = True
    frames = await buffer.run()
    remaining = iter(sent)
    assert all(frame in remaining for frame in frames), "order"
    assert len(frames) + buffer.full_drops + buffer.bad_drops == len(sent)
    assert len(frames) > 100 and buffer.full_drops > 20 and buffer.bad_drops > 10


def test_buffer():
    bench.run("buffer", parameters={"BYTES": BYTES, "FRAMES": FRAMES}, tests=__file__)
