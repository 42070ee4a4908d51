#!/usr/bin/env python3
"""A second reader of the golden vectors, which shares no code with the first.

    python3 vectors/read.py [FOLDER]

It computes what stands right of `=>` from what stands left of it, and reports each difference
with file and line. It also counts: a file in which an outcome comes more rarely than MINIMUM says
is refused, so that rewriting the vectors cannot turn the good cases of a kind into errors.
Exit status: 0 both readers agree, 1 they do not.
"""

import re
import sys
from collections import Counter
from pathlib import Path

sys.dont_write_bytecode = True
from messages import MESSAGES  # noqa: E402

# The wire, once more: this reader is a witness only if it does not take them from the code.
VERSIONS = {"envelope": 8, "probe": 1, "congestion": 1}
TYPES = {"ethernet": 1, "control": 2, "probe": 3, "error": 4, "congestion": 5}
TYPE_NAMES = {number: name for name, number in TYPES.items()}
UNITS = {"ingress": 1, "egress": 2}
TPIDS = (0x8100, 0x88A8)
MAC_CONTROL, ETHER_PROBE = 0x8808, 0x88B6
GROUP = bytes.fromhex("0180c2000001")
LINK_LOCAL = bytes.fromhex("0180c20000")
FRAME_MIN = 60
HOST_FRAME_MAX = 40  # of edge.txt
COUNT_MAX = 0xFFF
CPU = "cpu"


class Refused(Exception):
    """Bytes that are not what they should be; the text is the word of the vectors."""


def to_hex(data):
    return data.hex() or "-"


def from_hex(word):
    return b"" if word == "-" else bytes.fromhex(word)


def big(value, size):
    return value.to_bytes(size, "big")


def word_at(data, at):
    return int.from_bytes(data[at:at + 2], "big")


# The Axon header, as a row of bits: type 4, length 16, counts 12 and 12, then with hops of 8 or
# 16 bits a priority of 3 and a spare bit, then the hops, and zeros up to a whole byte.


def port_of(word):
    return CPU if word == CPU else int(word)


def ports_of(word):
    return [] if word == "-" else [port_of(name) for name in word.split(",")]


def port_words(ports):
    return ",".join(map(str, ports)) or "-"


def bits(value, size):
    return format(value, f"0{size}b")


class Header:
    """The fields of a header, and what stands behind it."""

    def __init__(self, width, kind, forward, reverse, extra=0, pad="", payload=b""):
        self.width, self.kind, self.forward, self.reverse = width, kind, forward, reverse
        self.extra, self.pad, self.payload = extra, pad, payload

    @staticmethod
    def length_of(width, hops):
        return -(-((44 if width == 4 else 48) + width * hops) // 8)

    @staticmethod
    def parse(width, data):
        if len(data) < 6:
            raise Refused("truncated")
        row = bits(int.from_bytes(data, "big"), 8 * len(data))
        kind, length = int(row[:4], 2), int(row[4:20], 2)
        forward, reverse = int(row[20:32], 2), int(row[32:44], 2)
        if kind not in TYPE_NAMES:
            raise Refused("type")
        if length != Header.length_of(width, forward + reverse):
            raise Refused("length")
        if length > len(data):
            raise Refused("truncated")
        at, extra = (44, 0) if width == 4 else (48, int(row[44:48], 2))
        control = 2**width - 1
        hops = []
        for _ in range(forward + reverse):
            hop = int(row[at:at + width], 2)
            hops.append(CPU if hop == control else hop)
            at += width
        return Header(width, kind, hops[:forward], hops[forward:], extra,
                      row[at:8 * length], data[length:])

    def emit(self):
        """The header alone."""
        control = 2**self.width - 1
        hops = self.forward + self.reverse
        length = Header.length_of(self.width, len(hops))
        counts = max(len(self.forward), len(self.reverse))
        if counts > COUNT_MAX or length > 0xFFFF or any(
                hop != CPU and hop >= control for hop in hops):
            raise Refused("unrepresentable")
        row = bits(self.kind, 4) + bits(length, 16)
        row += bits(len(self.forward), 12) + bits(len(self.reverse), 12)
        row += "" if self.width == 4 else bits(self.extra, 4)
        # A port that hops of this width cannot name is cut down to them, as an ingress may be.
        row += "".join(bits(control if hop == CPU else hop & control, self.width) for hop in hops)
        row += self.pad or "0" * (8 * length - len(row))
        return big(int(row, 2), length)

    def packet(self):
        return self.emit() + self.payload

    def take_hop(self, ingress):
        self.forward, self.reverse = self.forward[1:], [ingress] + self.reverse


def header_case(kind, width, *rest):
    width = int(width)
    if kind == "parse":
        header = Header.parse(width, from_hex(rest[0]))
        length = Header.length_of(width, len(header.forward + header.reverse))
        return " ".join(["ok", TYPE_NAMES[header.kind], str(length), port_words(header.forward),
                         port_words(header.reverse), to_hex(header.payload)])
    if kind == "emit":
        name, forward, reverse = rest
        return "ok " + Header(width, TYPES[name], ports_of(forward), ports_of(reverse)).emit().hex()
    if kind == "priority":
        header = Header.parse(width, from_hex(rest[1]))
        if width != 4:
            header.extra = int(rest[0], 16) << 1 | header.extra & 1
        return f"{header.extra >> 1} {header.packet().hex()}"


# The step of a switch.


def step(width, ingress, kinds, packet):
    """Verdict, port, and what is left of the packet."""
    try:
        header = Header.parse(width, packet)
    except Refused:
        return "drop-malformed", "-", packet
    if not header.forward:
        header.kind = TYPES["error"]
        return "punt-error", ingress, header.packet()
    if len(header.reverse) == COUNT_MAX:
        return "drop-malformed", "-", packet
    port = header.forward[0]
    kind = "A" if port == CPU else kinds[port:port + 1]
    if kind == "":
        return "drop-no_such_port", "-", packet
    if kind == "U":
        return "drop-egress_unknown", "-", packet
    if kind == "H" and header.kind == TYPES["ethernet"]:
        return "strip", port, header.payload
    header.take_hop(ingress)
    if port == CPU:
        return "punt-addressed", ingress, header.packet()
    if kind == "A":
        return "egress", port, header.packet()
    header.kind = TYPES["error"]
    return "punt-error", ingress, header.packet()


def forward_case(width, ingress, kinds, packet):
    verdict, port, left = step(int(width), port_of(ingress), kinds, from_hex(packet))
    return f"{verdict} {port} {to_hex(left)}"


def fault_of_host_frame(frame):
    """Why a host may neither send nor see it; None if it may."""
    if len(frame) < 14:
        return "drop-malformed"
    longest, at = HOST_FRAME_MAX, 12
    if word_at(frame, at) in TPIDS:
        longest, at = longest + 4, at + 4
    if word_at(frame, at) == 0x22E9 and len(frame) >= at + 4:
        longest += 4
    return "drop-oversized" if len(frame) > longest else None


def link_frame(ingress, frame):
    if len(frame) < 14:
        return "drop-malformed", "-", frame
    if word_at(frame, 12) == MAC_CONTROL:
        return "drop-mac_control", "-", frame
    return "punt-link_local", ingress, frame


def stamp(frame, at, ingress):
    """Appends a record, of time 0, to a probe whose head at `at` asks ingress units for one."""
    head = frame[at:at + 16]
    if len(head) == 16 and head[0] == VERSIONS["probe"] and head[1] & 1:
        return frame + record("ingress", ingress, 0, 0)
    return frame


def host_frame(width, ingress, kinds, routes, frame):
    """The route for the frame's source, or else that for any source."""
    route = routes.get((frame[:6], frame[6:12])) or routes.get((frame[:6], None))
    if frame[0] & 1 or route is None:
        if word_at(frame, 12) == ETHER_PROBE:
            return "punt-ether_probe", ingress, stamp(frame, 14, ingress)
        return "punt-miss", ingress, Header(width, 1, [], [ingress]).emit() + frame
    return step(width, ingress, kinds, Header(width, 1, route, []).emit() + frame)


def edge_case(width, ingress, kinds, routes_of, frame):
    width, ingress, frame = int(width), int(ingress), from_hex(frame)
    routes = {}
    for route in routes_of.split("+") if routes_of != "-" else ():
        key, hops = route.split("/")
        destination, _, source = key.partition("-")
        key = bytes.fromhex(destination), bytes.fromhex(source) if source else None
        routes[key] = ports_of(hops)
    link_local = len(frame) >= 6 and frame[:5] == LINK_LOCAL and frame[5] < 0x10
    kind, fault = kinds[ingress], fault_of_host_frame(frame)
    if kind == "H" and fault:
        answer = fault, "-", frame
    elif kind == "A" and frame and frame[0] >> 4:
        if frame[0] >> 4 == TYPES["probe"]:
            try:
                at = len(frame) - len(Header.parse(width, frame).payload)
                frame = stamp(frame, at, ingress)
            except Refused:
                pass
        answer = step(width, ingress, kinds, frame)
    elif link_local:
        answer = link_frame(ingress, frame)
    elif kind == "H":
        answer = host_frame(width, ingress, kinds, routes, frame)
    else:
        answer = "drop-malformed" if kind == "A" else "drop-port_unknown", "-", frame
    verdict, port, left = answer
    if verdict == "strip":
        fault = fault_of_host_frame(left)
        verdict, port = (fault, "-") if fault else ("transmit", port)
    verdict = "transmit" if verdict == "egress" else verdict
    return f"{verdict} {port} {to_hex(left)}"


# Flow control and tags.


def mac_control(source, fields):
    frame = GROUP + bytes.fromhex(source) + big(MAC_CONTROL, 2) + fields
    return frame.ljust(FRAME_MIN, b"\0").hex()


def read_mac_control(own, frame):
    if len(frame) < FRAME_MIN:
        raise Refused("short")
    if word_at(frame, 12) != MAC_CONTROL:
        raise Refused("ethertype")
    opcode = word_at(frame, 14)
    if opcode not in (1, 0x101):
        raise Refused("opcode")
    if frame[:6] != GROUP and (opcode == 0x101 or frame[:6] != own):
        raise Refused("destination")
    if frame[6] & 1:
        raise Refused("source")
    return f"pause {frame[16:18].hex()}" if opcode == 1 else (
        f"pfc {frame[17]:02x} {frame[18:34].hex()}")


def tags_case(frame):
    at = 12
    while at < 20 and len(frame) >= at + 4 and word_at(frame, at) in TPIDS:
        at += 4
    if len(frame) < at + 2:
        raise Refused("short")
    priority = frame[14] >> 5 if at > 12 else 0
    return f"{priority} {frame[at:at + 2].hex()} {at}"


def dcb_case(kind, *rest):
    if kind == "pause":
        return mac_control(rest[0], big(1, 2) + big(int(rest[1], 16), 2))
    if kind == "pfc":
        return mac_control(rest[0], big(0x101, 2) + big(int(rest[1], 16), 2) + from_hex(rest[2]))
    if kind == "read":
        return read_mac_control(from_hex(rest[0]), from_hex(rest[1]))
    if kind == "tags":
        return tags_case(from_hex(rest[0]))


# Probes and congestion messages.


def record(unit, port, queued, ticks):
    return (bytes([UNITS[unit], 0]) + big(port, 2) + big(min(queued, 2**32 - 1), 4)
            + big(ticks, 8))


def read_probe(data):
    if len(data) < 16:
        raise Refused("truncated")
    if data[0] != VERSIONS["probe"]:
        raise Refused("version")
    body = word_at(data, 2)
    if body < 16:
        raise Refused("body")
    if body > len(data):
        raise Refused("truncated")
    count, rest = divmod(len(data) - body, 16)
    if rest:
        raise Refused("tail")
    if any(data[body + 16 * n] not in UNITS.values() for n in range(count)):
        raise Refused("unit")
    return f"ok {count}"


def probe_case(kind, *rest):
    if kind == "head":
        options, body, sequence, origin = (int(word, 16) for word in rest)
        body = max(body, 16)
        head = bytes([VERSIONS["probe"], options]) + big(body, 2) + big(sequence, 4)
        return (head + big(origin, 8)).ljust(body, b"\0").hex()
    if kind == "record":
        return record(rest[0], *(int(word, 16) for word in rest[1:])).hex()
    if kind == "read":
        return read_probe(from_hex(rest[0]))
    if kind == "congestion":
        egress, host_port, queued = (int(word, 16) for word in rest[:3])
        message = bytes([VERSIONS["congestion"], 0]) + big(egress, 2) + big(host_port, 2)
        message += big(min(queued, 2**32 - 1), 4) + b"".join(map(bytes.fromhex, rest[3:]))
        return message.ljust(FRAME_MIN - 6, b"\0").hex()


# Envelopes and control messages.


def open_envelope(data):
    if len(data) < 27:
        raise Refused("truncated")
    if data[0] != VERSIONS["envelope"]:
        raise Refused("version")
    length = word_at(data, 1)
    if len(data) < 27 + length:
        raise Refused("truncated")
    words = [data[at:at + 8].hex() for at in (3, 11, 19)]
    return " ".join(["ok", *words, to_hex(data[27:27 + length])])


def control_case(kind, *rest):
    if kind == "envelope":
        sealed = from_hex(rest[3])
        head = bytes([VERSIONS["envelope"]]) + big(len(sealed), 2)
        return (head + b"".join(map(bytes.fromhex, rest[:3])) + sealed).hex()
    if kind == "open":
        return open_envelope(from_hex(rest[0]))
    if kind == "message":
        return MESSAGES[rest[0]].hex()
    if kind == "version":
        return str(VERSIONS[rest[0]])


READERS = {
    "header.txt": header_case,
    "forward.txt": forward_case,
    "edge.txt": edge_case,
    "dcb.txt": dcb_case,
    "probe.txt": probe_case,
    "control.txt": control_case,
}
# How often each outcome comes, at least. A case may go only with its number here.
MINIMUM = {
    "header.txt": {
        "emit ok": 13,
        "emit error unrepresentable": 2,
        "parse error length": 6,
        "parse ok": 7,
        "parse error truncated": 3,
        "parse error type": 4,
        "priority ok": 5,
    },
    "forward.txt": {
        "step egress": 22,
        "step strip": 6,
        "step punt-addressed": 7,
        "step punt-error": 11,
        "step drop-no_such_port": 4,
        "step drop-egress_unknown": 1,
        "step drop-malformed": 7,
    },
    "edge.txt": {
        "step transmit": 14,
        "step punt-addressed": 1,
        "step drop-no_such_port": 1,
        "step drop-egress_unknown": 1,
        "step drop-port_unknown": 1,
        "step punt-miss": 11,
        "step punt-link_local": 3,
        "step drop-mac_control": 2,
        "step punt-ether_probe": 2,
        "step drop-malformed": 4,
        "step drop-oversized": 2,
    },
    "dcb.txt": {
        "pause ok": 2,
        "read pause": 2,
        "pfc ok": 2,
        "read pfc": 2,
        "read error short": 1,
        "read error ethertype": 2,
        "read error opcode": 1,
        "read error destination": 2,
        "read error source": 1,
        "tags ok": 5,
        "tags error short": 2,
    },
    "probe.txt": {
        "head ok": 3,
        "record ok": 3,
        "read ok": 3,
        "read error truncated": 2,
        "read error version": 1,
        "read error body": 1,
        "read error tail": 1,
        "read error unit": 1,
        "congestion ok": 1,
    },
    "control.txt": {
        "envelope ok": 2,
        "open ok": 4,
        "open error truncated": 4,
        "open error version": 6,
        "version ok": 3,
        "message ok": 19,
    },
}
WORDS = re.compile(r"ok|pause|pfc|egress|strip|transmit|(punt|drop)-\w+")


def outcome_of(file, inputs, expected):
    """The kind of a case and how it ends, as MINIMUM has them."""
    kind = "step" if file in ("forward.txt", "edge.txt") else inputs.split(" ")[0]
    if expected.startswith("error "):
        return f"{kind} {expected}"
    first = expected.split(" ")[0]
    return f"{kind} {first if WORDS.fullmatch(first) else 'ok'}"


def compute(file, inputs):
    try:
        answer = READERS[file](*inputs.split(" "))
    except Refused as why:
        return f"error {why}"
    except (IndexError, KeyError, OverflowError, TypeError, ValueError) as why:
        return f"no answer: {why!r}"
    return answer if answer is not None else "no answer: no such kind of case"


def check(path):
    """Compares every case of a file and counts them; returns the differences."""
    problems, counts = [], Counter()
    for index, line in enumerate(path.read_text().split("\n"), 1):
        if not line or line.startswith("#"):
            continue
        inputs, arrow, expected = line.partition(" => ")
        answer = compute(path.name, inputs)
        if not arrow or answer != expected:
            problems.append(f"{path.name}:{index}: {inputs}\n  file:   {expected}\n"
                            f"  reader: {answer}")
        counts[outcome_of(path.name, inputs, expected)] += 1
    for outcome, least in MINIMUM[path.name].items():
        if counts[outcome] < least:
            problems.append(f"{path.name}: {counts[outcome]} cases of `{outcome}`, where at least "
                            f"{least} were expected")
    print(f"{path.name}: {sum(counts.values())} cases")
    return problems


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    problems = []
    for file in sorted({path.name for path in folder.glob("*.txt")} | set(READERS)):
        if file not in READERS:
            problems.append(f"{file}: this reader does not know it")
        elif not (folder / file).exists():
            problems.append(f"{file}: missing")
        else:
            problems += check(folder / file)
    print("\n".join(problems) if problems else "both readers agree")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
