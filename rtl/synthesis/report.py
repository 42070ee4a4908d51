"""Shared by synthesis/ecp5 and synthesis/xc7: Yosys, limits, and the report."""

import sys
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import flow  # noqa: E402

REPORT = flow.BUILD / "synthesis.json"


def limits(part):
    """The limits of a part, from limits.toml."""
    return tomllib.loads((Path(__file__).parent / "limits.toml").read_text())[part]


def read(module, parameters):
    """The command of Yosys that reads a module, its parts and parameters.

    It is slang, not `read_verilog`, which takes an element of a packed array of structs for a bit.
    """
    values = " ".join(f"-G {name}={value}" for name, value in parameters.items())
    folders = {flow.DEVICE, *(path.parent for path in flow.RTL.glob(f"*/{module}.sv"))}
    return flow.slang(module, flow.sources(module, folders), values)


def parameter(text):
    """NAME=NUMBER as a pair."""
    name, _, value = text.partition("=")
    return name, int(value)


def parser(description):
    """The arguments that both parts have."""
    found = flow.parser(description)
    found.add_argument("--module", default="axon_device", help="top module (default axon_device)")
    found.add_argument(
        "--parameter", type=parameter, action="append", default=[], metavar="NAME=NUMBER"
    )
    return found


def name_of(arguments):
    """The name of a run: module and parameters."""
    return arguments.module + "".join(f"-{name}-{value}" for name, value in arguments.parameter)


def run(job):
    """Runs a job and ends the program if it fails."""
    if flow.run_jobs([job]):
        sys.exit(f"{job.name} failed")


def conclude(part, arguments, figures, rows):
    """Prints and stores the figures; fails if one misses its limit.

    A row is (name, value, unit, "max" or "min" or "", limit).
    """
    missed = []
    cells = []
    for name, value, unit, kind, limit in rows:
        is_met = {"max": lambda: value <= limit, "min": lambda: value >= limit}.get(kind, bool)()
        if kind and not is_met:
            missed.append(f"{name} is {value:g}{unit}, limit {limit:g}{unit}")
        words = {"max": f"at most {limit:g}", "min": f"at least {limit:g}"}.get(kind, "")
        state = ("ok" if is_met else "MISSED") if kind else ""
        cells.append((name, f"{value:g}{unit}", words, state))
    print(f"\n{part}: {name_of(arguments)}")
    flow.table(("figure", "value", "limit", ""), cells)
    flow.build_directory()
    flow.store(REPORT, f"{part} {name_of(arguments)}", figures)
    print(f"written to {REPORT.relative_to(flow.ROOT)}")
    if arguments.module != "axon_device" or arguments.parameter:
        print("limits are those of axon_device with its default parameters: not applied")
    elif missed:
        sys.exit("limits missed: " + "; ".join(missed))
