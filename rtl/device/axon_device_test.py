"""Tests of the whole device with hops of 8 bits: frames from port to port, to and from the CPU,
latency, probes, counters. Registers are accessed by the names of registers.toml."""

import os
import random
import tomllib
from pathlib import Path

import bench
import cocotb
from bench import cycle, fcs, on_wire, start

PORTS, ROUTES = 4, 32
PARAMETERS = {"PORTS": PORTS, "HOP_BITS": 8, "PROBES": 1, "MASQUERADES": 1}
UNKNOWN, HOST, AXON = 0, 1, 2
ETHERNET, CONTROL, PROBE, ERROR = 1, 2, 3, 4
CPU_HOP, CPU_OUTPUT = 255, 15
LINK_LOCAL = bytes.fromhex("0180c200000e")
GAP = 12
CYCLE = 800  # in units of 10 ps
INGRESS, EGRESS, QUEUED = 1, 2, 4  # options of a probe
AXON_LATENCY, HOST_LATENCY = 18, 26
# Of frames, without FCS. The longest are four times as long as a buffer: cut-through takes them.
LENGTHS, JUMBO = [60, 61, 64, 100, 128, 256, 512, 1000, 1514, 1600, 2048, 4096, 8996], 9216

with open(Path(__file__).parents[1] / "registers.toml", "rb") as file:
    MAP = tomllib.load(file)
COUNTERS = [counter["name"] for counter in MAP["counter"]]
DROPS = [counter["name"] for counter in MAP["counter"] if "drop" in counter]
PUNTS = [counter["name"] for counter in MAP["counter"] if "punt" in counter]
DEVICE = -1  # in place of a port


def address(port, name):
    """Address of a register, a counter, or element 0 of a table."""
    block = (port + 1) * MAP["block"]
    if name in COUNTERS:
        return block + MAP["counters"]["offset"] + COUNTERS.index(name)
    kind = "device" if port == DEVICE else "port"
    return block + next(r["offset"] for r in [*MAP[kind], *MAP["table"]] if r["name"] == name)


def header(forward, reverse, packet_type=ETHERNET, priority=0):
    length = 6 + len(forward) + len(reverse)
    word = packet_type << 44 | length << 28 | len(forward) << 16 | len(reverse) << 4
    return (word | priority << 1).to_bytes(6, "big") + bytes(forward) + bytes(reverse)


def frame_of(rng, bytes_min=60, bytes_max=1514, destination=None, source=None):
    """A random Ethernet frame to a single host, of no type that the device knows."""
    destination = destination or bytes([2 * rng.randrange(128)]) + rng.randbytes(5)
    length = rng.randint(bytes_min, bytes_max) - 14
    return destination + (source or rng.randbytes(6)) + b"\x08\x00" + rng.randbytes(length)


class Device:
    """The device `dut`: pins, bus and streams, all driven in one loop at the falling edge."""

    def __init__(self, dut):
        self.dut = dut
        self.now = 0
        self.wires = [[] for _ in range(PORTS)]      # pins to come
        self.sent = [[] for _ in range(PORTS)]       # bytes of the frame that leaves
        self.begins = [[] for _ in range(PORTS)]     # cycles of first preamble bytes that came
        self.starts = [[] for _ in range(PORTS)]     # and that left
        self.received = [[] for _ in range(PORTS)]   # frames that have left: (bytes, FCS is right)
        self.gaps = [0] * PORTS
        self.bus = []
        self.punts, self.punt = [], []
        self.injects = []
        self.pauses_cpu = lambda: False
        self.rows = [{} for _ in range(PORTS)]
        self.entries = [{} for _ in range(PORTS)]

    async def begin(self, kinds=(AXON, AXON, HOST, HOST)):
        await start(
            self.dut, rxd=0, rx_dv=0, rx_er=0, link_up=(1 << PORTS) - 1, reg_address=0, reg_write=0,
            reg_write_data=0, reg_read=0, punt_ready=0, inject_valid=0, inject_symbol=0,
        )
        cocotb.start_soon(self.loop())
        await cycle(self.dut, 40)  # reset clears counters
        for port, kind in enumerate(kinds):
            await self.write(address(port, "kind"), kind)
            if kind == HOST:
                await self.write_routes(port, {})
        return self

    async def loop(self):
        dut = self.dut
        is_idle = [True] * PORTS
        while True:
            self.take_outputs()
            rxd = rx_dv = 0
            for port, wire in enumerate(self.wires):
                if wire:
                    data = wire.pop()
                    if data is None:
                        is_idle[port] = True
                    else:
                        if is_idle[port]:
                            self.begins[port].append(self.now)
                        is_idle[port] = False
                        rxd |= data << 8 * port
                        rx_dv |= 1 << port
            dut.rxd.value, dut.rx_dv.value = rxd, rx_dv
            is_ready = not self.pauses_cpu()
            dut.punt_ready.value = int(is_ready)
            if is_ready and dut.punt_valid.value:
                self.punt.append(int(dut.punt_symbol.value))
            dut.inject_valid.value = int(bool(self.injects))
            if self.injects:
                dut.inject_symbol.value = self.injects.pop()
            await cycle(dut)
            self.now += 1

    def take_outputs(self):
        enables, data = int(self.dut.tx_en.value), int(self.dut.txd.value)
        assert not int(self.dut.tx_er.value)
        for port, sent in enumerate(self.sent):
            if enables >> port & 1:
                if not sent:
                    assert self.gaps[port] >= GAP or not self.received[port]
                    self.starts[port].append(self.now)
                sent.append(data >> 8 * port & 0xFF)
                self.gaps[port] = 0
            else:
                self.gaps[port] += 1
                if sent:
                    self.take_frame(port, bytes(sent))
                    sent.clear()

    def take_frame(self, port, sent):
        assert sent[:8] == b"\x55" * 7 + b"\xd5" and len(sent) >= 72
        frame, check = sent[8:-4], sent[-4:]
        inverted = bytes(byte ^ 0xFF for byte in fcs(frame))
        assert check in (fcs(frame), inverted), "the FCS is right or inverted"
        self.received[port].append((frame, check == fcs(frame)))

    def send(self, port, frame, gap=GAP, wire=None):
        """Queues a frame on the wire of a port."""
        pins = [*(on_wire(frame) if wire is None else wire), *[None] * gap]
        self.wires[port][:0] = reversed(pins)

    def inject(self, port, frame):
        self.injects[:0] = reversed([port, *bench.symbols(frame)])

    def take_punts(self):
        """Frames that the CPU has got: (ingress, reason, frame)."""
        frames = [frame for frame, is_bad in bench.frames_of(self.punt) if not is_bad or 1 / 0]
        self.punt.clear()
        return [(frame[0], PUNTS[frame[1]], frame[2:]) for frame in frames]

    async def idle(self, cycles=400):
        """Waits until wires are idle, and for frames that are still inside."""
        while any(self.wires) or self.injects:
            await cycle(self.dut)
        quiet = 0
        while quiet < cycles:
            await cycle(self.dut)
            busy = int(self.dut.tx_en.value) or int(self.dut.punt_valid.value)
            quiet = 0 if busy else quiet + 1

    # Bus.

    async def write(self, to, data):
        dut = self.dut
        dut.reg_address.value, dut.reg_write_data.value, dut.reg_write.value = to, data, 1
        await cycle(dut)
        dut.reg_write.value = 0

    async def read(self, at):
        dut = self.dut
        dut.reg_address.value, dut.reg_read.value = at, 1
        await cycle(dut)
        dut.reg_read.value, dut.reg_address.value = 0, 0xFFFF
        await cycle(dut)
        return int(dut.reg_read_data.value)

    async def counters(self, port):
        """Counters of a port that are not 0."""
        values = {name: await self.read(address(port, name)) for name in COUNTERS}
        return {name: value for name, value in values.items() if value}

    async def set_route(self, port, at, key, to, head, destination=None, priority=0, rows=16):
        """Sets entry `at`; `key` is (destination, source or None)."""
        self.entries[port].pop(at, None)
        await self.write_masks(port)
        await cycle(self.dut, 64)
        self.entries[port][at] = key
        for row, value in self.rows_of(port).items():
            if self.rows[port].get(row) != value:
                self.rows[port][row] = value
                await self.write(address(port, "row") + row, value)
                await cycle(self.dut, rows)
        attributes = to | len(head) << 4 | priority << 9 | (destination is not None) << 12
        await self.write(address(port, "attributes") + at, attributes)
        stored = head.ljust(24, b"\0") + (destination or b"")
        for offset, byte in enumerate(stored):
            await self.write(address(port, "memory") + 32 * at + offset, byte)
        await self.write_masks(port)

    async def write_masks(self, port):
        entries = self.entries[port]
        by_source = sum(1 << at for at, (_, source) in entries.items() if source is not None)
        await self.write(address(port, "by_source"), by_source)
        await self.write(address(port, "valid"), sum(1 << at for at in entries))

    def rows_of(self, port):
        rows = {}
        for is_low in range(2):
            for place in range(12):
                for nibble in range(16):
                    row = is_low << 8 | place << 4 | nibble
                    rows[row] = 0
                    for at, addresses in self.entries[port].items():
                        of = addresses[place // 6]
                        byte = None if of is None else of[place % 6]
                        if byte is None or nibble == (byte & 15 if is_low else byte >> 4):
                            rows[row] |= 1 << at
        return rows

    async def write_routes(self, port, entries):
        self.entries[port] = entries
        for row, value in self.rows_of(port).items():
            self.rows[port][row] = value
            await self.write(address(port, "row") + row, value)
        await self.write_masks(port)


async def pass_one(device, port, to, frame):
    """Sends one frame through an idle device; returns what leaves and the latency."""
    await device.idle()
    device.received[to].clear()
    device.send(port, frame)
    await device.idle()
    assert len(device.received[to]) == 1, f"{len(device.received[to])} frames at port {to}"
    return device.received[to][0], device.starts[to][-1] - device.begins[port][-1]


@cocotb.test()
async def registers_read_back(dut):
    device = await Device(dut).begin()
    expected = {"magic": 0x41584F4E, "version": 2, "ports": PORTS, "hop_bits": 8,
                "buffer_bytes": 2048, "routes": ROUTES}
    for name, value in expected.items():
        assert await device.read(address(DEVICE, name)) == value, name
    rng = random.Random(cocotb.RANDOM_SEED)
    written = {}
    for port in range(PORTS):
        for register in MAP["port"]:
            if register["access"] == "read_write" and register["name"] != "kind":
                where = address(port, register["name"])
                assert await device.read(where) == register["default"], register["name"]
                written[where] = rng.randint(register["min"], register["max"])
                await device.write(where, written[where])
        dut.link_up.value = 0b1010
        await cycle(dut)
        assert await device.read(address(port, "up")) == port % 2
    for where, value in written.items():
        assert await device.read(where) == value, hex(where)
    for where in [0x0008, 0x0FFF, 0x1009, 0x1800, 0x5000, 0xF000]:
        assert await device.read(where) == 0, hex(where)


@cocotb.test()
async def an_axon_port_forwards_to_an_axon_port_in_18_cycles(dut):
    device = await Device(dut).begin()
    await device.write(address(0, "bytes_max"), JUMBO)
    rng = random.Random(cocotb.RANDOM_SEED)
    for length in LENGTHS:
        head = header([1, 7, 9], [5], CONTROL, 3)
        payload = rng.randbytes(length - len(head))
        (frame, is_good), latency = await pass_one(device, 0, 1, head + payload)
        assert is_good and frame == header([7, 9], [0, 5], CONTROL, 3) + payload
        assert latency == AXON_LATENCY, latency
        cocotb.log.info("latency: Axon to Axon, %d bytes: %d cycles", length, latency)
    counts = await device.counters(0), await device.counters(1)
    assert counts[0] == {"rx_frames": len(LENGTHS), "rx_bytes": sum(LENGTHS)}
    assert counts[1] == {"tx_frames": len(LENGTHS), "tx_bytes": sum(LENGTHS)}


@cocotb.test()
async def a_host_port_forwards_to_an_axon_port_in_26_cycles(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    first, second, other = (b"\x02" + rng.randbytes(5) for _ in range(3))
    head, long = header([4, 6], [2]), header(list(range(17)), [2])
    await device.set_route(2, 31, (first, None), 0, head)
    await device.set_route(2, 3, (second, None), 1, long, other)
    await device.write(address(2, "bytes_max"), JUMBO)
    await device.write(address(2, "frame_bytes_max"), JUMBO)
    for length in LENGTHS:
        sent = frame_of(rng, length, length, first)
        (frame, is_good), latency = await pass_one(device, 2, 0, sent)
        assert is_good and frame == head + sent
        assert latency == HOST_LATENCY, latency
        cocotb.log.info("latency: host to Axon, %d bytes: %d cycles", length, latency)
        sent = frame_of(rng, length, length, second)
        (frame, is_good), latency = await pass_one(device, 2, 1, sent)
        assert is_good and frame == long + other + sent[6:]
        assert latency == HOST_LATENCY, latency
    expected = {"rx_frames": 2 * len(LENGTHS), "rx_bytes": 2 * sum(LENGTHS)}
    assert await device.counters(2) == expected


def probe(rng, options, length, version=1):
    """A probe of this length behind its header, with padding."""
    head = bytes([version, options]) + length.to_bytes(2, "big") + rng.randbytes(12)
    return head + rng.randbytes(length - len(head))


def record_of(unit, port, queued, record):
    """The time of a record, of which all else is as expected."""
    assert len(record) == 16 and record[:2] == bytes([unit, 0]), record.hex()
    assert record[2:4] == port.to_bytes(2, "big"), record.hex()
    assert int.from_bytes(record[4:8], "big") == queued, record.hex()
    return int.from_bytes(record[8:], "big")


@cocotb.test()
async def a_probe_gathers_the_times_at_which_it_comes_and_leaves(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    begin = 0x0123_4567_FFFF_0000
    await device.write(address(DEVICE, "time_high"), begin >> 32)
    await device.write(address(DEVICE, "time_low"), begin & 0xFFFF_FFFF)
    seen = []
    for length in [52, 53, 1000, 1484]:
        for options in range(8):
            body = probe(rng, options, length)
            sent = header([1, 7], [], PROBE) + body
            (frame, is_good), latency = await pass_one(device, 0, 1, sent)
            assert is_good and latency == AXON_LATENCY, latency
            start = header([7], [0], PROBE) + body
            records = [frame[at : at + 16] for at in range(len(start), len(frame), 16)]
            assert frame.startswith(start) and len(records) == (options & 3).bit_count()
            times = []
            if options & INGRESS:
                times.append(record_of(INGRESS, 0, 0, records.pop(0)) - begin)
                seen.append((device.begins[0][-1], times[0]))
            if options & EGRESS:
                times.append(record_of(EGRESS, 1, 0, records.pop(0)) - begin)
                seen.append((device.starts[1][-1], times[-1]))
            if len(times) == 2:
                assert times[1] - times[0] == AXON_LATENCY * CYCLE, times
    # All are of one clock, at the pins.
    assert len({time - at * CYCLE for at, time in seen}) == 1 and min(seen)[1] > 0, seen
    high, low = [await device.read(address(DEVICE, f"time_{half}")) for half in ("high", "low")]
    assert high == begin >> 32 or low < 0xFFFF_0000


@cocotb.test()
async def what_asks_for_no_record_or_has_no_room_gets_none(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    await device.write(address(0, "bytes_max"), 1500)
    await device.write(address(1, "bytes_max"), 1500)
    asked, short = INGRESS | EGRESS, probe(rng, INGRESS | EGRESS, 60)
    cases = [
        (header([1], [], PROBE) + probe(rng, asked, 60, version=2), 0),
        (header([1], [], CONTROL) + short, 0),
        (header([1], list(range(39)), PROBE) + short[:15], 0),
        (header([1], list(range(38)), PROBE) + short[:16], 2),
        (header([1], [], PROBE) + probe(rng, asked, 1493 - 32), 2),
        (header([1], [], PROBE) + probe(rng, asked, 1493 - 31), 1),
        (header([1], [], PROBE) + probe(rng, asked, 1493 - 15), 0),
    ]
    for sent, records in cases:
        (frame, is_good), _ = await pass_one(device, 0, 1, sent)
        assert is_good and len(frame) == len(sent) + 16 * records, (len(sent), records, len(frame))
    # A probe that comes bad leaves bad.
    device.send(0, None, wire=on_wire(header([1], [], PROBE) + short)[:-1] + b"!")
    await device.idle()
    assert device.received[1][-1][1] is False


@cocotb.test()
async def probes_at_full_rate_and_behind_others_keep_their_order(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    sent = [probe(rng, INGRESS, rng.choice([52, 60, 200])) for _ in range(40)]
    for body in sent:
        device.send(0, header([1], [5], PROBE) + body)
    await device.idle()
    start = header([], [0, 5], PROBE)
    for body, (frame, is_good) in zip(sent, device.received[1], strict=True):
        assert is_good and frame[:-16] == start + body
        record_of(INGRESS, 0, 0, frame[-16:])
    # Two of the CPU: the first leaves the second behind, with a byte for its end.
    device.received[1].clear()
    for length in (900, 80):
        device.inject(1, header([], [], PROBE) + probe(rng, EGRESS | QUEUED, length))
    await device.idle()
    left = [frame[-16:] for frame, _ in device.received[1]]
    times = [record_of(EGRESS, 1, queued, record) for queued, record in zip([87, 0], left)]
    assert times[1] - times[0] == (8 + 906 + 16 + 4 + GAP) * CYCLE, times


@cocotb.test()
async def a_frame_too_close_behind_a_probe_costs_the_probe(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    body = probe(rng, INGRESS, 100)
    for gap in [4, 10, 11]:
        device.received[1].clear()
        device.send(0, header([1], [], PROBE) + body, gap=gap)
        packet = header([1], [], CONTROL) + rng.randbytes(80)
        device.send(0, None, wire=b"\x55" + on_wire(packet)[7:])
        await device.idle()
        first, second = device.received[1]
        assert second == (header([], [0], CONTROL) + packet[7:], True)
        assert first[1] == (gap == 11) and first[0].startswith(header([], [0], PROBE) + body)
    assert (await device.counters(1))["poisoned"] == 2
    assert "queue_full" not in await device.counters(0), "what leaves is no drop"


@cocotb.test()
async def ether_probes_get_records_at_host_ports(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    there, here = b"\x0a" + rng.randbytes(5), b"\x0a" + rng.randbytes(5)
    sent = there + here + b"\x88\xb6" + probe(rng, INGRESS | EGRESS, 46)
    device.inject(2, sent)
    await device.idle()
    [(frame, is_good)] = device.received[2]
    assert is_good and frame[:-16] == sent
    leaves = record_of(EGRESS, 2, 0, frame[-16:])
    device.send(3, frame)
    await device.idle()
    [(ingress, reason, punt)] = device.take_punts()
    assert (ingress, reason) == (3, "miss") and punt[:-16] == header([], [3]) + frame
    assert record_of(INGRESS, 3, 0, punt[-16:]) > leaves
    # With a route it is a frame as any other, and so it is for the hosts that get it.
    await device.set_route(3, 1, (there, None), 2, b"")
    (frame, is_good), _ = await pass_one(device, 3, 2, sent)
    assert is_good and frame == sent
    (frame, is_good), _ = await pass_one(device, 0, 2, header([2], []) + sent)
    assert is_good and frame == sent


@cocotb.test()
async def address_resolution_ends_at_the_cpu_where_addresses_are_masqueraded(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    given, true, plain = (b"\x02" + rng.randbytes(5) for _ in range(3))
    head = header([4, 6], [2])
    await device.set_route(2, 0, (given, None), 0, head, true)
    await device.set_route(2, 1, (plain, None), 0, head)
    arp, ndp = b"\x08\x06", b"\x86\xdd\x60" + bytes(5) + b"\x3a\xff"
    other = b"\x86\xdd\x60" + bytes(5) + b"\x06\xff"
    for punts_plain in (0, 1):
        await device.write(address(2, "punts_resolution"), punts_plain)
        for to, after in ((given, true), (plain, plain)):
            for start in (arp, ndp, b"\x81\x00\xe0\x00" + arp, other, b"\x08\x00"):
                frame = to + rng.randbytes(6) + start + rng.randbytes(60)
                device.received[0].clear()
                device.send(2, frame)
                await device.idle()
                is_punted = start not in (other, b"\x08\x00") and (to == given or punts_plain)
                if is_punted:
                    assert device.take_punts() == [(2, "miss", header([], [2]) + frame)]
                    assert device.received[0] == []
                else:
                    assert device.received[0] == [(head + after + frame[6:], True)]
                    latency = device.starts[0][-1] - device.begins[2][-1]
                    waits = start == other and (to == given or punts_plain)
                    assert latency == HOST_LATENCY + 8 * waits, latency


@cocotb.test()
async def hosts_get_frames_without_their_header(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    there, here = b"\x02" + rng.randbytes(5), rng.randbytes(6)
    await device.set_route(2, 0, (there, here), 3, b"")
    for length in [60, 1000, 1514]:
        for head in [header([3], []), header([3], [1, 2, 3]), header([3, 4, 5], list(range(30)))]:
            sent = frame_of(rng, length, length)
            (frame, is_good), latency = await pass_one(device, 1, 3, head + sent)
            assert is_good and frame == sent
            cocotb.log.info("Axon to host, header of %d: %d cycles", len(head), latency)
        sent = frame_of(rng, length, length, there, here)
        (frame, is_good), latency = await pass_one(device, 2, 3, sent)
        assert is_good and frame == sent
        cocotb.log.info("host to host: %d cycles", latency)
    assert (await device.counters(3))["tx_frames"] == 12


@cocotb.test()
async def the_cpu_gets_misses_errors_and_link_frames(dut):
    device = await Device(dut).begin((AXON, UNKNOWN, HOST, HOST))
    rng = random.Random(cocotb.RANDOM_SEED)
    device.pauses_cpu = lambda: rng.random() < 0.3
    miss = frame_of(rng)
    group = frame_of(rng, destination=b"\xff" * 6)
    link = frame_of(rng, 60, 300, destination=LINK_LOCAL)
    payload = rng.randbytes(100)
    device.send(2, miss)
    device.send(2, link)
    await device.idle(2000)
    device.send(3, group)
    device.send(1, link)
    device.send(1, miss)
    device.send(0, header([CPU_HOP, 4], [7]) + payload)
    device.send(0, header([2, 4], [7], CONTROL, 1) + payload)
    device.send(0, header([], [7]) + payload)
    device.send(0, link)
    await device.idle(2000)
    punts = device.take_punts()
    expected = [
        (2, "miss", header([], [2]) + miss),
        (2, "link_local", link),
        (3, "miss", header([], [3]) + group),
        (1, "link_local", link),
        (0, "addressed", header([4], [0, 7]) + payload),
        (0, "error", header([4], [0, 7], ERROR, 1) + payload),
        (0, "error", header([], [7], ERROR) + payload),
        (0, "link_local", link),
    ]
    assert sorted(punts) == sorted(expected)
    assert await device.counters(0) == {
        "rx_frames": 4, "rx_bytes": 9 + 9 + 7 + 3 * 100 + len(link), "addressed": 1, "error": 2,
        "link_local": 1,
    }
    assert (await device.counters(1))["port_unknown"] == 1
    assert await device.counters(DEVICE) == {
        "tx_frames": 8, "tx_bytes": sum(len(frame) for _, _, frame in expected),
    }


@cocotb.test()
async def the_cpu_sends_by_any_port(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    sent = []
    for _ in range(20):
        port = rng.randrange(PORTS + 1)
        sent.append((port, frame_of(rng, 60, 300)))
        device.inject(*sent[-1])
        await device.idle(100)
    await device.idle()
    for port in range(PORTS):
        frames = [(frame, True) for to, frame in sent if to == port]
        assert device.received[port] == frames
    assert await device.counters(DEVICE) == {
        "rx_frames": 20, "rx_bytes": sum(len(frame) for _, frame in sent),
        "no_such_port": sum(port == PORTS for port, _ in sent),
    }


@cocotb.test()
async def a_bad_frame_is_poisoned_or_dropped(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    packet = header([1], [3]) + rng.randbytes(200)
    bad = on_wire(packet)[:-1] + bytes([on_wire(packet)[-1] ^ 1])
    device.send(0, None, wire=bad)
    await device.idle()
    assert device.received[1] == [(header([], [0, 3]) + packet[8:], False)]
    await device.write(address(0, "is_stored"), 1)
    device.send(0, None, wire=bad)
    device.send(0, None, wire=on_wire(header([CPU_HOP], []) + rng.randbytes(60))[:-1] + b"!")
    device.send(0, None, wire=on_wire(header([1], []) + rng.randbytes(20)))
    device.send(0, packet)
    device.send(0, None, wire=b"\x55" * 7 + b"\x12" + packet)
    device.send(0, None, wire=b"\xaa")
    device.send(0, None, wire=on_wire(header([9], []) + rng.randbytes(60)))
    await device.idle()
    assert device.received[1][1:] == [(header([], [0, 3]) + packet[8:], True)]
    assert device.take_punts() == []
    counts = await device.counters(0)
    frames = 3 * len(packet) + 67 + 67
    assert counts == {
        "rx_frames": 5, "rx_bytes": frames, "bad_fcs": 2, "malformed": 1, "runts": 1,
        "no_start": 2, "no_such_port": 1,
    }, counts
    assert await device.counters(1) == {
        "tx_frames": 2, "tx_bytes": 2 * len(packet), "poisoned": 1,
    }


@cocotb.test()
async def frames_to_a_port_without_carrier_are_dropped_and_counted(dut):
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    dut.link_up.value = 0b1001
    for _ in range(3):
        device.send(0, header([1], []) + rng.randbytes(100))
        device.send(3, frame_of(rng, 60, 300))
    device.inject(1, frame_of(rng))
    await device.idle(2000)
    assert not device.received[1]
    assert (await device.counters(0))["port_down"] == 3
    assert (await device.counters(3))["miss"] == 3
    assert (await device.counters(DEVICE))["port_down"] == 1


@cocotb.test()
async def nothing_is_lost_in_random_traffic_but_what_is_counted(dut):
    """Frames in all directions at once, with routes that change: each arrives as expected at its
    output, or is a drop of a full buffer; the counters add up."""
    device = await Device(dut).begin()
    rng = random.Random(cocotb.RANDOM_SEED)
    hosts = [b"\x02" + rng.randbytes(5) for _ in range(8)]
    outputs = [0, 1, 2, 3, 0, 1, 2, 3]
    for port in (2, 3):
        for at, (host, to) in enumerate(zip(hosts, outputs)):
            head = b"" if to > 1 else header([at], [port])
            await device.set_route(port, at, (host, None), to, head, rows=0)
    expected, sent_bytes = {}, [0] * PORTS

    def offer(port):
        frame = frame_of(rng, 60, rng.choice([80, 300, 1400]))
        tag = frame[-8:]
        if port < 2:
            to = rng.choice([0, 1, 2, 3, CPU_HOP])
            more, reverse = rng.choice([[], [7, 8]]), rng.choice([[], [9]])
            packet = header([to, *more], reverse) + frame
            after = header(more, [port, *reverse]) + frame
            frame, result = packet, frame if to in (2, 3) else after
        else:
            at = rng.randrange(9)
            host, to = (hosts[at], outputs[at]) if at < 8 else (frame[:6], CPU_HOP)
            frame = host + frame[6:]
            head = header([at], [port]) if to < 2 else header([], [port]) if at == 8 else b""
            result = head + frame
        expected[tag] = (to, result)
        sent_bytes[port] += len(frame)
        device.send(port, frame, rng.choice([GAP, GAP, 200, 1500]))

    async def change_routes():
        while True:
            at = rng.randrange(8, ROUTES)
            await device.set_route(rng.choice([2, 3]), at, (rng.randbytes(6), None), 0, b"")

    task = cocotb.start_soon(change_routes())
    count = int(os.environ.get("AXON_FRAMES", "150"))
    for _ in range(count):
        for port in range(PORTS):
            offer(port)
    await device.idle()
    task.cancel()
    await cycle(dut)
    dut.reg_write.value = 0
    await device.idle(3000)

    arrived = [(to, frame) for to in range(PORTS) for frame, good in device.received[to] if good]
    arrived += [(CPU_HOP, frame) for _, _, frame in device.take_punts()]
    for to, frame in arrived:
        assert expected.pop(frame[-8:]) == (to, frame)
    counts = [await device.counters(port) for port in [*range(PORTS), DEVICE]]
    total = {name: sum(of.get(name, 0) for of in counts) for name in COUNTERS}
    cocotb.log.info("counters: %s", total)
    assert [of["rx_bytes"] for of in counts[:PORTS]] == sent_bytes
    assert total["rx_frames"] == PORTS * count
    assert total["tx_frames"] == len(arrived)
    assert total["queue_full"] == len(expected) < PORTS * count / 2
    assert sum(total[name] for name in DROPS) == total["queue_full"]
    assert sum(total[name] for name in PUNTS) == counts[PORTS]["tx_frames"]


def test_axon_device():
    bench.run("axon_device", parameters=PARAMETERS, tests=__file__)
