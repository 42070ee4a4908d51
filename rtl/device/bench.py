"""Shared by the tests of the device: builds a module with Verilator and runs its cocotb tests.

A test file ends with

    def test_forward():
        bench.run("forward", parameters={"HOP_BITS": 16}, tests=__file__)

A cocotb test drives inputs, then awaits `cycle(dut)`: the rising edge has passed, registers show
their new values. Outputs that depend on inputs of the same cycle need `settle()` after driving.

Environment: AXON_SEED is the seed of the random numbers (default 1), AXON_WAVES=1 writes
dump.vcd into the build directory, AXON_ONLY is a regular expression on the names of cocotb tests.
"""

import os
import re
import zlib
from pathlib import Path

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from cocotb_tools import runner as cocotb_runner
from cocotb_tools.check_results import get_results

DEVICE = Path(__file__).resolve().parent
BUILD = DEVICE.parent / "build"


# Building and running.


def sources(module, extra_sources=()):
    """Files of `module` and of all that it instantiates, in dependency order.

    `extra_sources` are files outside rtl/device, as a top that only a test has.
    """
    files = {path.stem: path for path in [*DEVICE.glob("*.sv"), *map(Path, extra_sources)]}
    ordered = {}

    def visit(name):
        if name in ordered:
            return
        text = re.sub(r"//.*|/\*(?s:.*?)\*/", "", files[name].read_text())
        for other in sorted(files):
            instance = rf"^\s*{other}\s*(#\s*\(|\w+\s*\()"
            if other != name and (
                re.search(instance, text, re.M) or re.search(rf"\b{other}::", text)
            ):
                visit(other)
        ordered[name] = files[name]

    visit(module)
    return list(ordered.values())


def build_directory(name):
    """Directory below rtl/build, which Git ignores."""
    BUILD.mkdir(exist_ok=True)
    (BUILD / ".gitignore").write_text("*\n")
    path = BUILD / name
    path.mkdir(exist_ok=True)
    return path


def run(module, parameters={}, tests=None, arguments=(), extra_sources=(), environment={}):
    """Builds `module` and runs the cocotb tests of the file `tests`; fails if one fails."""
    suffix = "".join(f"-{key}-{value}" for key, value in sorted(parameters.items()))
    build = build_directory(module + suffix)
    waves = os.environ.get("AXON_WAVES") == "1"
    seed = os.environ.get("AXON_SEED", "1")
    cocotb_runner.MAX_PARALLEL_BUILD_JOBS = 1
    runner = cocotb_runner.get_runner("verilator")
    runner.build(
        sources=[DEVICE / "lint.vlt", *sources(module, extra_sources)],
        hdl_toplevel=module,
        parameters=parameters,
        build_args=["-Wall", "-j", "1", "-O3", "--x-initial", "unique", *arguments],
        build_dir=build,
        always=True,
        waves=waves,
        timescale=("1ns", "1ps"),
    )
    print(f"{module}: AXON_SEED={seed}")
    results = runner.test(
        test_module=Path(tests).stem,
        hdl_toplevel=module,
        build_dir=build,
        test_dir=build,
        seed=seed,
        waves=waves,
        test_filter=os.environ.get("AXON_ONLY"),
        extra_env={
            "PYTHONPATH": f"{DEVICE}:{os.environ.get('PYTHONPATH', '')}",
            "COCOTB_ANSI_OUTPUT": "0",
            **environment,
        },
    )
    count, failed = get_results(results)
    assert count > 0 and failed == 0, f"{failed} of {count} cocotb tests failed"


# Inside a cocotb test.


async def cycle(dut, count=1):
    """Waits for `count` falling edges of clk: the registers of a rising edge are visible."""
    for _ in range(count):
        await FallingEdge(dut.clk)


async def settle():
    """Lets combinational outputs follow inputs that have just been driven."""
    await Timer(1, "ns")


async def start(dut, **inputs):
    """Starts the clock of 125 MHz, sets inputs to the given values, and resets for 4 cycles."""
    for name, value in inputs.items():
        getattr(dut, name).value = value
    dut.rst.value = 1
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    await cycle(dut, 4)
    dut.rst.value = 0
    await cycle(dut)


# Frames: bytes without preamble and FCS, unless it is said otherwise.


def fcs(frame):
    """The four bytes of FCS of `frame`."""
    return zlib.crc32(bytes(frame)).to_bytes(4, "little")


def on_wire(frame, preamble=7):
    """Bytes of `frame` on GMII: preamble, SFD, the frame, FCS. It is not padded."""
    return b"\x55" * preamble + b"\xd5" + bytes(frame) + fcs(frame)


def random_frame(random, bytes_min=60, bytes_max=1518):
    """A frame of random bytes and of random length, with short ones as likely as long ones."""
    limit = random.choice([bytes_min + 8, bytes_max, bytes_max])
    return random.randbytes(random.randint(bytes_min, max(bytes_min, min(limit, bytes_max))))


def symbols(frame, is_bad=False):
    """`frame` as values of axon::symbol_t, the end included."""
    return [*frame, 0x100 | int(is_bad)]


def frames_of(stream):
    """Frames in a list of values of axon::symbol_t, as pairs (bytes, is_bad)."""
    frames, frame = [], bytearray()
    for symbol in stream:
        if symbol & 0x100:
            frames.append((bytes(frame), bool(symbol & 1)))
            frame = bytearray()
        else:
            frame.append(symbol & 0xFF)
    assert not frame, f"{len(frame)} bytes without an end"
    return frames
