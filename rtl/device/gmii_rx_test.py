"""Tests of gmii_rx: every output in every cycle against a model of the receiver."""

import random

import bench
import cocotb

BYTES_MAX = 1518
IDLE = (0, 0, 0)


# Pins of a cycle are (rxd, rx_dv, rx_er).


def idle(cycles=12):
    return [IDLE] * cycles


def carrier(data, errors=()):
    """A carrier event of the bytes `data`, with rx_er at the given places."""
    return [(byte, 1, int(place in errors)) for place, byte in enumerate(data)]


def good(bytes_min=60, bytes_max=BYTES_MAX):
    return carrier(bench.on_wire(bench.random_frame(random, bytes_min, bytes_max)))


def expected(pins, bytes_max):
    """Outputs by cycle, as a dictionary of dictionaries, and the number of no_start pulses."""
    outputs, no_starts, place, gap = {}, 0, 0, 0

    def show(at, **values):
        outputs.setdefault(at, {}).update(values)

    while place < len(pins):
        if not pins[place][1]:
            place, gap = place + 1, gap + 1
            continue
        begin = place
        while place < len(pins) and pins[place][1]:
            place += 1
        data = bytes(pin[0] for pin in pins[begin:place])
        has_error = any(pin[2] for pin in pins[begin:place])
        after_preamble = data.lstrip(b"\x55")
        preamble = len(data) - len(after_preamble)
        if gap < 4 or preamble == 0 or after_preamble[:1] != b"\xd5":
            no_starts, gap = no_starts + 1, 0
            continue
        gap = 0
        frame = after_preamble[1:]
        first = begin + preamble + 2  # cycle of the first byte in `head`
        for index, byte in enumerate(frame):
            show(first + index, head=(byte, int(index == 0)))
        show(first + len(frame), head_end=1)
        body = frame[:-4]
        is_giant = len(body) > bytes_max
        body = body[:bytes_max]
        for index, byte in enumerate(body):
            show(first + index + 4, body=byte)
        is_fcs_bad = has_error or len(frame) < 4 or bench.fcs(frame[:-4]) != frame[-4:]
        is_bad_fcs = not is_giant and is_fcs_bad
        is_runt = not is_giant and len(frame) < 64
        is_bad = is_giant or is_bad_fcs or is_runt
        end = first + len(body) + 4 if is_giant else first + len(frame)
        show(
            end,
            body=0x100 | is_bad,
            done=(len(body), int(is_bad_fcs), int(is_runt), int(is_giant)),
        )
    return outputs, no_starts


async def check(dut, pins, bytes_max=BYTES_MAX, reset=True):
    """Drives `pins` and compares all outputs with the model; returns the frames of `body`."""
    if reset:
        await bench.start(dut, rxd=0, rx_dv=0, rx_er=0, bytes_max=bytes_max)
    pins = idle() + pins + idle()
    model, no_starts = expected(pins, bytes_max)
    seen_no_starts, stream = 0, []
    for at, (rxd, rx_dv, rx_er) in enumerate(pins, start=1):
        dut.rxd.value, dut.rx_dv.value, dut.rx_er.value = rxd, rx_dv, rx_er
        await bench.cycle(dut)
        seen = {}
        if dut.head_valid.value:
            seen["head"] = (int(dut.head_data.value), int(dut.head_first.value))
        else:
            assert not dut.head_first.value
        if dut.head_end.value:
            seen["head_end"] = 1
        if dut.body_valid.value:
            seen["body"] = int(dut.body.value)
            stream.append(seen["body"])
        if dut.frame_done.value:
            seen["done"] = tuple(
                int(output.value)
                for output in (dut.frame_bytes, dut.is_bad_fcs, dut.is_runt, dut.is_giant)
            )
        seen_no_starts += int(dut.no_start.value)
        assert seen == model.get(at, {}), f"cycle {at}"
    assert seen_no_starts == no_starts
    return bench.frames_of(stream)


@cocotb.test()
async def random_frames_of_64_to_1522_bytes_at_gap_12(dut):
    frames = [random.randbytes(60), random.randbytes(BYTES_MAX)]
    frames += [bench.random_frame(random) for _ in range(40)]
    pins = []
    for frame in frames:
        pins += carrier(bench.on_wire(frame)) + idle(12)
    assert await check(dut, pins) == [(frame, False) for frame in frames]


@cocotb.test()
async def random_frames_at_gaps_from_4_to_12(dut):
    pins = []
    for _ in range(80):
        pins += good(60, 200) + idle(random.randint(4, 12))
    frames = await check(dut, pins)
    assert len(frames) == 80 and not any(is_bad for _, is_bad in frames)


@cocotb.test()
async def byte_k_is_in_head_in_cycle_9_plus_k_and_in_body_in_cycle_13_plus_k(dut):
    """The figures of the head of gmii_rx.sv, without the model."""
    frame = random.randbytes(60)
    pins = carrier(bench.on_wire(frame)) + idle()
    await bench.start(dut, rxd=0, rx_dv=0, rx_er=0, bytes_max=BYTES_MAX)
    await bench.cycle(dut, 12)
    head, body = {}, {}
    for at, (dut.rxd.value, dut.rx_dv.value, _) in enumerate(pins, start=1):
        await bench.cycle(dut)
        if dut.head_valid.value:
            head[at] = int(dut.head_data.value)
        if dut.body_valid.value:
            body[at] = int(dut.body.value)
    assert head == {9 + k: byte for k, byte in enumerate(frame + bench.fcs(frame))}
    assert body == {13 + k: byte for k, byte in enumerate(bench.symbols(frame))}


@cocotb.test()
async def every_flipped_bit_of_a_frame_makes_its_end_bad(dut):
    wire = bench.on_wire(random.randbytes(60))
    pins = []
    for bit in random.sample(range(64 * 8), 100):
        flipped = bytearray(wire)
        flipped[8 + bit // 8] ^= 1 << bit % 8
        pins += carrier(flipped) + idle() + carrier(wire) + idle()
    frames = await check(dut, pins)
    assert [is_bad for _, is_bad in frames] == [True, False] * 100


@cocotb.test()
async def receive_error_at_any_place_makes_the_end_bad(dut):
    pins = []
    for place in range(72):
        wire = bench.on_wire(random.randbytes(60))
        pins += carrier(wire, errors=[place]) + idle() + good(60, 80) + idle()
    frames = await check(dut, pins)
    assert [is_bad for _, is_bad in frames] == [True, False] * 72


@cocotb.test()
async def receive_error_without_rx_dv_is_ignored(dut):
    pins = []
    for _ in range(10):
        pins += [(0x0E, 0, 1)] * 12 + good(60, 100)
    frames = await check(dut, pins)
    assert len(frames) == 10 and not any(is_bad for _, is_bad in frames)


@cocotb.test()
async def runts_of_every_length_up_to_63_with_and_without_a_right_fcs(dut):
    pins, count = [], 0
    for length in range(64):
        data = random.randbytes(length)
        pins += carrier(bench.on_wire(b"")[:8] + data) + idle() + good(60, 80) + idle()
        count += 1
        if length >= 4:
            pins += carrier(bench.on_wire(data[:-4])) + idle() + good(60, 80) + idle()
            count += 1
    frames = await check(dut, pins)
    assert [is_bad for _, is_bad in frames] == [True, False] * count


@cocotb.test()
async def giants_are_cut_at_bytes_max(dut):
    for bytes_max in [100, 1518, 0, 59]:
        pins = []
        for more in [-1, 0, 1, 2, 3, 4, 5, 6, 500]:
            frame = random.randbytes(bytes_max + more) if bytes_max + more > 0 else b""
            pins += carrier(bench.on_wire(frame)) + idle()
            pins += good(60, 80) + idle()
        frames = await check(dut, pins, bytes_max)
        assert max(len(frame) for frame, _ in frames) == bytes_max


@cocotb.test()
async def a_giant_longer_than_the_counter_of_bytes_has_one_end(dut):
    pins = carrier(bench.on_wire(random.randbytes(17000))) + idle() + good() + idle()
    frames = await check(dut, pins, bytes_max=(1 << 14) - 1)
    assert [(len(frame) == 16383, is_bad) for frame, is_bad in frames] == [
        (True, True),
        (False, False),
    ]


@cocotb.test()
async def preambles_of_1_to_40_bytes(dut):
    pins = []
    for preamble in range(1, 41):
        pins += carrier(bench.on_wire(random.randbytes(60), preamble)) + idle()
    frames = await check(dut, pins)
    assert len(frames) == 40 and not any(is_bad for _, is_bad in frames)


@cocotb.test()
async def carrier_events_without_preamble_and_sfd_are_ignored(dut):
    payload = bench.on_wire(random.randbytes(60))
    wrong = [
        b"\x55" * 7,  # no SFD before rx_dv falls
        b"\x55",
        b"\xd5",
        b"\xd5" + payload,  # no preamble
        b"\x55" * 7 + payload[8:],  # no SFD
        b"\x55" * 3 + b"\x54" + payload,  # a preamble with a wrong byte
        b"\x5d" + payload,
        b"\x00" + payload,
        random.randbytes(1) + b"\xd5" + payload,
    ]
    pins = []
    for data in wrong:
        pins += carrier(data) + idle() + good(60, 80) + idle()
    frames = await check(dut, pins)
    assert len(frames) == len(wrong) and not any(is_bad for _, is_bad in frames)


@cocotb.test()
async def frames_after_a_gap_of_less_than_4_are_ignored(dut):
    pins = []
    for gap in [1, 2, 3]:
        for first in [good(60, 100), carrier(b"\x55" * 4), carrier(b"\x55\xd5\x01\x02")]:
            pins += first + idle(gap) + good(60, 80) + idle() + good(60, 80) + idle()
    frames = await check(dut, pins)
    assert sum(not is_bad for _, is_bad in frames) == 12


@cocotb.test()
async def a_link_that_drops_in_a_frame_gives_one_bad_end(dut):
    pins = []
    for _ in range(40):
        wire = bench.on_wire(bench.random_frame(random, 60, 300))
        pins += carrier(wire[: random.randint(9, len(wire) - 1)])
        pins += idle(random.randint(4, 400)) + good(60, 80) + idle()
    frames = await check(dut, pins)
    assert [is_bad for _, is_bad in frames] == [True, False] * 40


@cocotb.test()
async def a_reset_in_a_frame_drops_the_rest_of_it(dut):
    """The rest looks like a preamble and a frame; rx_dv stays high."""
    await bench.start(dut, rxd=0, rx_dv=0, rx_er=0, bytes_max=BYTES_MAX)
    await bench.cycle(dut, 12)
    wire = bench.on_wire(random.randbytes(30) + bench.on_wire(random.randbytes(80)))
    for at, byte in enumerate(wire):
        dut.rxd.value, dut.rx_dv.value, dut.rst.value = byte, 1, int(at in (36, 37))
        await bench.cycle(dut)
        if at >= 36:
            assert not dut.head_valid.value and not dut.head_end.value
            assert not dut.body_valid.value and not dut.no_start.value
    dut.rx_dv.value = 0
    frames = await check(dut, good() + idle(), reset=False)
    assert len(frames) == 1 and not frames[0][1]


@cocotb.test()
async def random_events_of_all_kinds(dut):
    def event():
        wire = bytearray(bench.on_wire(bench.random_frame(random, 0, 300), random.randint(0, 9)))
        match random.randrange(6):
            case 0:
                wire[random.randrange(len(wire))] ^= 1 << random.randrange(8)
            case 1:
                del wire[random.randint(1, len(wire) - 1) :]
            case 2:
                return carrier(wire, errors=[random.randrange(len(wire))])
            case 3:
                wire = bytearray(random.choices(b"\x55\x55\xd5\x00", k=random.randint(1, 80)))
        return carrier(wire)

    pins = []
    for _ in range(300):
        pins += event() + idle(random.choice([1, 2, 3, 4, 5, 8, 12]))
    await check(dut, pins, bytes_max=250)


def test_gmii_rx():
    bench.run("gmii_rx", tests=__file__)
