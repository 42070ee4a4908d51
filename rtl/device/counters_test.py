"""Tests of counters.sv and of the fates in front of it against a model that adds at once."""

import random
import tomllib
from pathlib import Path

import bench
import cocotb
from bench import cycle, start

OUTPUTS = 4
with open(Path(__file__).parents[1] / "registers.toml", "rb") as file:
    COUNTERS = tomllib.load(file)["counter"]
NAMES = [counter["name"] for counter in COUNTERS]
DROPS = {counter["drop"]: counter["name"] for counter in COUNTERS if "drop" in counter}
PUNTS = {counter["punt"]: counter["name"] for counter in COUNTERS if "punt" in counter}
EVENTS = [
    "no_start", "rx_done", "rx_is_runt", "tx_done", "tx_is_poisoned", "refused", "drop_valid",
    "punt_valid", "port_down", "read",
]
SETTLE = 30  # cycles after which all events are in their counters


async def begin(dut):
    zeros = dict.fromkeys([*EVENTS, "rx_bytes", "tx_bytes", "drop", "punt", "read_index"], 0)
    await start(dut, **zeros)
    await cycle(dut, 40)
    return dict.fromkeys(NAMES, 0)


async def read(dut, name):
    dut.read.value, dut.read_index.value = 1, NAMES.index(name)
    await cycle(dut)
    dut.read.value, dut.read_index.value = 0, 31
    await cycle(dut)
    value = int(dut.read_data.value)
    await cycle(dut)
    assert int(dut.read_data.value) == 0, "only what is read is not 0"
    return value


async def check(dut, model):
    await cycle(dut, SETTLE)
    for name in NAMES:
        assert await read(dut, name) == model[name], name


def frame_events(rng, model):
    """Events of one frame, by kind, and what they add."""
    events = {}
    if rng.random() < 0.2:
        events.update(rx_done=1, rx_is_runt=1, rx_bytes=rng.randrange(60))
        model["runts"] += 1
    elif rng.random() < 0.8:
        events.update(rx_done=1, rx_is_runt=0, rx_bytes=rng.randrange(60, 1 << 14))
        model["rx_frames"] += 1
        model["rx_bytes"] += events["rx_bytes"]
    if rng.random() < 0.5:
        events.update(tx_done=1, tx_is_poisoned=rng.randrange(2), tx_bytes=rng.randrange(1 << 14))
        model["tx_frames"] += 1
        model["tx_bytes"] += events["tx_bytes"]
        model["poisoned"] += events["tx_is_poisoned"]
    if rng.random() < 0.5:
        reason = rng.choice([*DROPS])
        events.update(drop_valid=1, drop=reason)
        model[DROPS[reason]] += 1
    elif rng.random() < 0.5:
        reason = rng.choice([*PUNTS])
        events.update(punt_valid=1, punt=reason)
        model[PUNTS[reason]] += 1
    if rng.random() < 0.1:
        events["refused"] = 1
        model["queue_full"] += 1
    if rng.random() < 0.1:
        events["port_down"] = rng.randrange(1 << OUTPUTS)
        model["port_down"] += events["port_down"].bit_count()
    return events


def drive(dut, events):
    for name in EVENTS:
        getattr(dut, name).value = events.get(name, 0)
    for name in ["rx_bytes", "tx_bytes", "drop", "punt"]:
        getattr(dut, name).value = events.get(name, random.randrange(4))


@cocotb.test()
async def every_event_is_counted_once(dut):
    """Frames with all their events in one cycle, 64 cycles apart, and carrier events between."""
    rng = random.Random(cocotb.RANDOM_SEED)
    model = await begin(dut)
    for number in range(600):
        drive(dut, frame_events(rng, model))
        await cycle(dut)
        drive(dut, {})
        for _ in range(21):
            if rng.random() < 0.2:
                dut.no_start.value = 1
                model["no_start"] += 1
            await cycle(dut)
            dut.no_start.value = 0
            await cycle(dut)
            if rng.random() < 0.5:
                dut.read.value = 1
            await cycle(dut)
            dut.read.value = 0
        if number % 100 == 99:
            await check(dut, model)
    assert all(model.values()), model


@cocotb.test()
async def carrier_events_and_fragments_in_a_row_are_counted(dut):
    """Carrier events every other cycle, or fragments every 7, while frames leave."""
    rng = random.Random(cocotb.RANDOM_SEED)
    model = await begin(dut)
    for at in range(4000):
        events = {}
        if at % 2 == 0 and at < 2000:
            events["no_start"] = 1
            model["no_start"] += 1
        if at % 7 == 0 and at >= 2000:
            events.update(rx_done=1, rx_is_runt=1, drop_valid=1, drop=1)
            model["runts"] += 1
            model["bad_fcs"] += 1
        if at % 84 == 0:
            events.update(tx_done=1, tx_is_poisoned=1, tx_bytes=60)
            model["tx_frames"] += 1
            model["tx_bytes"] += 60
            model["poisoned"] += 1
        drive(dut, events)
        await cycle(dut)
    drive(dut, {})
    await check(dut, model)


@cocotb.test()
async def a_frame_is_dropped_and_the_next_refused(dut):
    """A drop one or two cycles before or after a refusal, while runts are counted first."""
    rng = random.Random(cocotb.RANDOM_SEED)
    model = await begin(dut)
    for _ in range(1000):
        refused, runt = rng.randrange(5), rng.randrange(5)
        for at in range(7):
            events = {}
            if at == 2:
                events.update(drop_valid=1, drop=1)
                model["bad_fcs"] += 1
            if at == refused:
                events["refused"] = 1
                model["queue_full"] += 1
            if at == runt:
                events.update(rx_done=1, rx_is_runt=1, no_start=1)
                model["runts"] += 1
                model["no_start"] += 1
            drive(dut, events)
            await cycle(dut)
    drive(dut, {})
    await check(dut, model)


@cocotb.test()
async def counters_carry_and_wrap_and_reset_clears_them(dut):
    model = await begin(dut)
    for _ in range(3):
        dut.rx_done.value, dut.rx_bytes.value = 1, 16383
        await cycle(dut)
        dut.rx_done.value = 0
        await cycle(dut, 7)
        model["rx_frames"] += 1
        model["rx_bytes"] += 16383
    await check(dut, model)
    # Nothing but simulation can wait for 2^32 bytes.
    dut.memory[NAMES.index("rx_bytes")].value = 2**32 - 5
    await cycle(dut)
    dut.rx_done.value, dut.rx_bytes.value = 1, 100
    await cycle(dut)
    dut.rx_done.value = 0
    model.update(rx_frames=4, rx_bytes=95)
    await check(dut, model)
    dut.rst.value = 1
    await cycle(dut, 2)
    dut.rst.value = 0
    await cycle(dut, 40)
    await check(dut, dict.fromkeys(NAMES, 0))


def test_counters():
    bench.run("counters", parameters={"OUTPUTS": OUTPUTS}, tests=__file__)
