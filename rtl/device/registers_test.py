"""Tests of registers.sv: the whole address space against registers.toml."""

import random
import tomllib
from pathlib import Path

import bench
import cocotb
from bench import cycle, start

PORTS, ROUTES = 3, 16
PARAMETERS = {"PORTS": PORTS, "HOP_BITS": 16, "BUFFER_BYTES": 4096, "ROUTES": ROUTES}
OUTPUTS = {"kind": "kinds", "is_stored": "stores_frames"}  # others have the name of the register

with open(Path(__file__).parents[1] / "registers.toml", "rb") as file:
    MAP = tomllib.load(file)
BLOCK = MAP["block"]
SETTINGS = [register for register in MAP["port"] if register["access"] == "read_write"]


def width(register):
    bits = max(1, register["max"].bit_length())
    return min(bits, ROUTES) if register["name"] in ("valid", "by_source") else bits


def settings(dut, port):
    """Values of the outputs of a port."""
    values = {}
    for register in SETTINGS:
        name, bits = register["name"], width(register)
        output = int(getattr(dut, OUTPUTS.get(name, name)).value)
        values[name] = output >> port * bits & (1 << bits) - 1
    return values


async def begin(dut):
    await start(
        dut, reg_address=0, reg_write=0, reg_write_data=0, reg_read=0, ups=0, head_first=0,
        counter_data=0,
    )


async def write(dut, address, data):
    dut.reg_address.value, dut.reg_write_data.value, dut.reg_write.value = address, data, 1
    await cycle(dut)
    dut.reg_write.value, dut.reg_address.value = 0, 0xFFFF
    dut.reg_write_data.value = 0xFFFFFFFF


async def read(dut, address):
    dut.reg_address.value, dut.reg_read.value = address, 1
    await cycle(dut)
    dut.reg_address.value, dut.reg_read.value = 0xFFFF, 0
    await cycle(dut)
    return int(dut.reg_read_data.value)


@cocotb.test()
async def every_setting_goes_to_its_output_and_reads_back(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    await begin(dut)
    defaults = {register["name"]: register["default"] for register in SETTINGS}
    model = [dict(defaults) for _ in range(PORTS)]
    for _ in range(300):
        port, register = rng.randrange(PORTS), rng.choice(SETTINGS)
        data = rng.getrandbits(32)
        await write(dut, (port + 1) * BLOCK + register["offset"], data)
        model[port][register["name"]] = data & (1 << width(register)) - 1
        await cycle(dut)
        for at in range(PORTS):
            assert settings(dut, at) == model[at]
        port, register = rng.randrange(PORTS), rng.choice(SETTINGS)
        found = await read(dut, (port + 1) * BLOCK + register["offset"])
        assert found == model[port][register["name"]], register["name"]
    # A read in the cycle after a write.
    await write(dut, BLOCK + MAP["port"][0]["offset"], 2)
    assert await read(dut, BLOCK + MAP["port"][0]["offset"]) == 2


@cocotb.test()
async def all_other_addresses_do_nothing(dut):
    """Writes everywhere but to the settings, reads everywhere: settings stay, strobes are of the
    tables only, data are of registers only."""
    rng = random.Random(cocotb.RANDOM_SEED)
    await begin(dut)
    version = next(r["value"] for r in MAP["device"] if r["name"] == "version")
    parameters = {"magic": 0x41584F4E, "version": version, "ports": PORTS, "hop_bits": 16,
                  "buffer_bytes": 4096, "routes": ROUTES, "time_high": 0x01234567,
                  "time_low": 0x89ABCDEF}
    dut.time_now.value = 0x0123456789ABCDEF
    known = {register["offset"]: parameters[register["name"]] for register in MAP["device"]}
    tables = {}
    for port in range(PORTS):
        for register in MAP["port"]:
            known[(port + 1) * BLOCK + register["offset"]] = register.get("default", 0)
        for table in MAP["table"]:
            for at in range(table["length"]):
                tables[(port + 1) * BLOCK + table["offset"] + at] = (table["name"], port, at)
    addresses = {*known, *tables, *rng.sample(range(1 << 16), 1000)}
    addresses |= {block * BLOCK + at for block in range(16) for at in (*range(0xC0), BLOCK - 1)}
    blocks = [(port + 1) * BLOCK for port in range(PORTS)]
    writable = {block + register["offset"] for block in blocks for register in SETTINGS}
    for address in sorted(addresses - writable):
        data = rng.getrandbits(32)
        await write(dut, address, data)
        strobes = []
        for table in MAP["table"]:
            mask = int(getattr(dut, f"{table['name']}_write").value)
            strobes += [(table["name"], port) for port in range(PORTS) if mask >> port & 1]
        times = [int(getattr(dut, f"time_{half}_write").value) for half in ("high", "low")]
        names = {r["offset"]: r["name"] for r in MAP["device"]}
        assert times == [names.get(address) == f"time_{half}" for half in ("high", "low")]
        expected = tables.get(address)
        assert strobes == ([expected[:2]] if expected else []), hex(address)
        if expected:
            length = next(t["length"] for t in MAP["table"] if t["name"] == expected[0])
            assert int(dut.write_address.value) % length == expected[2]
            if expected[0] == "memory":  # a byte, four times
                data = (data & 0xFF) * 0x01010101
            assert int(dut.write_data.value) == data
    await cycle(dut)
    for port in range(PORTS):
        assert settings(dut, port) == {r["name"]: r["default"] for r in SETTINGS}
    dut.ups.value = 0b101
    for address in sorted(addresses):
        expected = known.get(address, 0)
        if address in [BLOCK + MAP["port"][1]["offset"], 3 * BLOCK + MAP["port"][1]["offset"]]:
            expected = 1
        assert await read(dut, address) == expected, hex(address)


@cocotb.test()
async def counters_are_read_through(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    await begin(dut)
    for _ in range(200):
        block, at = rng.randrange(PORTS + 1), rng.randrange(MAP["counters"]["length"])
        dut.reg_address.value = block * BLOCK + MAP["counters"]["offset"] + at
        dut.reg_read.value = 1
        await bench.settle()
        assert int(dut.counter_read.value) == 1 << block
        assert int(dut.counter_index.value) == at
        await cycle(dut)
        dut.reg_read.value = 0
        await cycle(dut)
        value = rng.getrandbits(32)
        dut.counter_data.value = value << 32 * block
        await bench.settle()
        assert int(dut.reg_read_data.value) == value
        dut.counter_data.value = 0
    dut.reg_read.value = 0
    await bench.settle()
    assert int(dut.counter_read.value) == 0


@cocotb.test()
async def a_row_waits_for_the_end_of_a_lookup(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    await begin(dut)
    row = next(table for table in MAP["table"] if table["name"] == "row")
    waited = 0
    for _ in range(300):
        port, at, data = rng.randrange(PORTS), rng.randrange(row["length"]), rng.getrandbits(32)
        starts = [rng.randrange(-12, 16) for _ in range(PORTS)]  # of a frame at each port
        writes = []
        for now in range(-12, 30):
            dut.head_first.value = sum(1 << of for of, begins in enumerate(starts) if begins == now)
            dut.reg_write.value = int(now == 0)
            dut.reg_address.value = (port + 1) * BLOCK + row["offset"] + at if now == 0 else 0
            dut.reg_write_data.value = data if now == 0 else 0
            await bench.settle()
            if strobes := int(dut.row_write.value):
                assert strobes == 1 << port and int(dut.write_address.value) % 512 == at
                assert int(dut.write_data.value) == data
                writes.append(now)
            await cycle(dut)
        busy = range(starts[port], starts[port] + 12)
        expected = next(now for now in range(1, 30) if now not in busy)
        assert writes == [expected], (starts, writes)
        waited += expected > 1
    assert waited > 50
    # A write behind it forces it.
    dut.head_first.value = 1
    await write(dut, BLOCK + row["offset"], 1)
    dut.head_first.value = 0
    dut.reg_address.value, dut.reg_write.value = BLOCK, 1
    await bench.settle()
    assert int(dut.row_write.value) == 1


def test_registers():
    bench.run("registers", parameters=PARAMETERS, tests=__file__)
