"""The plan of a network: what every program of its switches knows from the start."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._axon import PlainPlace


@dataclass(frozen=True, slots=True)
class Shape:
    """The topology: `other`, `fat_tree` (k), `bcube` (n, k) or `dcell` (n, k)."""

    name: str = "other"
    n: int = 0
    k: int = 0


@dataclass(frozen=True, slots=True)
class Port:
    """A port and what is at its other end: a node and the port there, or a host, or nothing."""

    number: int
    node: int | None = None
    node_port: int | None = None
    host: int | None = None
    rate_bits_per_second: int = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Node:
    """A switch, or a server that forwards."""

    name: str
    mac: str
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class Host:
    """A host: its addresses, and the node and the port that it is at."""

    name: str
    mac: str
    ip: str
    node: int
    port: int


@dataclass(frozen=True, slots=True)
class Plan:
    """A whole network. Nodes and hosts are numbered from 0."""

    nodes: tuple[Node, ...]
    hosts: tuple[Host, ...]
    prefix_len: int = 24
    shape: Shape = Shape()


@dataclass(frozen=True, slots=True)
class Site:
    """The place of one program in its network."""

    plan: Plan
    #: The node that the program controls.
    node: int = 0
    #: Makes its random choices others than those of other nodes and other runs.
    seed: int = 0

    @property
    def own(self) -> Node:
        """The node that the program controls."""
        return self.plan.nodes[self.node]

    @property
    def ports(self) -> tuple[Port, ...]:
        """Its ports."""
        return self.own.ports

    @property
    def hosts(self) -> list[Host]:
        """The hosts at its ports."""
        return [host for host in self.plan.hosts if host.node == self.node]

    @property
    def neighbours(self) -> list[tuple[int, int]]:
        """Its ports to other nodes, each with the node there."""
        return [(port.number, port.node) for port in self.ports if port.node is not None]


def site_of(place: PlainPlace) -> Site:
    """The place of a program, from what the switch has sent."""
    (shape, n, k), nodes, hosts, prefix_len, node, seed = place
    plan = Plan(
        nodes=tuple(
            Node(
                name,
                mac,
                tuple(
                    Port(
                        number,
                        node=None if there is None else there[0],
                        node_port=None if there is None else there[1],
                        host=host,
                        rate_bits_per_second=rate,
                    )
                    for number, (there, host, rate) in enumerate(ports)
                ),
            )
            for name, mac, ports in nodes
        ),
        hosts=tuple(Host(*host) for host in hosts),
        prefix_len=prefix_len,
        shape=Shape(shape, n, k),
    )
    return Site(plan, node, seed)


def mac_bytes(mac: str) -> bytes:
    """A MAC as the six bytes that stand in a frame."""
    return bytes.fromhex(mac.replace(":", ""))


def mac_text(mac: bytes) -> str:
    """Six bytes of a frame as a MAC: `02:00:00:00:00:01`."""
    return mac.hex(":")
