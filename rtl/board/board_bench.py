"""Runs the tests of the board's modules with the helper of the device, rtl/device/bench.py."""

import os
import sys
from pathlib import Path

RTL = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(RTL), str(RTL / "device")]

import bench  # noqa: E402
import flow  # noqa: E402


def run(module, tests, **more):
    """Builds a module of rtl/board with all that it instantiates, and runs the cocotb tests."""
    files = flow.sources(module, (flow.DEVICE, flow.BOARD))
    folders = [Path(__file__).parent, RTL, RTL / "device", os.environ.get("PYTHONPATH", "")]
    bench.run(
        module,
        tests=tests,
        extra_sources=flow.modules(flow.BOARD),
        arguments=[str(flow.MODELS)] if flow.uses_cells(files) else [],
        environment={"PYTHONPATH": ":".join(str(folder) for folder in folders)},
        **more,
    )
