"""A switch: what a program can do with the one that it controls, and one in memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

from ._axon import Change, Entry, EntryName, Explanation, Memory, Remote
from .plan import Site
from .tables import Tables, Transaction

if TYPE_CHECKING:
    from ._axon import Carried, Mac
    from .program import Program

    P = TypeVar("P", bound=Program)


#: How often what a program sends may come back to it before anything else happens.
ROUNDS_MAX = 8
#: The least time until a program's next timeout.
SOONEST_NS = 1000


class _Core(Protocol):
    """What both kinds of switches do alike."""

    def commit(self, changes: Sequence[Change]) -> None: ...
    def read_register(self, name: str) -> int: ...
    def write_register(self, name: str, value: int) -> None: ...
    def read_entry(self, entry: EntryName) -> tuple[int, int]: ...
    def is_up(self, port: int) -> bool: ...


class Control(Tables):
    """What a program can do with its switch."""

    def __init__(self, core: _Core, ports: int, mac: str) -> None:
        self._core = core
        #: How many ports there are; they are numbered from 0.
        self.ports = ports
        #: The address of the switch.
        self.mac = mac

    def change(self, change: Change) -> None:
        """Makes one change."""
        self.commit([change])

    def commit(self, changes: Sequence[Change]) -> None:
        """Makes all changes or none; raises `ChangeError` of the first that cannot be made."""
        self._core.commit(list(changes))

    def transaction(self) -> Transaction:
        """Changes that are made together: `with switch.transaction() as t: t.set_mac(...)`."""
        return Transaction(self.commit)

    def read_register(self, name: str) -> int:
        """Reads a register, as `OUTPUT_QUEUE_BYTES_PORT0`; raises `RegisterError`."""
        return self._core.read_register(name)

    def write_register(self, name: str, value: int) -> None:
        """Writes a register: `CPU_RATE_PORT0` only; raises `RegisterError`."""
        self._core.write_register(name, value)

    def read_entry(self, entry: EntryName) -> tuple[int, int]:
        """Frames and bytes that met an entry since it was set; raises `RegisterError`."""
        return self._core.read_entry(entry)

    def is_up(self, port: int) -> bool:
        """Whether a port has carrier."""
        return self._core.is_up(port)

    def send_packet(self, port: int, frame: bytes) -> None:
        """Sends a frame (without FCS) out of a port, past the tables."""
        raise NotImplementedError

    def inject_packet(self, frame: bytes, ingress: int | None = None) -> None:
        """Sends a frame where the tables say, as if it had come in by `ingress`."""
        raise NotImplementedError

    # The paper's names.
    ReadRegister = read_register
    WriteRegister = write_register

    def SendPacket(self, packet: bytes, port: int) -> None:
        """`send_packet`, with the parameters in the order of the paper."""
        self.send_packet(port, packet)


class RemoteSwitch(Control):
    """The switch of a program that runs in a process of its own."""

    def __init__(self, remote: Remote, ports: int, mac: str) -> None:
        super().__init__(remote, ports, mac)
        self._remote = remote

    def send_packet(self, port: int, frame: bytes) -> None:
        self._remote.send_packet(port, frame)

    def inject_packet(self, frame: bytes, ingress: int | None = None) -> None:
        self._remote.inject_packet(frame, ingress)


class Switch(Control):
    """A switch in memory: frames in, frames out. Its ports have carrier and are infinitely fast."""

    def __init__(
        self,
        ports: int,
        mac: Mac = "02:00:00:00:00:01",
        sizes: Mapping[str, int] | None = None,
        seed: int = 0,
    ) -> None:
        """A switch with empty tables of the paper's sizes, or of `sizes` by the tables' names."""
        self._memory = Memory(ports, mac, sizes or {}, seed)
        super().__init__(self._memory, ports, self._memory.mac)
        self._left: Carried = []
        self._trapped: deque[tuple[int, bytes]] = deque()
        self._program: Program | None = None
        self._deadline_ns: int | None = None

    def run(self, fabric: type[P], site: Site) -> P:
        """Starts a program on this switch, in this process: to try it and to test it."""
        program = fabric._create(site, self)
        self._program = program
        with_carrier = [port for port in range(self.ports) if self.is_up(port)]
        for port in with_carrier:
            self._take(self._memory.set_link(port, False))
        self._call(program.start)
        self._settle()
        for port in with_carrier:
            self.set_link(port, True)
        return program

    def receive(self, port: int, frame: bytes) -> Carried:
        """A frame comes in by a port; answers with what left, and by which port."""
        self._take(self._memory.receive(port, frame))
        return self.take_left()

    def take_left(self) -> Carried:
        """What has left since this was last asked: by which port, and the frame."""
        self._settle()
        left, self._left = self._left, []
        return left

    def send_packet(self, port: int, frame: bytes) -> None:
        self._take(self._memory.send_packet(port, frame))

    def inject_packet(self, frame: bytes, ingress: int | None = None) -> None:
        self._take(self._memory.inject_packet(frame, ingress))

    def recv_packet(self) -> tuple[int, bytes] | None:
        """The next packet that was sent to the control program, and its ingress; `None` if there
        is none. Those for a program that runs here go to that."""
        return self._trapped.popleft() if self._trapped else None

    def set_link(self, port: int, up: bool) -> None:
        """The carrier of a port comes or goes."""
        self._take(self._memory.set_link(port, up))
        if self._program is not None:
            self._call(self._program.link, port, up)
        self._settle()

    @property
    def now_ns(self) -> int:
        """The time of the switch, in nanoseconds from 0."""
        return self._memory.now_ns

    def advance(self, nanoseconds: int) -> None:
        """Time passes; the deadlines of the program that runs here are met."""
        end = self.now_ns + nanoseconds
        while (program := self._program) is not None:
            deadline = self._deadline_ns
            if deadline is None or deadline > end:
                break
            self._memory.advance(max(0, deadline - self.now_ns))
            program.deadline_ns = None
            self._call(program.timeout)
            self._settle()
        self._memory.advance(end - self.now_ns)

    def counts(self) -> dict[str, tuple[int, int]]:
        """By table: its entries, and as many as it holds."""
        return self._memory.counts()

    def dropped(self) -> dict[str, int]:
        """Frames that were dropped, by reason; those that the program got are `consumed`, those that
        came back to it too often `punt_limit`."""
        return self._memory.dropped()

    def entries(self, table: str | None = None) -> list[Entry]:
        """The entries of a table or of all, with their counters."""
        return self._memory.entries(table)

    def explain(self, port: int, frame: bytes) -> Explanation:
        """What a frame that came in by `port` would meet, stage by stage; nothing is counted."""
        return self._memory.explain(port, frame)

    RecvPacket = recv_packet

    def _take(self, outcome: tuple[Carried, Carried]) -> None:
        left, trapped = outcome
        self._left += left
        self._trapped.extend(trapped)
        if self._program is None:
            for port, _ in trapped:
                self._memory.count_trapped(port, True)

    def _call(self, callback: Callable[..., None], *arguments: object) -> None:
        """Calls the program, and takes its deadline."""
        assert self._program is not None
        self._program.now_ns = self.now_ns
        callback(*arguments)
        deadline, soonest = self._program.deadline_ns, self.now_ns + SOONEST_NS
        self._deadline_ns = None if deadline is None else max(deadline, soonest)

    def _settle(self) -> None:
        """Gives the program what is for it. What it injects may come back to it, but not for ever:
        of the last round nothing does."""
        if self._program is None:
            return
        rounds = 0
        while self._trapped:
            rounds += 1
            for _ in range(len(self._trapped)):
                port, frame = self._trapped.popleft()
                self._memory.count_trapped(port, rounds <= ROUNDS_MAX)
                if rounds <= ROUNDS_MAX:
                    self._call(self._program.receive_packet, port, frame)
