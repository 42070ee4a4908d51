"""Shortest paths by MAC tables, around links that have failed.

Every switch knows the plan of the network. What it does not know is which links are up: each
switch floods that to the others, in frames of its own, and computes its way to every host.
"""

import struct

import axon

TYPE = 0x88B5  # the EtherType for experiments (IEEE 802)
HEADER = struct.Struct("!6s6sHHIH")  # destination, source, type, origin, version, ports that are up
REFRESH_NS = 1_000_000_000


class Fabric(axon.Program):
    def __init__(self) -> None:
        plan = self.site.plan
        self.macs = {host.ip: host.mac for host in plan.hosts}
        # By switch: the ports that are up, and the version of that. Links of others are taken for
        # up until their switches say otherwise.
        self.up = [{port.number for port in node.ports} for node in plan.nodes]
        self.up[self.site.node] = set()
        self.versions = [0 for _ in plan.nodes]
        self.entries: dict[str, int] = {}

    def start(self) -> None:
        with self.switch.transaction() as t:
            t.set_mac("ff:ff:ff:ff:ff:ff", axon.Action.cpu())  # what hosts ask by ARP
            t.set_mac(self.switch.mac, axon.Action.cpu())  # what other switches flood
        self.deadline_ns = self.now_ns + REFRESH_NS

    def link(self, port: int, up: bool) -> None:
        own = self.up[self.site.node]
        if up:
            own.add(port)
        else:
            own.discard(port)
        self.reroute()
        self.advertise()
        if up and self.site.ports[port].node is not None:
            for origin in range(len(self.up)):
                self.send(port, origin)

    def timeout(self) -> None:
        self.advertise()  # in case that a frame was lost
        self.deadline_ns = self.now_ns + REFRESH_NS

    def receive_packet(self, port: int, frame: bytes) -> None:
        answer = axon.arp_answer(frame, self.macs)
        if answer is not None:
            self.switch.send_packet(port, answer)
        elif len(frame) >= HEADER.size and frame[12:14] == TYPE.to_bytes(2):
            self.learn(port, frame)

    def advertise(self) -> None:
        """Floods which ports are up here."""
        self.versions[self.site.node] += 1
        self.flood(self.site.node)

    def learn(self, ingress: int, frame: bytes) -> None:
        """Takes over what another switch has flooded, if it is new, and passes it on."""
        _, _, _, origin, version, count = HEADER.unpack_from(frame)
        if origin >= len(self.up) or version <= self.versions[origin]:
            return
        self.versions[origin] = version
        if origin == self.site.node:
            self.advertise()  # of this switch before it was started again
            return
        self.up[origin] = set(struct.unpack_from(f"!{count}H", frame, HEADER.size))
        self.flood(origin, ingress)
        self.reroute()

    def flood(self, origin: int, ingress: int | None = None) -> None:
        for port, _ in self.site.neighbours:
            if port != ingress and port in self.up[self.site.node]:
                self.send(port, origin)

    def send(self, port: int, origin: int) -> None:
        """Sends what is known of one switch to the neighbour at a port."""
        there = self.site.ports[port].node
        assert there is not None
        to = axon.mac_bytes(self.site.plan.nodes[there].mac)
        own = axon.mac_bytes(self.switch.mac)
        up = sorted(self.up[origin])
        head = HEADER.pack(to, own, TYPE, origin, self.versions[origin], len(up))
        self.switch.send_packet(port, head + struct.pack(f"!{len(up)}H", *up))

    def reroute(self) -> None:
        """Sets the entries of all hosts whose way has changed, in one transaction."""
        first = self.first_ports()
        ways: dict[str, int] = {}
        for host in self.site.plan.hosts:
            if host.node == self.site.node:
                ways[host.mac] = host.port
            elif host.node in first:
                ways[host.mac] = first[host.node]
        with self.switch.transaction() as t:
            for mac in self.entries.keys() | ways.keys():
                if self.entries.get(mac) != ways.get(mac):
                    way = ways.get(mac)
                    t.set_mac(mac, None if way is None else axon.Action.port(way))
        self.entries = ways

    def first_ports(self) -> dict[int, int]:
        """By switch: the port by which the shortest way to it begins."""
        nodes = self.site.plan.nodes
        first: dict[int, int] = {}
        ahead = [self.site.node]
        for node in ahead:
            for port in nodes[node].ports:
                there, back = port.node, port.node_port
                if there is None or there in first or there == self.site.node:
                    continue
                if port.number in self.up[node] and back in self.up[there]:
                    first[there] = first.get(node, port.number)
                    ahead.append(there)
        return first
