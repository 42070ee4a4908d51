"""Tests of scheduler.sv: the order of crates/plane/src/ports/buffers.rs, paused inputs, the CPU."""

import random
from collections import deque

import bench
import cocotb

INPUTS = 4
QUANTUM = 1600
OVERHEAD = 24
TURN_CYCLES = 10  # from the end of a frame to the end of the gap, charge excluded


class Egress:
    """Port of `Egress` in Rust: FIFOs of frame lengths, a ring of those that are not empty."""

    def __init__(self):
        self.queues = [deque() for _ in range(INPUTS)]
        self.credit = [0] * INPUTS
        self.ring = deque()

    def push(self, at, item):
        if not self.queues[at]:
            self.credit[at] = QUANTUM
            self.ring.append(at)
        self.queues[at].append(item)

    def pop(self):
        at = self.ring[0]
        item = self.queues[at].popleft()
        self.credit[at] -= item + OVERHEAD
        if not self.queues[at]:
            self.ring.popleft()
        while self.ring and self.credit[self.ring[0]] <= 0:
            self.credit[self.ring[0]] += QUANTUM
            self.ring.rotate(-1)
        return at


class Buffers:
    """Queues of frame lengths before the scheduler; a frame leaves its queue when it is granted."""

    def __init__(self, dut):
        self.dut = dut
        self.queues = [deque() for _ in range(INPUTS)]
        self.order = []

    def show(self):
        self.dut.has_frame.value = sum(bool(queue) << at for at, queue in enumerate(self.queues))

    def push(self, at, item):
        self.queues[at].append(item)
        self.show()

    async def grant(self, cycles=40):
        """Waits for a grant and returns the input."""
        self.dut.ready.value = 1
        for _ in range(cycles):
            await bench.settle()
            if grant := int(self.dut.grant.value):
                assert grant & (grant - 1) == 0, f"{grant:b}: not one-hot"
                at = grant.bit_length() - 1
                assert self.queues[at], f"a grant to input {at}, which has no frame"
                self.order.append(at)
                await bench.cycle(self.dut)
                self.dut.ready.value = 0
                return at
            await bench.cycle(self.dut)
        raise AssertionError("no grant")

    async def leave(self, at, during=None):
        """Lets the granted frame of input `at` leave, with `during` called meanwhile."""
        item = self.queues[at].popleft()
        self.show()
        for _ in range(random.randint(1, 6)):
            if during:
                during()
            assert int(self.dut.leaving.value) == 1 << at
            self.dut.ready.value = 1  # no grant although the transmitter were ready
            await bench.settle()
            assert int(self.dut.grant.value) == 0
            self.dut.ready.value = 0
            await bench.cycle(self.dut)
        self.dut.done.value = 1
        self.dut.done_bytes.value = item
        await bench.cycle(self.dut)
        self.dut.done.value = 0
        await bench.cycle(self.dut, TURN_CYCLES)
        return item

    async def drain(self):
        while any(self.queues):
            await self.leave(await self.grant())
        return self.order


async def start(dut):
    random.seed(int(cocotb.RANDOM_SEED))
    await bench.start(dut, has_frame=0, blocked=0, cpu_has_frame=0, cpu_blocked=0, ready=0, done=0,
                      done_bytes=0)
    return Buffers(dut)


@cocotb.test()
async def full_frames_alternate_whatever_is_queued(dut):
    buffers = await start(dut)
    for _ in range(5):
        buffers.push(1, 1576)
    await bench.cycle(dut)
    buffers.push(0, 1576)
    await bench.cycle(dut)
    for _ in range(2):
        buffers.push(2, 1576)
    await bench.cycle(dut)
    assert await buffers.drain() == [1, 0, 2, 1, 2, 1, 1, 1]


@cocotb.test()
async def the_wire_is_shared_by_time_and_not_by_frames(dut):
    buffers = await start(dut)
    lengths = [64, 1514, 9000]
    cost = [0] * 3
    for at, bytes_of_frame in enumerate(lengths):
        buffers.push(at, bytes_of_frame)
        buffers.push(at, bytes_of_frame)
    for _ in range(3000):
        at = await buffers.grant()
        cost[at] += await buffers.leave(at) + OVERHEAD
        buffers.push(at, lengths[at])
    assert max(cost) - min(cost) <= 9024 + QUANTUM, cost


@cocotb.test()
async def an_input_that_was_silent_has_saved_nothing(dut):
    buffers = await start(dut)
    for _ in range(10):
        buffers.push(1, 64)
        await bench.cycle(dut)
        await buffers.drain()
    buffers.order.clear()
    for _ in range(60):
        buffers.push(1, 64)
    await bench.cycle(dut)
    for _ in range(60):
        buffers.push(2, 64)
    first = (await buffers.drain()).index(2)
    assert first <= QUANTUM // 88 + 1, f"{first} frames before the other's first"


@cocotb.test()
async def random_traffic_leaves_in_the_order_of_the_rust_ring(dut):
    buffers = await start(dut)
    rust = Egress()
    bytes_max = [200, 1518, 1518, 9000]

    def arrive(chance=0.4):
        if random.random() < chance:
            for at in sorted(random.sample(range(INPUTS), random.randint(1, INPUTS))):
                if len(buffers.queues[at]) < 4:
                    item = random.randint(60, random.choice([60, 300, bytes_max[at]]))
                    buffers.push(at, item)
                    rust.push(at, item)

    waits = 0
    for turn in range(3000):
        # Sometimes all fall silent, so that the ring runs empty.
        while not any(buffers.queues):
            arrive()
            await bench.cycle(dut)
        arrive()
        await bench.cycle(dut)
        # After frames of 9000 bytes the turn of the ring may take longer than the gap.
        at = await buffers.grant()
        assert at == rust.ring[0], f"turn {turn}: input {at} instead of {rust.ring[0]}"
        await buffers.leave(at, during=lambda: arrive(0.2) if turn % 200 < 150 else None)
        assert rust.pop() == at
        waits += 1
        await bench.cycle(dut, 24)
    assert set(buffers.order) == set(range(INPUTS))


@cocotb.test()
async def the_cpu_goes_first_unless_it_is_blocked(dut):
    buffers = await start(dut)
    for at in range(INPUTS):
        buffers.push(at, 100)
    dut.cpu_has_frame.value = 1
    await bench.cycle(dut, 2)
    for blocked in [0, 1, 0]:
        dut.cpu_blocked.value = blocked
        dut.ready.value = 1
        await bench.settle()
        assert int(dut.cpu_grant.value) == 1 - blocked
        assert (int(dut.grant.value) != 0) == bool(blocked)
        dut.ready.value = 0
        await bench.settle()
        assert int(dut.cpu_grant.value) == 0 and int(dut.grant.value) == 0
        await bench.cycle(dut)
    dut.ready.value = 1
    await bench.cycle(dut)
    assert int(dut.cpu_leaving.value) == 1 and int(dut.leaving.value) == 0
    await bench.settle()
    assert int(dut.cpu_grant.value) == 0, "a grant while the CPU's frame leaves"
    dut.cpu_has_frame.value = 0
    dut.done.value = 1
    dut.done_bytes.value = 16000
    await bench.cycle(dut)
    dut.done.value = 0
    await bench.cycle(dut)
    await bench.settle()
    assert int(dut.grant.value) == 1, "the CPU's frame is charged to no input"


@cocotb.test()
async def a_blocked_input_is_passed_over_and_keeps_its_place(dut):
    buffers = await start(dut)
    for at in [2, 0, 1]:
        for _ in range(3):
            buffers.push(at, 1576)
        await bench.cycle(dut)
    dut.blocked.value = 0b0100
    for _ in range(2):
        await buffers.leave(await buffers.grant())
    dut.blocked.value = 0b0111
    dut.ready.value = 1
    for _ in range(50):
        await bench.settle()
        assert int(dut.grant.value) == 0
        await bench.cycle(dut)
    dut.blocked.value = 0
    assert await buffers.drain() == [0, 1, 2, 0, 1, 2, 0, 1, 2]


@cocotb.test()
async def the_turn_after_full_frames_is_over_within_the_gap(dut):
    """`done` comes with the last byte of the FCS, the next start can be 12 cycles later."""
    buffers = await start(dut)
    for _ in range(300):
        for at in range(INPUTS):
            while len(buffers.queues[at]) < 2:
                buffers.push(at, random.choice([60, 1518, 2000, 3176]))
        await bench.cycle(dut)
        at = await buffers.grant(cycles=1)
        await buffers.leave(at)


def test_scheduler():
    bench.run("scheduler", parameters={"INPUTS": INPUTS}, tests=__file__)
