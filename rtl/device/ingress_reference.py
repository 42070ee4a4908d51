"""Reference of the ingress for its tests, written plainly from crates/wire/src/header.rs,
crates/plane/src/axon/forward.rs, crates/plane/src/axon/plane.rs and .../ethernet.rs.

A fate is a tuple: ("drop", reason, output or None) or ("punt", reason, output) or ("pass", output).
An output is (port or "cpu", bytes): what goes there, the two bytes of the descriptor included.
The output of a drop is what may have left before the frame was known to be bad.
"""

from pathlib import Path

VECTORS = Path(__file__).resolve().parents[2] / "vectors"
CPU = 15
HOPS_MAX = 0xFFF
ETHERNET, CONTROL, PROBE, ERROR, CONGESTION = 1, 2, 3, 4, 5
KINDS = {"U": 0, "H": 1, "A": 2}
PUNTS = {"miss": 0, "addressed": 1, "error": 2, "link_local": 3}
DROPS = {
    "malformed": 0, "bad_fcs": 1, "oversized": 2, "queue_full": 3, "port_down": 7,
    "port_unknown": 8, "no_such_port": 9, "mac_control": 12, "route_too_long": 22,
    "egress_unknown": 24,
}  # fmt: skip


def vectors(name):
    """Cases of a file of vectors, each as (line number, words left, words right of =>)."""
    for number, line in enumerate((VECTORS / name).read_text().splitlines(), 1):
        if line and not line.startswith("#"):
            left, right = line.split(" => ")
            yield number, left.split(" "), right.split(" ")


def from_hex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def port_number(word):
    return CPU if word == "cpu" else int(word)


# The header.


def first_bit(width):
    return 44 if width == 4 else 48


def header_bytes(width, hops):
    return max(6, (first_bit(width) + width * hops + 7) // 8)


def encode(width, port):
    return (1 << width) - 1 if port == CPU else port


def get_hop(packet, width, index):
    bits = int.from_bytes(packet, "big")
    shift = 8 * len(packet) - first_bit(width) - width * (index + 1)
    return bits >> shift & ((1 << width) - 1)


def set_hop(packet, width, index, hop):
    bits = int.from_bytes(packet, "big")
    shift = 8 * len(packet) - first_bit(width) - width * (index + 1)
    mask = ((1 << width) - 1) << shift
    return (bits & ~mask | hop << shift).to_bytes(len(packet), "big")


def parse(packet, width):
    """Fields of the header, or None."""
    if len(packet) < 6 or not ETHERNET <= packet[0] >> 4 <= CONGESTION:
        return None
    fixed = int.from_bytes(packet[:6], "big")
    fields = {
        "type": fixed >> 44,
        "length": fixed >> 28 & 0xFFFF,
        "forward": fixed >> 16 & 0xFFF,
        "reverse": fixed >> 4 & 0xFFF,
        "priority": 0 if width == 4 else fixed >> 1 & 7,
    }
    if fields["length"] != header_bytes(width, fields["forward"] + fields["reverse"]):
        return None
    return fields if fields["length"] <= len(packet) else None


def set_counts(packet, forward, reverse):
    fixed = int.from_bytes(packet[:6], "big") & ~0x0000_0FFF_FFF0 & ~(0xFFF << 16)
    fixed |= forward << 16 | reverse << 4
    return fixed.to_bytes(6, "big") + packet[6:]


def set_type(packet, packet_type):
    return bytes([packet[0] & 15 | packet_type << 4]) + packet[1:]


def advance(packet, width, fields, ingress):
    """The packet after its hop is taken."""
    count = fields["forward"]
    hops = [get_hop(packet, width, index) for index in range(count)]
    for index, hop in enumerate([*hops[1:], encode(width, ingress)]):
        packet = set_hop(packet, width, index, hop)
    return set_counts(packet, count - 1, fields["reverse"] + 1)


def emit(width, packet_type, forward, reverse, priority=0):
    """A header."""
    hops = [*forward, *reverse]
    packet = bytes(header_bytes(width, len(hops)))
    fixed = packet_type << 44 | len(packet) << 28 | priority << 1
    packet = fixed.to_bytes(6, "big") + packet[6:]
    packet = set_counts(packet, len(forward), len(reverse))
    for index, hop in enumerate(hops):
        packet = set_hop(packet, width, index, encode(width, hop))
    return packet


# The step.


def forward(fields, hop, width, kinds, ups=None, route_bytes_max=0xFFFF):
    """Verdict on a packet: (verdict, port or None). `fields` is None if they are not valid."""
    if fields is None:
        return "drop-malformed", None
    if fields["length"] > route_bytes_max:
        return "drop-route_too_long", None
    if fields["forward"] == 0:
        return "punt-error", None
    if fields["reverse"] == HOPS_MAX:
        return "drop-malformed", None
    if hop == (1 << width) - 1:
        return "punt-addressed", None
    if hop >= len(kinds):
        return "drop-no_such_port", None
    if kinds[hop] == "U":
        is_up = ups is None or ups[hop]
        return ("drop-egress_unknown" if is_up else "drop-port_down"), None
    if kinds[hop] == "A":
        return "egress", hop
    return ("strip", hop) if fields["type"] == ETHERNET else ("punt-error", hop)


# The ingress.


def is_resolution(frame):
    """Whether a frame is ARP, or ICMPv6 with a hop limit of 255, behind a tag of VLAN 0 or none."""
    at = 12
    if frame[at : at + 2] == b"\x81\x00" and int.from_bytes(frame[14:16], "big") & 0xFFF == 0:
        at += 4
    kind, packet = frame[at : at + 2], frame[at + 2 :]
    return kind == b"\x08\x06" or (kind == b"\x86\xdd" and packet[6:8] == b"\x3a\xff")


class Ingress:
    """Settings of a switch and one port of it, and the fates of frames that come in there."""

    def __init__(self, width, port, kind, kinds, routes=(), ups=None, bytes_max=1514, route=0xFFFF):
        self.width, self.port, self.kind, self.kinds = width, port, kind, kinds
        self.routes = routes  # of Route
        self.ups = ups or [True] * len(kinds)
        self.bytes_max, self.route_bytes_max = bytes_max, route
        self.punts_resolution = False

    def fate(self, frame, bad=None):
        """Fate of a frame that the MAC found good, or bad for the reason `bad`."""
        fate = self.fate_of_good(frame)
        return ("drop", bad, fate[-1]) if bad else fate

    def fate_of_good(self, frame):
        if self.kind == "A" and frame and frame[0] >> 4 != 0:
            return self.packet(frame)
        return self.ethernet(frame)

    def punt(self, reason, frame):
        return ("punt", reason, ("cpu", bytes([self.port, PUNTS[reason]]) + frame))

    def packet(self, frame):
        fields = parse(frame, self.width)
        hop = None
        if fields and fields["forward"]:
            hop = get_hop(frame, self.width, 0)
        verdict, to = forward(
            fields, hop, self.width, self.kinds, self.ups, self.route_bytes_max
        )
        if verdict == "strip":
            rest = frame[fields["length"] :]
            fault = self.fault(rest)
            return ("drop", fault, (to, rest)) if fault else ("pass", (to, rest))
        if verdict == "egress":
            return ("pass", (to, advance(frame, self.width, fields, self.port)))
        if verdict == "punt-addressed":
            return self.punt("addressed", advance(frame, self.width, fields, self.port))
        if verdict == "punt-error":
            if fields["forward"]:
                frame = advance(frame, self.width, fields, self.port)
            return self.punt("error", set_type(frame, ERROR))
        return ("drop", verdict.removeprefix("drop-"), None)

    def fault(self, frame):
        """Why `frame` is not one that a host may send or receive, or None."""
        if len(frame) < 14:
            return "malformed"
        at = 12
        if frame[at : at + 2] in (b"\x81\x00", b"\x88\xa8"):
            at += 4
        if frame[at : at + 2] == b"\x22\xe9":
            at += 4
        return "oversized" if len(frame) > self.bytes_max + at - 12 else None

    def ethernet(self, frame):
        is_link_local = frame[:5] == b"\x01\x80\xc2\x00\x00" and frame[5:6] and frame[5] < 16
        if self.kind == "H" and self.fault(frame):
            return ("drop", self.fault(frame), self.host(frame)[-1])
        if frame[12:14] == b"\x88\x08":
            return ("drop", "mac_control", None)
        if is_link_local:
            if len(frame) < 14:
                return ("drop", "malformed", self.punt("link_local", frame)[-1])
            return self.punt("link_local", frame)
        if self.kind == "H":
            return self.host(frame)
        return ("drop", "malformed" if self.kind == "A" else "port_unknown", None)

    def host(self, frame):
        if frame[12:14] == b"\x88\x08":
            return ("drop", "mac_control", None)
        if frame[:5] == b"\x01\x80\xc2\x00\x00" and frame[5:6] and frame[5] < 16:
            return self.punt("link_local", frame)
        found = None
        if frame and not frame[0] & 1:
            found = min(
                (route for route in self.routes if route.matches(frame)),
                key=lambda route: route.source is None,
                default=None,
            )
        asks = found and (self.punts_resolution or found.true_destination)
        if found is None or (asks and is_resolution(frame)):
            return self.punt("miss", emit(self.width, ETHERNET, [], [self.port]) + frame)
        if found.true_destination:
            frame = found.true_destination + frame[6:]
        to = found.hops[0]
        pushed = found.header(self.width, self.port) + frame
        if to == CPU:
            return self.punt("addressed", pushed)
        if to >= len(self.kinds):
            return ("drop", "no_such_port", None)
        if self.kinds[to] == "U":
            return ("drop", "egress_unknown" if self.ups[to] else "port_down", None)
        return ("pass", (to, pushed if self.kinds[to] == "A" else frame))


class Route:
    """A route of the route table."""

    def __init__(self, destination, hops, source=None, true_destination=None, priority=0):
        self.destination, self.source, self.hops = destination, source, hops
        self.true_destination, self.priority = true_destination, priority

    def matches(self, frame):
        return frame[:6] == self.destination and self.source in (None, frame[6:12])

    def header(self, width, ingress):
        """The header as it leaves: the first step is taken."""
        return emit(width, ETHERNET, self.hops[1:], [ingress], self.priority)
