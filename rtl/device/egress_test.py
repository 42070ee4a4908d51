"""Tests of egress.sv: latency, full load, drops, pause, link down, what is on the wire."""

import random

import bench
import cocotb

PORTS = 4
BYTES = 2048
CPU = PORTS


class Device:
    """Drives the inputs of an egress and records its output, cycle by cycle."""

    def __init__(self, dut):
        self.dut = dut
        self.items = [[] for _ in range(PORTS + 1)]  # reversed: pop() is the next
        self.refill = [None] * (PORTS + 1)  # returns more items when there are none
        self.now = 0
        self.wire = []  # (txd, tx_en, tx_er) of each cycle
        self.pulses = {}  # name: [number for each ingress]
        self.done = []  # (cycle, frame_bytes, is_poisoned)

    def send(self, at, frame, is_bad=False, stored=False, priority=0, pause=0.0, gap=0):
        items = [("announce", stored, priority), None]
        for symbol in bench.symbols(frame, is_bad):
            while random.random() < pause:
                items.append(None)
            items.append(symbol)
        self.items[at] = [None] * gap + items[::-1] + self.items[at]

    async def step(self):
        dut = self.dut
        announce = write = stored = symbols = priorities = 0
        for at in range(PORTS + 1):
            if not self.items[at] and self.refill[at]:
                self.refill[at]()
            item = self.items[at].pop() if self.items[at] else None
            if isinstance(item, tuple):
                announce |= 1 << at
                stored |= item[1] << at
                priorities |= item[2] << 3 * at
            elif item is not None:
                write |= 1 << at
                symbols |= item << 9 * at
        mask = (1 << PORTS) - 1
        dut.announce.value, dut.cpu_announce.value = announce & mask, announce >> CPU
        dut.write.value, dut.cpu_write.value = write & mask, write >> CPU
        dut.is_stored.value = stored & mask
        dut.symbols.value = symbols & (1 << 9 * PORTS) - 1
        dut.cpu_symbol.value = symbols >> 9 * PORTS
        dut.priorities.value = priorities & (1 << 3 * PORTS) - 1
        dut.cpu_priority.value = priorities >> 3 * PORTS
        await bench.cycle(dut)
        self.now += 1
        self.wire.append((int(dut.txd.value), int(dut.tx_en.value), int(dut.tx_er.value)))
        for name in ("full_drop", "bad_drop", "port_down"):
            value = int(getattr(dut, name).value) | int(getattr(dut, f"cpu_{name}").value) << CPU
            counts = self.pulses.setdefault(name, [0] * (PORTS + 1))
            for at in range(PORTS + 1):
                counts[at] += value >> at & 1
        if int(dut.frame_done.value):
            self.done.append((self.now, int(dut.frame_bytes.value), int(dut.is_poisoned.value)))

    async def run(self, cycles):
        for _ in range(cycles):
            await self.step()

    async def idle(self, limit=60000):
        """Runs until all is written and nothing has been on the wire for a while."""
        quiet = 0
        for _ in range(limit):
            await self.step()
            quiet = 0 if any(self.items) or self.wire[-1][1] else quiet + 1
            if quiet == 150:
                return
        raise AssertionError("the egress does not become idle")

    def frames(self):
        """Frames on the wire, as (first cycle, bytes with padding, is_bad); checks their form."""
        frames, at = [], 0
        while at < len(self.wire):
            if not self.wire[at][1]:
                at += 1
                continue
            first = at
            while at < len(self.wire) and self.wire[at][1]:
                at += 1
            data = bytes(value for value, _, _ in self.wire[first:at])
            assert not any(er for _, _, er in self.wire[first:at]), "a symbol was missing"
            assert data[:8] == b"\x55" * 7 + b"\xd5", data[:8].hex()
            frame, fcs = data[8:-4], data[-4:]
            is_bad = fcs != bench.fcs(frame)
            assert not is_bad or bytes(x ^ 0xFF for x in fcs) == bench.fcs(frame), "neither"
            frames.append((first, frame, is_bad))
        return frames

    def payloads(self):
        return [(frame, is_bad) for _, frame, is_bad in self.frames()]

    def gaps(self):
        frames = self.frames()
        ends = [first + 8 + len(frame) + 4 for first, frame, _ in frames]
        return [after[0] - end for end, after in zip(ends, frames[1:])]


async def start(dut, link_up=1):
    random.seed(int(cocotb.RANDOM_SEED))
    zero = ["announce", "cpu_announce", "write", "cpu_write", "is_stored", "symbols", "cpu_symbol",
            "priorities", "cpu_priority", "paused", "port", "time_now", "bytes_max", "kind"]
    await bench.start(dut, link_up=link_up, **dict.fromkeys(zero, 0))
    await bench.cycle(dut, 20)  # the gap after the reset
    return Device(dut)


def numbered(at, number, length):
    return bytes([at]) + number.to_bytes(2, "big") + random.randbytes(length - 3)


@cocotb.test()
async def the_preamble_begins_two_cycles_after_the_announcement(dut):
    device = await start(dut)
    for at in range(PORTS):
        device.wire.clear()
        device.send(at, numbered(at, 0, 60))
        await device.idle()
        # Step 0 announces in cycle n; what is recorded then is the register of cycle n + 1.
        assert device.frames()[0][0] == 1
        assert len(device.frames()) == 1


@cocotb.test()
async def frames_of_all_ingresses_leave_whole_and_in_order(dut):
    device = await start(dut)
    sent = [[] for _ in range(PORTS + 1)]
    bad = [0] * (PORTS + 1)
    for number in range(40):
        for at in range(PORTS + 1):
            frame = numbered(at, number, random.choice([60, 61, 64, 200, 700]))
            stored = at == CPU or random.random() < 0.3
            is_bad = random.random() < 0.2
            pause = 0.3 if stored else 0
            device.send(at, frame, is_bad, stored, gap=random.randint(0, 3000), pause=pause)
            sent[at].append((frame, is_bad))
            bad[at] += is_bad
    await device.idle(300000)
    out = device.payloads()
    poisoned = 0
    for at in range(PORTS + 1):
        mine = [item for item in out if item[0][0] == at]
        remaining = iter(sent[at])
        assert all(item in remaining for item in mine), "order"
        lost = device.pulses["full_drop"][at]
        passed_on = sum(is_bad for _, is_bad in mine)
        poisoned += passed_on
        assert device.pulses["bad_drop"][at] + passed_on <= bad[at]
        assert len(mine) + device.pulses["bad_drop"][at] + lost == len(sent[at])
        assert at != CPU or passed_on == 0
    assert poisoned > 0, "some were bad after they had begun to leave"
    assert sum(flag for _, _, flag in device.done) == poisoned
    assert [count for _, count, _ in device.done] == [len(frame) for frame, _ in out]
    assert sum(device.pulses["port_down"]) == 0


async def full_load(dut, lengths, cycles):
    """All ingresses at full rate; returns the wire time of each and checks the wire is full."""
    device = await start(dut)
    number = [0] * PORTS

    def more(at):
        def refill():
            length = lengths[at]
            device.send(at, numbered(at, number[at], length), gap=24 - 3)
            number[at] += 1

        return refill

    for at in range(PORTS):
        device.refill[at] = more(at)
    await device.run(cycles)
    device.wire = device.wire[: device.done[-1][0]]
    assert set(device.gaps()) == {12}, "the output is not busy"
    shares = [0] * PORTS
    last = [-1] * PORTS
    for _, frame, is_bad in device.frames():
        at, count = frame[0], int.from_bytes(frame[1:3], "big")
        assert not is_bad and len(frame) == lengths[at] and count > last[at]
        last[at] = count
        shares[at] += len(frame) + 24
    return shares, number, device


@cocotb.test()
async def four_into_one_at_full_load_share_the_wire_equally(dut):
    shares, offered, device = await full_load(dut, [1514] * PORTS, 40000)
    print("shares", shares, "offered", offered, device.pulses)
    assert max(shares) - min(shares) <= 1538
    assert all(drops > 0 for drops in device.pulses["full_drop"][:PORTS])


@cocotb.test()
async def frames_of_different_lengths_share_the_wire_equally_in_time(dut):
    shares, offered, device = await full_load(dut, [60, 300, 800, 1514], 60000)
    print("shares", shares, "offered", offered, device.pulses)
    assert max(shares) - min(shares) <= 1538 + 1600


@cocotb.test()
async def a_frame_that_does_not_fit_is_dropped_whole(dut):
    device = await start(dut)
    dut.paused.value = 0xFF
    for number in range(4):
        device.send(2, numbered(2, number, 900))
    device.send(1, numbered(1, 9, 900))
    await device.run(5000)
    assert device.pulses["full_drop"] == [0, 0, 2, 0, 0]
    dut.paused.value = 0
    await device.idle()
    assert sorted(frame[:3] for frame, _ in device.payloads()) == [
        b"\1\0\x09", b"\2\0\0", b"\2\0\1"]
    assert int(dut.occupancies.value) == 0


@cocotb.test()
async def at_most_32_frames_wait(dut):
    device = await start(dut)
    dut.paused.value = 0xFF
    for number in range(35):
        device.send(3, numbered(3, number, 10))
    await device.run(1000)
    assert device.pulses["full_drop"] == [0, 0, 0, 3, 0]
    dut.paused.value = 0
    await device.idle()
    assert [frame[2] for frame, _ in device.payloads()] == list(range(32))


@cocotb.test()
async def a_bad_frame_is_dropped_before_and_poisoned_after_it_begins_to_leave(dut):
    device = await start(dut)
    device.send(0, numbered(0, 0, 100), is_bad=True)
    await device.idle()
    assert device.pulses["bad_drop"] == [0] * 5
    assert [is_bad for _, is_bad in device.payloads()] == [True]
    device.send(0, numbered(0, 1, 400))
    device.send(1, numbered(1, 2, 100), is_bad=True, gap=10)
    device.send(2, numbered(2, 3, 100), is_bad=True, stored=True)
    await device.idle()
    assert device.pulses["bad_drop"] == [0, 1, 1, 0, 0]
    assert len(device.frames()) == 2


@cocotb.test()
async def a_stored_frame_starts_two_cycles_after_its_end(dut):
    device = await start(dut)
    frame = numbered(1, 0, 100)
    device.send(1, frame, stored=True)
    await device.idle()
    assert device.frames() == [(2 + 100 + 1, frame, False)]


@cocotb.test()
async def a_paused_priority_does_not_start_and_does_not_hold_up_others(dut):
    device = await start(dut)
    dut.paused.value = 1 << 5
    device.send(0, numbered(0, 0, 100), priority=5)
    device.send(0, numbered(0, 1, 100), priority=1)  # behind it in the same buffer
    for number in range(3):
        device.send(1, numbered(1, number, 100), priority=4)
    device.send(CPU, numbered(CPU, 0, 100), priority=5)
    await device.idle()
    assert [(frame[0], frame[2]) for frame, _ in device.payloads()] == [(1, 0), (1, 1), (1, 2)]
    dut.paused.value = 0
    await device.idle()
    assert [(f[0], f[2]) for f, _ in device.payloads()[3:]] == [(CPU, 0), (0, 0), (0, 1)]
    # A pause that comes while a frame leaves does not cut it.
    device.send(0, numbered(0, 7, 500), priority=3)
    await device.run(100)
    dut.paused.value = 0xFF
    await device.idle()
    assert len(device.frames()) == 7


@cocotb.test()
async def the_frames_of_the_cpu_go_first(dut):
    device = await start(dut)
    for number in range(4):
        device.send(0, numbered(0, number, 300))
        device.send(1, numbered(1, number, 300))
    device.send(CPU, numbered(CPU, 0, 60), gap=100)
    device.send(CPU, numbered(CPU, 1, 60))
    await device.idle()
    order = [frame[0] for frame, _ in device.payloads()]
    assert order[:3] == [0, CPU, CPU] and len(order) == 10


@cocotb.test()
async def without_a_link_frames_are_thrown_away_and_counted(dut):
    device = await start(dut, link_up=0)
    dut.paused.value = 0xFF
    for number in range(20):
        for at in range(PORTS + 1):
            length = random.choice([60, 200, 1000])
            device.send(at, numbered(at, number, length), stored=at in (2, CPU), gap=2500)
    await device.idle(100000)
    await device.run(2000)
    assert device.frames() == []
    assert device.pulses["port_down"] == [20] * (PORTS + 1), device.pulses
    assert int(dut.occupancies.value) == 0 and int(dut.cpu_occupancy.value) == 0
    dut.link_up.value = 1
    dut.paused.value = 0
    await device.run(5)
    frame = numbered(0, 99, 60)
    device.send(0, frame)
    await device.idle()
    assert device.payloads() == [(frame, False)]


@cocotb.test()
async def a_link_that_fails_or_comes_back_within_a_frame_cuts_none(dut):
    device = await start(dut)
    sent = [numbered(0, number, 300) for number in range(3)]
    for frame in sent:
        device.send(0, frame, gap=300)
    await device.run(100 + 300)
    dut.link_up.value = 0  # within the first frame
    await device.run(700)  # within the second
    dut.link_up.value = 1
    await device.idle()
    assert device.payloads() == [(sent[0], False), (sent[2], False)]
    assert device.pulses["port_down"] == [1, 0, 0, 0, 0]


def test_egress():
    bench.run("egress", parameters={"PORTS": PORTS, "BUFFER_BYTES": BYTES}, tests=__file__)
