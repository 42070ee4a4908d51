"""Runs a control program in this process for a switch in another, whose socket is standard input.

Axon starts it itself, once for each switch: `python -P -m axon.run FILE`.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import sys
import traceback
from pathlib import Path

from ._axon import Remote, SwitchGone
from .plan import Site, site_of
from .program import Program
from .switch import RemoteSwitch

CLASS = "Fabric"
MODULE = "__fabric__"
MEMORY = "AXON_MEMORY_BYTES"


def load(path: Path) -> type[Program]:
    """The class `Fabric` of a file."""
    sys.path.insert(0, str(path.resolve().parent))
    # Under a name of its own: the file may be called as a module of Python is.
    spec = importlib.util.spec_from_file_location(MODULE, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no file of Python: its name ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    fabric = getattr(module, CLASS, None)
    if not (isinstance(fabric, type) and issubclass(fabric, Program)):
        raise TypeError(f"{path} has no class {CLASS}(axon.Program)")
    return fabric


def begin(remote: Remote, path: Path, site: Site) -> Program:
    """The program of a site."""
    fabric = load(path)
    switch = RemoteSwitch(remote, len(site.own.ports), site.own.mac)
    return fabric._create(site, switch)


def serve(remote: Remote, path: Path) -> None:
    """Takes calls until the switch is gone."""
    program: Program | None = None
    while (call := remote.next_call()) is not None:
        kind, now_ns, port, up, frame, place = call
        if place is not None:
            program = begin(remote, path, site_of(place))
            remote.done(None, False)
            continue
        assert program is not None
        program.now_ns = now_ns
        if kind == "start":
            program.start()
        elif kind == "link":
            program.link(port, up)
        elif frame is not None:
            program.receive_packet(port, frame)
        else:
            program.deadline_ns = None
            program.timeout()
        remote.done(program.deadline_ns, program.is_ready)


def limit_memory() -> None:
    """Keeps a program that takes ever more memory from taking its switch with it: beyond the limit
    it gets `MemoryError`, and where memory runs out all the same the kernel ends it first."""
    most = int(os.environ.get(MEMORY, "0"))
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if most > 0 and (hard == resource.RLIM_INFINITY or most < hard):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    try:
        Path("/proc/self/oom_score_adj").write_text("1000")
    except OSError:
        pass  # No such file in this container: the limit holds without it.


def main() -> int:
    """Runs the program that is named on the command line; 1 if it fails."""
    path = Path(sys.argv[1])
    limit_memory()
    remote = Remote()
    with open(os.devnull, "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    try:
        serve(remote, path)
    except SwitchGone:
        return 0
    except BaseException as error:
        node = os.environ.get("AXON_NODE", "a switch")
        sys.stderr.write(f"axon: the program of {node} has ended:\n{traceback.format_exc()}")
        remote.failed(traceback.format_exception_only(error)[-1].strip())
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
