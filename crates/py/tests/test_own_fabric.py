"""The fabric of the documentation, on four switches in memory that are joined in a ring."""

import importlib.util
import unittest
from collections import deque
from pathlib import Path
from types import ModuleType

import axon

SWITCHES = 4
HOSTS = 2


def load() -> ModuleType:
    path = Path(__file__).parents[3] / "scenarios" / "own_fabric.py"
    spec = importlib.util.spec_from_file_location("own_fabric", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def ring() -> axon.Plan:
    """Ports 0 and 1 of each switch have hosts; port 2 leads to the next switch's port 3."""
    nodes, hosts = [], []
    for node in range(SWITCHES):
        ports = [axon.Port(port, host=node * HOSTS + port) for port in range(HOSTS)]
        ports.append(axon.Port(2, node=(node + 1) % SWITCHES, node_port=3))
        ports.append(axon.Port(3, node=(node - 1) % SWITCHES, node_port=2))
        nodes.append(axon.Node(f"s{node + 1}", f"02:00:00:00:00:{node + 1:02x}", tuple(ports)))
        for port in range(HOSTS):
            number = node * HOSTS + port + 1
            mac, ip = f"02:00:00:00:01:{number:02x}", f"10.0.0.{number}"
            hosts.append(axon.Host(f"h{number}", mac, ip, node, port))
    return axon.Plan(tuple(nodes), tuple(hosts))


class Network:
    """Switches, and what is on its way between them."""

    def __init__(self) -> None:
        self.plan = ring()
        fabric = load().Fabric
        self.switches = [axon.Switch(ports=4, mac=node.mac) for node in self.plan.nodes]
        self.cut: set[tuple[int, int]] = set()
        self.received: list[tuple[str, bytes]] = []
        for node, switch in enumerate(self.switches):
            switch.run(fabric, axon.Site(self.plan, node))
        self.settle()

    def settle(self) -> None:
        ahead = deque(range(SWITCHES))
        while ahead:
            node = ahead.popleft()
            for port, frame in self.switches[node].take_left():
                self.carry(node, port, frame)
                ahead.extend(range(SWITCHES))

    def carry(self, node: int, port: int, frame: bytes) -> None:
        end = self.plan.nodes[node].ports[port]
        if end.host is not None:
            self.received.append((self.plan.hosts[end.host].name, frame))
        elif end.node is not None and end.node_port is not None and (node, port) not in self.cut:
            switch = self.switches[end.node]
            for egress, left in switch.receive(end.node_port, frame):
                self.carry(end.node, egress, left)

    def take_down(self, node: int) -> None:
        """The link from a switch to the next fails."""
        there = (node + 1) % SWITCHES
        self.cut |= {(node, 2), (there, 3)}
        self.switches[node].set_link(2, False)
        self.switches[there].set_link(3, False)
        self.settle()

    def send(self, sender: axon.Host, to: axon.Host) -> list[str]:
        """The hosts that a frame comes to."""
        self.received.clear()
        frame = axon.mac_bytes(to.mac) + axon.mac_bytes(sender.mac) + b"\x88\xb6" + bytes(46)
        for egress, left in self.switches[sender.node].receive(sender.port, frame):
            self.carry(sender.node, egress, left)
        return [name for name, _ in self.received]


class TestOwnFabric(unittest.TestCase):
    def test_all_hosts_reach_each_other_also_around_a_failed_link(self) -> None:
        network = Network()
        pairs = [(a, b) for a in network.plan.hosts for b in network.plan.hosts if a is not b]
        self.assertEqual(len(pairs), 56)
        for cut in (None, 0):
            if cut is not None:
                network.take_down(cut)
            for sender, to in pairs:
                self.assertEqual(network.send(sender, to), [to.name], (cut, sender.name))

    def test_hosts_behind_a_second_failure_are_taken_out_of_the_tables(self) -> None:
        network = Network()
        network.take_down(0)
        network.take_down(1)  # the second switch is alone now
        hosts = network.plan.hosts
        self.assertEqual(network.send(hosts[0], hosts[2]), [])
        self.assertEqual(network.send(hosts[0], hosts[4]), [hosts[4].name])
        self.assertEqual(network.send(hosts[2], hosts[3]), [hosts[3].name])


if __name__ == "__main__":
    unittest.main()
