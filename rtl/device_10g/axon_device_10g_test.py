"""Tests of the 10G device: latency, every length, shares, wrong frames, overflow."""

import os
import random as random_module
from collections import Counter

import bench_10g
import cocotb
from bench_10g import AXON, ERROR, HOST, IDLE, START, TERMINATE, UNKNOWN, bench
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge
from cocotbext.eth import XgmiiFrame, XgmiiSink, XgmiiSource

PORTS = 4
KINDS = [AXON] * PORTS
HOP_BYTES = int(os.environ.get("AXON_HOP_BITS", "8")) // 8
C = 0x100  # a control character


async def start(dut, kinds=KINDS, ups=15, bytes_max=9200, route_bytes_max=1500):
    dut.kinds.value = sum(kind << 2 * at for at, kind in enumerate(kinds))
    dut.ups.value = ups
    dut.bytes_max.value, dut.route_bytes_max.value = bytes_max, route_bytes_max
    for port in range(PORTS):
        getattr(dut, f"rxd{port}").value, getattr(dut, f"rxc{port}").value = bench_10g.IDLES
    dut.rst.value = 1
    cocotb.start_soon(Clock(dut.clk, bench_10g.PERIOD, "ps").start())
    await bench.cycle(dut, 4)
    dut.rst.value = 0
    await bench.cycle(dut, 4)
    return [bench_10g.Monitor(dut, port) for port in range(PORTS)]


def packet(random, forward, size, reverse=(), **fields):
    """A packet of `size` bytes with its FCS."""
    head = bench_10g.packet(forward, reverse, hop_bytes=HOP_BYTES, **fields)
    return head + random.randbytes(max(0, size - 4 - len(head)))


def step(frame, ingress, kinds=KINDS):
    return bench_10g.step(frame, ingress, kinds, HOP_BYTES)


def is_bad(frame, is_error):
    return is_error or not bench_10g.has_good_fcs(frame)


def random_():
    return random_module.Random(int(os.environ.get("AXON_SEED", "1")))


def counts(dut, names=("full_drop", "bad_drop", "no_start", "punt_valid")):
    """Counts pulses while the test runs; drops by reason."""
    found = Counter()

    async def watch():
        while True:
            await FallingEdge(dut.clk)
            for name in names:
                if pulses := int(getattr(dut, name).value):
                    found[name] += pulses.bit_count()
            if valid := int(dut.drop_valid.value):
                for port in range(PORTS):
                    if valid >> port & 1:
                        found["drop", int(dut.drop.value) >> 5 * port & 31] += 1

    cocotb.start_soon(watch())
    return found


@cocotb.test()
async def latency_is_5_cycles_from_lane_0_and_6_from_lane_4_at_any_length(dut):
    random, monitors = random_(), await start(dut)
    found = {0: set(), 4: set()}
    lengths = [*range(64, 84), 128, 129, 255, 512, 1000, 1518, 4097, 9000]
    for lane in (0, 4):
        for length in lengths:
            ingress, egress = random.randrange(PORTS), random.randrange(PORTS)
            frame = packet(random, [egress, 7, 8][:random.randint(1, 3)], length)
            begin = monitors[egress].cycle
            await bench_10g.send(dut, ingress, bench_10g.on_xgmii(bench_10g.with_fcs(frame), lane))
            await bench.cycle(dut, 12)
            (out, is_error, (cycle, out_lane)), = monitors[egress].frames
            monitors[egress].frames.clear()
            port, expected = step(frame, ingress)
            assert (port, out, is_error) == (egress, bench_10g.with_fcs(expected), False), length
            assert out_lane == 0
            found[lane].add(cycle - begin)
            cocotb.log.info("latency: 10G from lane %d, %d bytes: %d cycles", lane, length - 4,
                            cycle - begin)
    assert found == {0: {5}, 4: {6}}


@cocotb.test()
async def random_frames_in_all_lanes_and_lengths_are_forwarded_and_stripped(dut):
    random = random_()
    kinds = [AXON, AXON, AXON, HOST]
    monitors = await start(dut, kinds)
    sources, sinks = [], []
    for port in range(PORTS):
        pins = [getattr(dut, f"{name}{port}") for name in ("rxd", "rxc", "txd", "txc")]
        sources.append(XgmiiSource(pins[0], pins[1], dut.clk))
        sinks.append(XgmiiSink(pins[2], pins[3], dut.clk))
        sources[-1].log.setLevel("WARNING")
        sinks[-1].log.setLevel("WARNING")
    count, ends, headers = 0, Counter(), Counter()
    for _ in range(int(os.environ.get("AXON_ROUNDS", "250"))):
        expected = [[] for _ in range(PORTS)]
        for ingress in range(3):
            for _ in range(random.choice([1, 1, 2])):
                egress = random.randrange(PORTS)
                route = [egress, *random.choices(range(200), k=random.choice([0, 1, 3, 9, 60]))]
                reverse = random.choices(range(200), k=random.choice([0, 1, 3, 4, 17]))
                head = 6 + HOP_BYTES * (len(route) + len(reverse))
                rest = 64 if kinds[egress] == HOST else 4
                size = max(64, head + rest) + random.choice([0, random.randrange(24), 300])
                frame = packet(random, route, size, reverse, priority=random.randrange(8))
                port, out = step(frame, ingress, kinds)
                expected[port].append((ingress, out))
                sources[ingress].force_offset_start = random.random() < 0.5
                await sources[ingress].send(XgmiiFrame.from_payload(frame))
                ends[len(frame) % 8] += 1
                headers[head % 8, kinds[egress]] += 1
                count += 1
        for source in sources:
            await source.wait()
        await bench.cycle(dut, 10)
        for egress in range(PORTS):
            while expected[egress]:
                for _ in range(400):
                    if not sinks[egress].empty():
                        break
                    await bench.cycle(dut)
                out = sinks[egress].recv_nowait()
                assert out.check_fcs() and out.ctrl is None, f"{out} {expected[egress]}"
                payload = bytes(out.get_payload())
                # In the order in which they came, for each ingress.
                heads = {}
                for ingress, frame in reversed(expected[egress]):
                    heads[ingress] = frame
                match = [ingress for ingress, frame in heads.items() if frame == payload]
                assert match, f"port {egress}: {payload.hex()} {heads}"
                expected[egress].remove((match[0], payload))
    await bench.cycle(dut, 50)
    assert all(sink.empty() for sink in sinks)
    print(f"{count} frames; last lanes {sorted(ends.items())}, headers {sorted(headers.items())}")
    assert len(ends) == 8 and len(headers) >= 16 // HOP_BYTES
    assert all(gap >= 9 for monitor in monitors for gap in monitor.gaps)


@cocotb.test()
async def a_wrong_fcs_stays_wrong_by_the_same_bits(dut):
    random, kinds = random_(), [AXON, AXON, HOST, HOST]
    monitors = await start(dut, kinds)
    for _ in range(120):
        egress = random.randrange(PORTS)
        route = [egress, *random.choices(range(9), k=random.randrange(12))]
        frame = packet(random, route, 64 + 6 + HOP_BYTES * len(route) + random.randrange(40))
        fcs = bytearray(bench.fcs(frame))
        wrong = random.randbytes(4) if random.random() < 0.5 else (1 << random.randrange(32)).to_bytes(4)
        fcs = bytes(a ^ b for a, b in zip(fcs, wrong))
        begin = len(monitors[egress].frames)
        await bench_10g.send(dut, 0, bench_10g.on_xgmii(frame + fcs, random.choice([0, 4])))
        await bench.cycle(dut, 12)
        (out, is_error, _), = monitors[egress].frames[begin:]
        port, expected = step(frame, 0, kinds)
        assert (port, out[:-4], is_error) == (egress, expected, False)
        difference = bytes(a ^ b for a, b in zip(out[-4:], bench.fcs(expected)))
        assert difference == wrong, f"{difference.hex()} {wrong.hex()} {len(frame)}"


@cocotb.test()
async def a_flipped_bit_anywhere_makes_a_frame_bad(dut):
    random, kinds = random_(), [AXON, AXON, HOST, HOST]
    monitors = await start(dut, kinds)
    count = 0
    for _ in range(150):
        egress = random.randrange(PORTS)
        route = [egress, *random.choices(range(4), k=random.randrange(6))]
        frame = bytearray(bench_10g.with_fcs(packet(random, route, 100 + random.randrange(9))))
        frame[random.randrange(len(frame))] ^= 1 << random.randrange(8)
        await bench_10g.send(dut, 0, bench_10g.on_xgmii(frame, random.choice([0, 4])))
        await bench.cycle(dut, 14)
        for monitor in monitors:
            for out, is_error, _ in monitor.frames:
                assert is_bad(out, is_error), f"{frame.hex()} became the good {out.hex()}"
                count += 1
            monitor.frames.clear()
    assert count > 75


async def good_frame_passes(dut, random, monitors, ingress=0, egress=1, what=""):
    frame = packet(random, [egress, 3], 64 + random.randrange(9))
    monitors[egress].frames.clear()
    await bench_10g.send(dut, ingress, bench_10g.on_xgmii(bench_10g.with_fcs(frame), 0))
    await bench.cycle(dut, 16)
    good = [out for out, is_error, _ in monitors[egress].frames if not is_bad(out, is_error)]
    assert good == [bench_10g.with_fcs(step(frame, ingress)[1])], what


@cocotb.test()
async def corrupted_starts_and_ends_give_no_good_frame_and_the_next_one_passes(dut):
    random, monitors, found = random_(), await start(dut), counts(dut)
    kinds = ("no terminate", "error for terminate", "error inside", "start inside",
             "idle inside", "cut preamble", "no delimiter", "start in lane 2", "empty",
             "garbage preamble", "start instead of the end")
    seen = Counter()
    for number in range(len(kinds) * 16):
        kind = kinds[number % len(kinds)]
        lane = random.choice([0, 4])
        frame = bench_10g.with_fcs(packet(random, [1, 2], 64 + random.randrange(90)))
        good = bench_10g.on_xgmii(frame, lane)
        end = len(good) - 12
        at = lane + 8 + random.randrange(len(frame))
        if kind == "no terminate":
            good[end] = C | IDLE
        elif kind == "error for terminate":
            good[end] = C | ERROR
        elif kind == "error inside":
            good[at] = C | ERROR
        elif kind == "start inside":
            good[at] = C | START
        elif kind == "idle inside":
            good[at] = C | IDLE
        elif kind == "cut preamble":
            good[lane + 3:lane + 4] = []
        elif kind == "no delimiter":
            good[lane + 7] = 0x55
        elif kind == "start in lane 2":
            good = [*[C | IDLE] * 2, *good[lane:]]
        elif kind == "empty":
            good = good[:lane + 8] + good[end:]
        elif kind == "garbage preamble":
            good[lane + random.randrange(1, 7)] ^= 1 << random.randrange(8)
        else:
            good = good[:lane + 8 + (end - lane - 8) // 8 * 8] + [C | START, *b"\x55" * 6, 0xD5,
                                                                   *b"\x10" * 8, C | TERMINATE]
        for monitor in monitors:
            monitor.frames.clear()
        await bench_10g.send(dut, 0, good)
        await bench.cycle(dut, random.randrange(3))
        await good_frame_passes(dut, random, monitors, what=kind)
        for monitor in monitors:
            seen[kind] += len(monitor.frames)
    print(f"frames seen, the next good one included: {dict(seen)}; {dict(found)}")
    assert found["no_start"] > 16 * 4


@cocotb.test()
async def short_long_and_truncated_frames_end_bad(dut):
    random, kinds = random_(), [AXON, AXON, HOST, HOST]
    monitors = await start(dut, kinds, bytes_max=1514)
    cases = [("short", [1], size) for size in range(5, 64)]
    cases += [("strip short", [2], 6 + HOP_BYTES + size) for size in range(4, 64)]
    cases += [("long", [1], size) for size in (1527, 1600, 3000)]
    for what, route, size in cases:
        frame = bench_10g.with_fcs(packet(random, route, size))[:size]
        for monitor in monitors:
            monitor.frames.clear()
        await bench_10g.send(dut, 0, bench_10g.on_xgmii(frame, random.choice([0, 4])))
        await bench.cycle(dut, 16)
        for monitor in monitors:
            assert all(is_error for _, is_error, _ in monitor.frames), f"{what} {size}"
        await good_frame_passes(dut, random, monitors, what=f"{what} {size}")
    # A header longer than its frame.
    for count in (64, 65, 80, 200, 1000):
        head = bench_10g.packet([1] * count, (), hop_bytes=HOP_BYTES)
        for first in (1, 2):
            frame = bytearray(head[:72])
            frame[6:6 + HOP_BYTES] = first.to_bytes(HOP_BYTES)
            for monitor in monitors:
                monitor.frames.clear()
            await bench_10g.send(dut, 0, bench_10g.on_xgmii(bench_10g.with_fcs(frame)))
            await bench.cycle(dut, 16)
            for monitor in monitors:
                assert all(is_error for _, is_error, _ in monitor.frames) or 6 + count * HOP_BYTES <= 72
            await good_frame_passes(dut, random, monitors, what=f"header {count}")
    # The longest that is let in.
    for size in (1518, 1520):
        frame = packet(random, [1], size)
        monitors[1].frames.clear()
        await bench_10g.send(dut, 0, bench_10g.on_xgmii(bench_10g.with_fcs(frame)))
        await bench.cycle(dut, 16)
        assert not monitors[1].frames[0][1]


@cocotb.test()
async def refused_frames_are_counted_and_do_not_leave(dut):
    random, kinds = random_(), [AXON, AXON, HOST, UNKNOWN]
    monitors, found = await start(dut, kinds, ups=0b1101, route_bytes_max=100), counts(dut)
    control = 256 ** HOP_BYTES - 1
    cases = [
        (0, packet(random, [1], 70), ("drop", 7)),
        (0, packet(random, [3], 70), ("drop", 24)),
        (0, packet(random, [4], 70), ("drop", 9)),
        (0, packet(random, [1] * 96, 300), ("drop", 22)),
        (0, packet(random, [control], 70), "punt_valid"),
        (0, packet(random, [], 70), "punt_valid"),
        (0, packet(random, [2], 70, packet_type=3), "punt_valid"),
        (0, packet(random, [0], 70, packet_type=9), ("drop", 0)),
        (0, bytes.fromhex("0180c200000e") + bytes(60), ("drop", 0)),
        (2, packet(random, [0], 70), ("drop", 8)),
        (3, packet(random, [0], 70), ("drop", 8)),
    ]
    wrong = bytearray(packet(random, [0, 0], 70))
    wrong[2] += 0x10
    cases.append((0, wrong, ("drop", 0)))
    for ingress, frame, counter in cases:
        before = found[counter]
        await bench_10g.send(dut, ingress, bench_10g.on_xgmii(bench_10g.with_fcs(frame)))
        await bench.cycle(dut, 16)
        assert found[counter] == before + 1, f"{counter} {found}"
        assert not any(monitor.frames for monitor in monitors), counter
    await good_frame_passes(dut, random, monitors, 0, 0)


@cocotb.test()
async def four_inputs_share_an_output_in_wire_time(dut):
    random, monitors = random_(), await start(dut)
    sizes = [64, 300, 777, 1518]
    found, begin = counts(dut), monitors[0].cycle

    async def flood(port):
        while monitors[0].cycle - begin < 12_000:
            frame = packet(random, [0, port], sizes[port])
            await bench_10g.send(dut, port, bench_10g.on_xgmii(bench_10g.with_fcs(frame)))

    tasks = [cocotb.start_soon(flood(port)) for port in range(PORTS)]
    for task in tasks:
        await task
    wire = Counter()
    for frame, is_error, (cycle, _) in monitors[0].frames:
        assert not is_bad(frame, is_error)
        if cycle > begin + 1000:
            wire[len(frame)] += len(frame) + 20
            last = cycle
    total = sum(wire.values())
    shares = {size: round(wire[size] / total, 3) for size in sizes}
    used = total / (8 * (last - begin - 1000))
    print(f"shares of the wire: {shares}; used {used:.3f}; {dict(found)}")
    assert all(0.24 < share < 0.26 for share in shares.values()) and used > 0.99
    assert found["full_drop"] > 100


@cocotb.test()
async def overflow_drops_whole_frames_and_keeps_the_others_whole(dut):
    random, monitors, found = random_(), await start(dut), counts(dut)
    sent = [set() for _ in range(PORTS)]

    async def flood(port):
        for _ in range(120):
            frame = packet(random, [2, 0], random.choice([64, 65, 500, 1518, 3000, 9000]))
            sent[port].add(bench_10g.with_fcs(step(frame, port)[1]))
            await bench_10g.send(dut, port, bench_10g.on_xgmii(bench_10g.with_fcs(frame)))

    tasks = [cocotb.start_soon(flood(port)) for port in (0, 1)]
    for task in tasks:
        await task
    await bench.cycle(dut, 4000)
    out = [frame for frame, is_error, _ in monitors[2].frames if not is_error]
    assert len(out) == len(monitors[2].frames) and set(out) <= sent[0] | sent[1]
    print(f"{len(out)} of 240 frames left, {dict(found)}")
    assert len(out) + found["full_drop"] == 240 and found["full_drop"] > 20
    await good_frame_passes(dut, random, monitors)


@cocotb.test()
async def full_rate_of_short_frames_passes_without_loss(dut):
    random, monitors, found = random_(), await start(dut), counts(dut)
    sources = [XgmiiSource(getattr(dut, f"rxd{port}"), getattr(dut, f"rxc{port}"), dut.clk)
               for port in range(PORTS)]
    expected = [[] for _ in range(PORTS)]
    for port, source in enumerate(sources):
        source.log.setLevel("WARNING")
        for _ in range(400):
            frame = packet(random, [(port + 1) % PORTS, 5], 64 + random.choice([0, 0, random.randrange(16)]))
            expected[(port + 1) % PORTS].append(bench_10g.with_fcs(step(frame, port)[1]))
            await source.send(XgmiiFrame.from_payload(frame))
    for source in sources:
        await source.wait()
    await bench.cycle(dut, 50)
    for port, monitor in enumerate(monitors):
        assert [frame for frame, _, _ in monitor.frames] == expected[port], f"{dict(found)}"
        assert min(monitor.gaps) >= 9, min(monitor.gaps)
    gaps = [sum(monitor.gaps) / len(monitor.gaps) for monitor in monitors]
    print(f"mean gaps {gaps}, latency of the last {dict(found)}")
    assert not found["full_drop"]


def test_axon_device_10g():
    bench_10g.run("pins_10g", __file__, extra_sources=[bench_10g.pins(PORTS)])


def test_axon_device_10g_hops_of_16_bits():
    os.environ["AXON_HOP_BITS"] = "16"
    try:
        bench_10g.run("pins_10g", __file__, {"HOP_BITS": 16}, [bench_10g.pins(PORTS)])
    finally:
        del os.environ["AXON_HOP_BITS"]
