"""Tests of ingress.sv with the real route table: vectors/forward.txt and vectors/edge.txt byte for
byte, random frames against ingress_reference.py, broken frames, and the timing.

The driver plays gmii_rx: byte k of a frame, FCS included, is in `head` in cycle t0 + k, and in
`body` four cycles later; the end of `body` comes with head_end.
"""

import random
from dataclasses import dataclass

import bench
import cocotb
import ingress_reference as reference
import pytest
from ingress_reference import CPU, KINDS, Ingress, Route

REASONS = {number: name for name, number in reference.DROPS.items()}
PUNTS = {number: name for name, number in reference.PUNTS.items()}
PORTS = 4
# What ends at the CPU where it is address resolution, and what resembles it; from the EtherType on.
IPV6 = "60000000" "0020"
RESOLUTION = [
    "0806", "8100a0000806", "810000010806", "8100000081000000" "0806",
    f"86dd{IPV6}3aff", f"86dd{IPV6}3a40", f"86dd{IPV6}11ff", f"8100000086dd{IPV6}3aff",
    f"8100000186dd{IPV6}3aff", f"8100000081000000" f"86dd{IPV6}3aff",
]  # fmt: skip


@dataclass
class Output:
    """A frame at an output."""

    to: object
    announced: int  # cycle
    priority: int
    data: bytearray
    first_write: int = 0
    is_bad: object = None  # None while it has no end


class Bench:
    """Drives the ports of the ingress cycle by cycle and records all that comes out."""

    def __init__(self, dut):
        self.dut, self.now = dut, 0
        self.width = int(dut.HOP_BITS.value)
        self.outputs, self.fates, self.mac_control = [], [], []
        self.driven = {}

    async def start(self):
        zeros = (
            "port head_valid head_data head_first head_end body_valid body is_bad_fcs is_runt "
            "is_giant time_now kind punts_resolution stores_frames kinds ups valid by_source "
            "row_write attributes_write memory_write write_address write_data"
        )
        await bench.start(
            self.dut, bytes_max=1642, frame_bytes_max=1514, route_bytes_max=0xFFFF,
            **dict.fromkeys(zeros.split(), 0),
        )  # fmt: skip

    def drive(self, **values):
        for name, value in values.items():
            if self.driven.get(name) != value:
                self.driven[name] = value
                getattr(self.dut, name).value = value

    async def cycle(self, count=1):
        for _ in range(count):
            await bench.cycle(self.dut)
            self.now += 1
            self.sample()

    def sample(self):
        dut = self.dut
        announced = int(dut.announce.value) | int(dut.cpu_announce.value) << CPU
        written = int(dut.write.value) | int(dut.cpu_write.value) << CPU
        if written:
            symbol = int(dut.symbol.value)
            output = self.outputs[-1]
            assert written == 1 << (CPU if output.to == "cpu" else output.to), "another output"
            assert output.is_bad is None, "a symbol after the end"
            output.first_write = output.first_write or self.now
            if symbol & 0x100:
                assert symbol & 0xFE == 0
                output.is_bad = bool(symbol & 1)
            else:
                output.data.append(symbol)
        elif self.outputs and self.outputs[-1].is_bad is None and self.outputs[-1].to != "cpu":
            output = self.outputs[-1]
            assert not output.first_write, "a pause in a frame that may be leaving"
            assert self.now - output.announced < 8, "the first byte is late"
        if announced:
            assert not self.outputs or self.outputs[-1].is_bad is not None, "announced in a frame"
            assert announced & (announced - 1) == 0, "two outputs"
            to = announced.bit_length() - 1
            assert int(dut.is_stored.value) == (to == CPU or self.driven.get("stores_frames", 0))
            to = "cpu" if to == CPU else to
            self.outputs.append(Output(to, self.now, int(dut.frame_priority.value), bytearray()))
        is_drop, is_punt = int(dut.drop_valid.value), int(dut.punt_valid.value)
        assert not (is_drop and is_punt)
        if is_drop:
            self.fates.append(("drop", REASONS[int(dut.drop.value)]))
        if int(dut.refused.value):
            self.fates.append(("drop", "queue_full"))
        if is_punt:
            self.fates.append(("punt", PUNTS[int(dut.punt.value)]))
        if int(dut.mac_control_valid.value):
            self.mac_control.append(int(dut.symbol.value))

    async def send(self, frame, bad=None, check=None, gap=12):
        """A frame; `check` is what stands for its FCS. `gap` cycles follow. Returns t0."""
        head = bytes(frame) + (random.randbytes(4) if check is None else check)
        t0 = self.now
        for at in range(len(head)):
            self.drive(
                head_valid=1, head_data=head[at], head_first=int(at == 0),
                body_valid=int(at >= 4), body=frame[at - 4] if at >= 4 else 0,
            )  # fmt: skip
            await self.cycle()
        self.drive(
            head_valid=0, head_first=0, head_end=1, body_valid=1, body=0x100 | (bad is not None),
            is_giant=int(bad == "oversized"), is_bad_fcs=int(bad == "bad_fcs"),
            is_runt=int(bad == "malformed" or len(frame) < 60),
        )  # fmt: skip
        await self.cycle()
        self.drive(head_end=0, body_valid=0)
        await self.cycle(gap)
        return t0

    async def configure(self, ingress):
        """Settings and route table of a reference."""
        kinds = ingress.kinds
        self.drive(
            port=ingress.port, kind=KINDS[ingress.kind],
            punts_resolution=int(ingress.punts_resolution),
            frame_bytes_max=ingress.bytes_max,
            route_bytes_max=ingress.route_bytes_max, valid=0,
            kinds=sum(KINDS[kind] << 2 * at for at, kind in enumerate(kinds)),
            ups=sum(up << at for at, up in enumerate(ingress.ups)),
        )  # fmt: skip
        if ingress.kind != "H":
            return
        for row in range(2 * 12 * 16):
            low, position, nibble = row // 192, row // 16 % 12, row % 16
            bits = 0
            for number, route in enumerate(ingress.routes):
                key = route.destination + (route.source or bytes(6))
                wanted = key[position] & 15 if low else key[position] >> 4
                is_any = position >= 6 and route.source is None
                bits |= int(is_any or wanted == nibble) << number
            await self.write("row", low << 8 | position << 4 | nibble, bits)
        for number, route in enumerate(ingress.routes):
            to = route.hops[0]
            is_host = to < len(kinds) and kinds[to] == "H"
            header = b"" if is_host else route.header(self.width, ingress.port)
            word = (to & 15) | len(header) << 4 | route.priority << 9
            word |= int(route.true_destination is not None) << 12
            await self.write("attributes", number, word)
            entry = header.ljust(24, b"\xee") + (route.true_destination or bytes(6))
            for offset, byte in enumerate(entry):
                await self.write("memory", number << 5 | offset, byte * 0x01010101)
        self.drive(
            valid=(1 << len(ingress.routes)) - 1,
            by_source=sum((r.source is not None) << n for n, r in enumerate(ingress.routes)),
        )

    async def write(self, what, address, data):
        self.drive(**{f"{what}_write": 1}, write_address=address, write_data=data)
        await self.cycle()
        self.drive(**{f"{what}_write": 0})

    async def settle(self):
        await self.cycle(100)

    def check(self, fates, name):
        """Compares all that came out with fates of the reference, and forgets it."""
        outputs = self.outputs[:]
        for fate in fates:
            if fate[0] != "pass":
                assert self.fates, f"{name}: no fate, expected {fate}"
                got = self.fates.pop(0)
                assert got == fate[:2], f"{name}: {got}, expected {fate}"
            if fate[0] == "drop":
                # A frame may have begun to leave; then it ends bad, and is a start of the frame.
                if outputs and outputs[0].is_bad:
                    outputs.pop(0)
                continue
            to, data = fate[-1]
            assert outputs, f"{name}: nothing came out, expected {fate}"
            output = outputs.pop(0)
            assert (output.to, output.data, output.is_bad) == (to, data, False), (
                f"{name}: {output.data.hex()} at {output.to}, bad: {output.is_bad}, "
                f"expected {data.hex()} at {to}"
            )
        assert not outputs and not self.fates, f"{name}: too much: {outputs} {self.fates}"
        self.outputs.clear()


def axon_frame(width, types=(1, 1, 1, 2, 3, 4, 5)):
    """A random packet for an Axon port, mostly valid."""
    port = random.choice([0, 1, 2, 3, 3, CPU, 9])
    count = random.choice([0, 1, 1, 2, 3, 5, 9])
    hops = [port, *random.choices(range(9), k=count)][:count]
    back = random.choices(range(9), k=random.choice([0, 1, 2, 6]))
    header = reference.emit(width, random.choice(types), hops, back, random.getrandbits(3))
    header = bytearray(header)
    if random.random() < 0.2:
        header[random.randrange(6)] ^= 1 << random.randrange(8)
    return bytes(header) + ethernet_frame([])


def ethernet_frame(routes, bytes_max=90):
    """A random frame that begins with an Ethernet header."""
    route = random.choice(routes) if routes else None
    destination = route.destination if route else random.randbytes(6)
    source = route.source if route and route.source else random.randbytes(6)
    what = random.random()
    if what < 0.1:
        destination = b"\x01\x80\xc2\x00\x00" + bytes([random.choice([0, 1, 14, 15, 16])])
    elif what < 0.2:
        at = random.randrange(6)
        destination = destination[:at] + bytes([destination[at] ^ 1]) + destination[at + 1 :]
    ethertype = random.choice(["0800", "0800", "86dd", "8808", "8100000022e90000", "810000010800",
                               "22e90000", "88a8", *RESOLUTION])  # fmt: skip
    if route and random.random() < 0.6:
        ethertype = "0800"
    payload = random.randbytes(random.choice([0, 20, 46, 50, random.randint(0, bytes_max)]))
    return destination + source + bytes.fromhex(ethertype) + payload


def random_routes(count=8):
    """Routes in the order in which the table prefers them."""
    routes = []
    for number in range(count):
        destination = bytes([2, 0, 0, 0, 0, number // 2])
        source = bytes([2, 0, 0, 0, 1, number]) if random.random() < 0.5 else None
        hops = [random.choice([0, 1, 2, 3, CPU, 9]), *random.choices(range(9), k=number % 5)]
        true = random.randbytes(6) if random.random() < 0.3 else None
        routes.append(Route(destination, hops, source, true, random.getrandbits(3)))
    return routes


@cocotb.test()
async def forwards_as_the_vectors(dut):
    test, count = Bench(dut), 0
    await test.start()
    for line, (bits, port, kinds, packet), right in reference.vectors("forward.txt"):
        if int(bits) != test.width:
            continue
        packet, (verdict, _, after) = reference.from_hex(packet), right
        ingress = Ingress(int(bits), reference.port_number(port), "A", kinds.ljust(PORTS, "U"))
        await test.configure(ingress)
        fate = ingress.fate(packet)
        after = reference.from_hex(after)
        # The reference against the vector: a stripped frame may be too short to leave.
        if verdict == "strip":
            assert fate[-1] == (int(right[1]), after)
        elif verdict.startswith("drop"):
            assert fate[0] == "drop" and fate[1] == verdict[5:]
        else:
            assert fate[-1][1] == (after if verdict == "egress" else fate[-1][1][:2] + after)
        await test.send(packet)
        await test.settle()
        if verdict == "strip" and fate[0] == "drop":
            assert [(o.to, o.data) for o in test.outputs] == [fate[-1]]
        test.check([fate], f"forward.txt:{line}")
        count += 1
    assert count >= 9, f"only {count} vectors"


@cocotb.test()
async def decides_at_the_edge_as_the_vectors(dut):
    test, count = Bench(dut), 0
    await test.start()
    for line, (bits, port, kinds, table, frame), right in reference.vectors("edge.txt"):
        if int(bits) != test.width or right[0] == "punt-ether_probe":
            continue  # the gates know no probes
        routes = []
        for word in table.split("+") if table != "-" else []:
            key, hops = word.split("/")
            destination, _, source = key.partition("-")
            hops = [reference.port_number(hop) for hop in hops.split(",")]
            source = bytes.fromhex(source) if source else None
            routes.append(Route(bytes.fromhex(destination), hops, source))
        kind = kinds[int(port)]
        ingress = Ingress(int(bits), int(port), kind, kinds, routes, bytes_max=40)
        frame, after = reference.from_hex(frame), reference.from_hex(right[2])
        await test.configure(ingress)
        fate = ingress.fate(frame)
        if right[0] == "transmit":
            assert fate == ("pass", (int(right[1]), after)), f"edge.txt:{line}: {fate}"
        elif right[0].startswith("punt"):
            assert fate[1] == right[0][5:] and fate[-1][1][2:] == after, f"edge.txt:{line}: {fate}"
        else:
            assert fate[:2] == ("drop", right[0][5:]), f"edge.txt:{line}: {fate}"
        await test.send(frame)
        await test.settle()
        test.check([fate], f"edge.txt:{line}")
        count += 1
    assert count >= 3, f"only {count} vectors"


async def random_frames(dut, kind, count, make):
    """Frames in quick succession: fates in order, one for each."""
    test = Bench(dut)
    await test.start()
    seen = set()
    for batch in range(count):
        kinds = list(random.choice(["AAAH", "HAAH", "AHUA", "UAHA"]))
        port = random.randrange(PORTS)
        kinds[port] = kind
        routes = random_routes() if kind == "H" else []
        punts_resolution = kind == "H" and random.random() < 0.5
        ups = [random.random() < 0.7 for _ in range(PORTS)]
        limits = random.choice([(1514, 0xFFFF), (60, 10)])
        ingress = Ingress(test.width, port, kind, kinds, routes, ups, *limits)
        ingress.punts_resolution = punts_resolution
        await test.configure(ingress)
        fates, names = [], []
        for _ in range(12):
            frame = make(test.width, routes)
            bad = random.choice([None] * 8 + ["bad_fcs"])
            check = b"\x5a\xa5\x5a\xa5"
            await test.send(frame, bad, check, gap=random.choice([19, 20, 60]))
            fates.append(ingress.fate(frame, bad))
            names.append(frame.hex())
            seen.add(fates[-1][:2] if fates[-1][0] != "pass" else "pass")
        await test.settle()
        test.check(fates, f"batch {batch}: {' '.join(names)}")
    return seen


@cocotb.test()
async def random_packets_fare_as_in_the_reference(dut):
    seen = await random_frames(dut, "A", 80, lambda width, _: axon_frame(width))
    assert len(seen) >= 9, seen


@cocotb.test()
async def random_frames_of_hosts_fare_as_in_the_reference(dut):
    seen = await random_frames(dut, "H", 25, lambda _, routes: ethernet_frame(routes))
    assert len(seen) >= 9, seen


@cocotb.test()
async def random_frames_of_strangers_fare_as_in_the_reference(dut):
    seen = await random_frames(dut, "U", 6, lambda _, routes: ethernet_frame(routes))
    assert len(seen) >= 3, seen


@cocotb.test()
async def a_frame_may_end_anywhere_and_the_next_is_forwarded(dut):
    test = Bench(dut)
    await test.start()
    width = test.width
    payload = bytes(range(0x40, 0x68))
    destination = bytes([2, 0, 0, 0, 0, 9])
    host = destination + bytes([2, 0, 0, 0, 0, 1, 8, 0]) + payload
    routes = [Route(destination, [1, 7, 7, 7, 7, 7, 7, 7, 7])]
    packets = [
        reference.emit(width, 1, [1, 2, 3], [4, 5]) + payload,
        reference.emit(width, 1, [3, 2, 3], [4, 5]) + host,
        reference.emit(width, 1, [CPU, 2, 3], [4, 5]) + payload,
        reference.emit(width, 2, [], [4, 5]) + payload,
        reference.emit(width, 1, [1] * 30, [4, 5]),
        bytes.fromhex("0180c200000e0200000000018809") + payload,
        bytes.fromhex("0180c20000010200000000018808") + payload,
    ]
    hosts = [host, b"\xff" * 6 + host[6:], *packets[-2:]]
    lie = bytearray(packets[0])
    lie[3] ^= 0x7  # a forward count that the length does not agree with
    for kind, frames in [("A", [*packets, bytes(lie)]), ("H", hosts), ("U", hosts[1:])]:
        kinds = [kind, "A", "U", "H"]
        ingress = Ingress(width, 0, kind, kinds, routes)
        await test.configure(ingress)
        good = packets[0] if kind == "A" else host if kind == "H" else packets[5]
        for number, frame in enumerate(frames):
            # `end` bytes on the wire, FCS included: fewer than 4 leave nothing but an end.
            for end in range(41):
                await test.send(frame[: max(0, end - 4)], "bad_fcs", frame[:end][-4:], gap=19)
                await test.send(good, check=b"\x11" * 4)
                await test.settle()
                # A frame without a byte has no fate: the MAC counts it.
                broken = [("drop", "bad_fcs", None)] if end else []
                name = f"{kind}, frame {number}, {end} bytes"
                test.check([*broken, ingress.fate(good)], name)
            for end in range(41):
                # A good end at each place: a header that is longer than its frame.
                part = frame[:end]
                check = b"\x33" * 4
                await test.send(part, check=check)
                await test.send(good, check=check)
                await test.settle()
                name = f"{kind}, frame {number}, {end} good bytes"
                test.check([ingress.fate(part), ingress.fate(good)], name)


@cocotb.test()
async def fragments_in_a_row_lose_only_themselves(dut):
    test = Bench(dut)
    await test.start()
    destination = bytes([2, 0, 0, 0, 0, 9])
    routes = [Route(destination, [1] + [7] * (16 if test.width < 16 else 7))]
    kinds = "HAAH"
    ingress = Ingress(test.width, 0, "H", kinds, routes)
    await test.configure(ingress)
    frame = destination + bytes([2, 0, 0, 0, 0, 1, 8, 0]) + bytes(46)
    refused = 0
    for _ in range(60):
        sent = random.randint(1, 6)
        await test.send(frame, check=b"abcd", gap=6)
        for _ in range(sent):
            part = frame[: random.randint(0, 20)]
            await test.send(part, "bad_fcs", b"abcd", gap=random.randint(6, 9))
        await test.cycle(60)
        await test.send(frame, check=b"abcd")
        await test.settle()
        drops, test.fates = test.fates[:], []
        assert len(drops) == sent, f"{drops}, {sent} fragments"
        assert {reason for _, reason in drops} <= {"bad_fcs", "queue_full"}, drops
        refused += drops.count(("drop", "queue_full"))
        whole = [bytes(output.data) for output in test.outputs if not output.is_bad]
        assert whole == [ingress.fate(frame)[1][1]] * 2, "a whole frame is lost"
        test.outputs.clear()
    assert refused, "no fragment was refused: the test is too easy"


@cocotb.test()
async def a_line_that_overflows_cuts_the_frame_and_recovers(dut):
    test = Bench(dut)
    await test.start()
    destination = bytes([2, 0, 0, 0, 0, 9])
    routes = [Route(destination, [1] + [7] * (16 if test.width < 16 else 7))]
    ingress = Ingress(test.width, 0, "H", "HAAH", routes)
    await test.configure(ingress)
    frame = destination + bytes([2, 0, 0, 0, 0, 1, 8, 0]) + bytes(range(46))
    count, fate = 60, ingress.fate(frame)
    for _ in range(count):
        await test.send(frame, check=b"abcd", gap=5 if test.width < 16 else 4)
    await test.settle()
    drops, test.fates = test.fates[:], []
    assert drops and set(drops) == {("drop", "queue_full")}, drops
    whole = [output for output in test.outputs if not output.is_bad]
    assert all((output.to, output.data) == fate[1] for output in whole)
    assert len(whole) + len(drops) == count
    assert any(output.is_bad for output in test.outputs), "no frame was cut"
    test.outputs.clear()
    await test.send(frame, check=b"abcd")
    await test.settle()
    test.check([fate], "after the overflow")


@cocotb.test()
async def mac_control_is_shown_whole(dut):
    test = Bench(dut)
    await test.start()
    pause = bytes.fromhex("0180c20000010200000000018808000100ff") + bytes(42)
    for kind in "AHU":
        ingress = Ingress(test.width, 2, kind, [*"AA", kind, "A"])
        await test.configure(ingress)
        for bad in (None, "bad_fcs"):
            await test.send(pause, bad, b"abcd")
            await test.settle()
            test.check([ingress.fate(pause, bad)], kind)
            assert bench.frames_of(test.mac_control) == [(pause, bad is not None)]
            test.mac_control.clear()


@cocotb.test()
async def decides_in_time(dut):
    """Decision register in t0 + 7 with hops of 8 bits, announcement in that cycle, byte 0 two
    cycles later; t0 + 15 from a host. A stripped frame: one cycle before its first byte."""
    test = Bench(dut)
    await test.start()
    decided = {4: 6, 8: 7, 16: 8}[test.width]
    ingress = Ingress(test.width, 2, "A", "AAAH")
    await test.configure(ingress)
    frame = reference.emit(test.width, 1, [1, 2], [3], 5) + bytes(60)
    t0 = await test.send(frame)
    output = test.outputs[0]
    seen = (output.announced - t0, output.first_write - t0)
    dut._log.info(f"Axon port: announced in t0 + {seen[0]}, byte 0 in t0 + {seen[1]}")
    assert seen == (decided, decided + 2)
    assert output.priority == (0 if test.width == 4 else 5)
    test.check([ingress.fate(frame)], "Axon port")

    frame = reference.emit(test.width, 1, [3, 2], [3]) + bytes(12) + b"\x08\x00" + bytes(60)
    t0 = await test.send(frame)
    output = test.outputs[0]
    dut._log.info(f"strip: announced in t0 + {output.announced - t0}")
    assert output.first_write - output.announced == 1
    test.check([ingress.fate(frame)], "strip")

    destination = bytes([2, 0, 0, 0, 0, 9])
    ingress = Ingress(test.width, 0, "H", "HAAH", [Route(destination, [1, 7], priority=6)])
    await test.configure(ingress)
    frame = destination + bytes([2, 0, 0, 0, 0, 1, 8, 0]) + bytes(46)
    t0 = await test.send(frame)
    output = test.outputs[0]
    seen = (output.announced - t0, output.first_write - t0)
    dut._log.info(f"host port: announced in t0 + {seen[0]}, byte 0 in t0 + {seen[1]}")
    assert seen == (15, 18)
    assert output.priority == 6
    await test.settle()
    test.check([ingress.fate(frame)], "host port")


@pytest.mark.parametrize("hop_bits", [4, 8, 16])
def test_ingress(hop_bits):
    bench.run("ingress", parameters={"HOP_BITS": hop_bits}, tests=__file__)
