"""Shared by the scripts of the RTL flow: the modules, jobs side by side, tables.

Everything that is built is below rtl/build. A job is a command with a log; it is shown in one line
when it ends, and the last lines of its log too when it fails.
"""

import argparse
import concurrent.futures
import json
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

RTL = Path(__file__).resolve().parent
ROOT = RTL.parent
BUILD = RTL / "build"
DEVICE = RTL / "device"
BOARD = RTL / "board"
# Cells of the ECP5 that the board uses, and models of them for simulation.
CELLS = ("IDDRX1F", "ODDRX1F", "DELAYG", "EHXPLLL")
MODELS = BOARD / "ecp5_primitives.sv"
# Where rtl/setup has put the tools; VENV is another place.
VENV = Path(os.environ.get("VENV", ROOT / "target" / "rtl-venv"))
os.environ["PATH"] = f"{VENV / 'bin'}:{os.environ['PATH']}"
# Lines of a log that are shown when its job has failed.
LOG_LINES = 30


def is_package(path):
    """Whether a file has a package, not a module."""
    return re.search(r"^package\b", path.read_text(), re.M) is not None


def files(folder=DEVICE):
    """All packages and modules of a folder; models of cells are none."""
    return sorted(path for path in folder.glob("*.sv") if path != MODELS)


def modules(folder=DEVICE):
    """Files of a folder with a module each."""
    return [path for path in files(folder) if not is_package(path)]


def slang(module, paths, options=""):
    """Commands of Yosys that read a module and all its files with slang.

    Cells of the ECP5 are black boxes to it, with the ports of the models; then the boxes are
    deleted, so that synthesis finds its own cells of that name.
    """
    words = " ".join(relative(path) for path in paths)
    boxes, drop = "", ""
    if uses_cells(paths):
        boxes = " ".join(f"--blackboxed-module {cell}" for cell in CELLS)
        words += f" {relative(MODELS)}"
        drop = "; delete =A:blackbox"
    return f"read_slang -j 1 --top {module} {options} {boxes} {words}{drop}"


def uses_cells(paths):
    """Whether one of the files instantiates a cell of the ECP5."""
    pattern = rf"^\s*({'|'.join(CELLS)})\b"
    return any(re.search(pattern, path.read_text(), re.M) for path in paths)


def build_directory(*names):
    """A folder below rtl/build, made if it is not there; Git ignores all of it."""
    path = BUILD.joinpath(*names)
    path.mkdir(parents=True, exist_ok=True)
    (BUILD / ".gitignore").write_text("*\n")
    return path


def relative(path):
    """A path as seen from rtl/, where all jobs run: Yosys takes no names with a space."""
    return str(Path(path).relative_to(RTL))


def parser(description):
    """A parser of arguments that shows the doc of the script as it is."""
    return argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def tail(text, lines=None):
    """The last lines of a text, each with a margin, without what SymbiYosys puts before them."""
    shown = [re.sub(r"^SBY [\d:]+ \[.*?\] ", "", line) for line in text.splitlines()[-(lines or LOG_LINES):]]
    return "".join(f"    | {line}\n" for line in shown)


class Job:
    """A command, the file of its output, and after the run: status and seconds."""

    def __init__(self, name, command, log, cwd=RTL, environment=None):
        self.name, self.command, self.log, self.cwd = name, command, Path(log), cwd
        self.environment = environment or {}
        self.status, self.seconds = None, 0.0

    def run(self):
        """Runs the command to its end. Returns the job."""
        if shutil.which(self.command[0]) is None:
            sys.exit(f"{self.command[0]} is not there; rtl/setup installs it")
        began = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with self.log.open("w") as log:
            self.status = subprocess.run(
                [str(word) for word in self.command],
                cwd=self.cwd,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                check=False,
            ).returncode
        self.seconds = time.monotonic() - began
        return self

    def text(self):
        """The output of the command."""
        return self.log.read_text(errors="replace")


def run_jobs(jobs, parallel=1, verdict=None):
    """Runs jobs, `parallel` at a time, and shows each when it ends.

    `verdict(job)` gives (is_good, words); without it a job is good when its command succeeds.
    Returns the jobs that are not good, in the order in which they ended.
    """
    verdict = verdict or (lambda job: (job.status == 0, "ok" if job.status == 0 else "FAILED"))
    width = max((len(job.name) for job in jobs), default=0)
    failed = []
    with concurrent.futures.ThreadPoolExecutor(parallel) as pool:
        futures = [pool.submit(job.run) for job in jobs]
        try:
            for count, future in enumerate(concurrent.futures.as_completed(futures), start=1):
                job = future.result()
                is_good, words = verdict(job)
                place = f"[{count}/{len(jobs)}]"
                print(f"{place:>8} {job.name:{width}} {job.seconds:6.1f} s  {words}", flush=True)
                if not is_good:
                    failed.append(job)
                    print(f"{tail(job.text())}    | whole log: {job.log}", flush=True)
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    return failed


def finish(failed, total, kind):
    """Ends the program: with 0 if nothing has failed."""
    if failed:
        sys.exit(f"{len(failed)} of {total} {kind} failed: {', '.join(job.name for job in failed)}")
    print(f"all {total} {kind} passed")


def table(head, rows):
    """Prints a table with a head; numbers are aligned to the right."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    numeric = [
        all(re.fullmatch(r"[-+<>=]*[\d.,]+( ?[%a-zA-Z]+)?|-?", row[column]) for row in rows)
        for column in range(len(head))
    ]
    for row in [head, ["-" * width for width in widths], *rows]:
        cells = [
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, numeric)
        ]
        print("  ".join(cells).rstrip())


def store(path, key, value):
    """Sets one key of a JSON file, which is made if it is not there."""
    found = json.loads(path.read_text()) if path.exists() else {}
    found[key] = value
    path.write_text(json.dumps(found, indent=2, sort_keys=True) + "\n")


def sources(module, folders=(DEVICE,)):
    """Files of a module and of all that it instantiates; the packages that they use first."""
    found = {path.stem: path for folder in folders for path in files(folder)}
    if module not in found:
        sys.exit(f"no module {module} in {', '.join(str(folder) for folder in folders)}")
    ordered = {}

    def visit(name):
        if name in ordered:
            return
        ordered[name] = None
        text = re.sub(r"//.*|/\*(?s:.*?)\*/", "", found[name].read_text())
        for other in sorted(found):
            pattern = rf"^\s*{other}\s*(#\s*\(|\w+\s*\()|\b{other}::"
            if other != name and re.search(pattern, text, re.M):
                visit(other)
        ordered.pop(name)  # what it uses comes before it
        ordered[name] = found[name]

    visit(module)
    ordered = list(ordered.values())
    return sorted(ordered, key=lambda path: not is_package(path))
