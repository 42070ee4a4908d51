"""The control program of one switch."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Self

from .plan import Site

if TYPE_CHECKING:
    from .switch import Control


class Program:
    """The control program of one switch: each switch of a fabric has one, in a process of its own.

    A fabric file names a file in Python with a subclass `Fabric`. `site` and `switch` are there
    before `__init__`. The switch can be used only while one of the callbacks runs: the answer to it
    is sent when that returns. An exception ends the program, and its switch goes on with the tables
    that it has.
    """

    #: The network, and the place of this program in it.
    site: Site
    #: The switch that it controls.
    switch: Control
    #: The time of this callback, in nanoseconds from the start of the switch.
    now_ns: int
    #: When to call `timeout`, once; cleared before that. A microsecond from now at the soonest.
    deadline_ns: int | None
    #: Whether the switch can carry what hosts send: a simulation waits for that before traffic.
    is_ready: bool
    #: Random numbers that are the same whenever the same seed is run.
    random: random.Random

    def start(self) -> None:
        """The switch begins: its tables are empty, its ports without carrier."""

    def link(self, port: int, up: bool) -> None:
        """The carrier of a port came or went."""

    def receive_packet(self, port: int, frame: bytes) -> None:
        """The switch has sent a packet here, which came in by `port`."""

    def timeout(self) -> None:
        """The deadline has passed."""

    @classmethod
    def _create(cls, site: Site, switch: Control) -> Self:
        program = cls.__new__(cls)
        program.site = site
        program.switch = switch
        program.now_ns = 0
        program.deadline_ns = None
        program.is_ready = True
        program.random = random.Random(site.seed)
        program.__init__()  # type: ignore[misc]
        return program
