"""Agents: programs beside a switch that look at its packets."""

from __future__ import annotations

import time
from os import PathLike

from ._axon import AgentClient, Packet, Payload

#: The longest wait, in seconds, after which `run_agent` looks at whether it is to end.
WAIT_MAX_S = 1.0


class Agent:
    """A program beside a switch that looks at its packets; `run_agent` runs it.

    Each packet must be decided on once, now or later: forwarded, dropped or replaced. One that is
    not decided on is held, and takes a payload buffer until the switch takes it back (`hold_max`).
    The switch sees what a callback has decided when that returns. An exception ends the agent: what
    it holds is lost, and its port has no carrier until an agent attaches again.
    """

    #: The end of the agent port: it sends frames of the agent's own.
    client: AgentClient
    #: The time of this callback, in nanoseconds; never goes back.
    now_ns: int = 0
    #: When to call `handle_timeout`, once; cleared before that.
    deadline_ns: int | None = None
    #: Set by `stop`.
    is_stopped: bool = False

    def start(self) -> None:
        """The agent is attached."""

    def handle_packets(self, batch: list[Packet]) -> None:
        """Packets have come, in their order. Sends them on, unless a subclass does otherwise."""
        for packet in batch:
            packet.forward()

    def handle_payload(self, payload: Payload) -> None:
        """A part of a packet has come that was fetched. The packet is still held."""

    def handle_timeout(self) -> None:
        """The deadline has passed."""

    def stop(self) -> None:
        """Ends `run_agent` soon; may be called by a signal handler."""
        self.is_stopped = True


def run_agent(
    agent: Agent,
    socket: str | PathLike[str],
    name: str | None = None,
    *,
    batch: int = 64,
    spin_us: int = 20,
) -> None:
    """Attaches an agent to a switch and runs it until it stops.

    `socket` is that of an agent port, `name` what the switch calls the agent: its class, if none is
    given. `batch` packets are handled before the switch sees the answers. The agent looks for
    packets for `spin_us` before it sleeps: longer is faster, and takes a CPU.

    Raises `NoSwitchError` or `RefusedError` if it cannot be attached, `SwitchGone` when the switch
    has ended the attachment, `ProtocolError` if the switch writes what cannot be.
    """
    with AgentClient(socket, name or type(agent).__name__) as client:
        agent.client = client
        agent.now_ns = time.monotonic_ns()
        agent.start()
        while not agent.is_stopped:
            packets, payloads = client.receive(batch)
            agent.now_ns = now_ns = time.monotonic_ns()
            if packets:
                agent.handle_packets(packets)
            for payload in payloads:
                agent.handle_payload(payload)
            is_due = agent.deadline_ns is not None and agent.deadline_ns <= now_ns
            if is_due:
                agent.deadline_ns = None
                agent.handle_timeout()
            if packets or payloads:
                client.flush()
            else:
                # This flushes, too, and sees whether the switch has gone.
                wait_s = WAIT_MAX_S
                if agent.deadline_ns is not None:
                    wait_s = min(wait_s, max(agent.deadline_ns - now_ns, 0) / 1e9)
                client.wait(wait_s, spin_us)
