"""Shared by the tests of the 10G device, beside bench.py of the 1G device.

Words of XGMII are pairs (data, control) of 64 and 8 bits; frames are bytes with FCS unless it is
said otherwise.
"""

import os
import sys
from pathlib import Path

import cocotb
from cocotb.triggers import FallingEdge
from cocotb.utils import get_sim_time

DEVICE_10G = Path(__file__).resolve().parent
sys.path.insert(0, str(DEVICE_10G.parent / "device"))
import bench  # noqa: E402

PERIOD = 6400  # ps
IDLE, START, TERMINATE, ERROR = 0x07, 0xFB, 0xFD, 0xFE
IDLES = (0x0707070707070707, 0xFF)
START_DATA = 0xD5555555555555FB
UNKNOWN, HOST, AXON = 0, 1, 2
CPU = "cpu"


def run(module, tests, parameters={}, extra_sources=()):
    """As bench.run, with the modules of the 10G device."""
    modules = [path for path in DEVICE_10G.glob("*.sv")]
    paths = f"{DEVICE_10G}:{bench.DEVICE}:{os.environ.get('PYTHONPATH', '')}"
    bench.run(module, parameters, tests, extra_sources=[*modules, *extra_sources],
              environment={"PYTHONPATH": paths})


def pins(ports, folder="axon_device_10g"):
    """A top with the signals of each port by themselves, as the models of XGMII want them."""
    each = range(ports)
    inputs = "".join(f"input wire logic [63:0] rxd{at}, input wire logic [7:0] rxc{at},\n"
                     f"output logic [63:0] txd{at}, output logic [7:0] txc{at},\n" for at in each)
    vector = lambda name: "{" + ", ".join(f"{name}{at}" for at in reversed(each)) + "}"  # noqa: E731
    text = f"""`default_nettype none
module pins_10g #(parameter int unsigned HOP_BITS = 8, parameter int unsigned BUFFER_WORDS = 512) (
{inputs}
input wire logic clk, input wire logic rst, input wire logic [{2 * ports - 1}:0] kinds,
input wire logic [{ports - 1}:0] ups, input wire logic [13:0] bytes_max,
input wire logic [15:0] route_bytes_max, output logic [{ports - 1}:0] no_start,
output logic [{ports - 1}:0] drop_valid, output logic [{5 * ports - 1}:0] drop,
output logic [{ports - 1}:0] punt_valid, output logic [{3 * ports - 1}:0] punt,
output logic [{ports * ports - 1}:0] full_drop, output logic [{ports * ports - 1}:0] bad_drop);
axon_device_10g #(.PORTS({ports}), .HOP_BITS(HOP_BITS), .BUFFER_WORDS(BUFFER_WORDS)) device (
.clk, .rst, .kinds, .ups, .bytes_max, .route_bytes_max, .no_start, .drop_valid, .drop,
.punt_valid, .punt, .full_drop, .bad_drop, .rxd({vector('rxd')}), .rxc({vector('rxc')}),
.txd({vector('txd')}), .txc({vector('txc')}));
endmodule
"""
    path = bench.build_directory(folder) / "pins_10g.sv"
    path.write_text(text)
    return path


def word(characters):
    """(data, control) of 8 characters: numbers, those from 0x100 on are control characters."""
    data = sum((character & 0xFF) << 8 * lane for lane, character in enumerate(characters))
    return data, sum((character >> 8 & 1) << lane for lane, character in enumerate(characters))


def words_of(characters):
    """Words of a sequence of characters, filled up with idle."""
    characters = [*characters, *[0x100 | IDLE] * (-len(characters) % 8)]
    return [word(characters[at:at + 8]) for at in range(0, len(characters), 8)]


def on_xgmii(frame, lane=0, gap=12):
    """Characters of a frame: start in `lane`, the frame, its end, and at least `gap` bytes more."""
    return [*[0x100 | IDLE] * lane, 0x100 | START, *b"\x55" * 6, 0xD5, *frame, 0x100 | TERMINATE,
            *[0x100 | IDLE] * (gap - 1)]


def with_fcs(frame):
    return bytes(frame) + bench.fcs(frame)


def has_good_fcs(frame):
    return len(frame) >= 4 and bench.fcs(frame[:-4]) == frame[-4:]


class Monitor:
    """Writes down all frames that leave at a port: (frame, is_error, (cycle, lane) of START).

    Inputs are driven and outputs are read at falling edges: what is driven at the one of `cycle` n
    is at the pins in cycle n, an output that is read at the one of n + 1 is visible in n + 1.
    """

    def __init__(self, dut, port):
        self.data, self.control = getattr(dut, f"txd{port}"), getattr(dut, f"txc{port}")
        self.clk, self.frames, self.frame = dut.clk, [], None
        self.gaps, self.gap = [], None
        cocotb.start_soon(self.watch())

    @property
    def cycle(self):
        return int(get_sim_time("ps")) // PERIOD

    async def watch(self):
        while True:
            await FallingEdge(self.clk)
            data, control = int(self.data.value), int(self.control.value)
            if (data, control) == IDLES and self.frame is None:
                if self.gap is not None:
                    self.gap += 8
            else:
                for lane in range(8):
                    self.character(data >> 8 * lane & 0xFF, control >> lane & 1, lane)

    def character(self, data, control, lane):
        if self.frame is None:
            if control and data == START:
                assert lane in (0, 4), f"START in lane {lane}"
                self.frame, self.start, self.is_error = bytearray(), (self.cycle, lane), False
                if self.gap is not None:
                    self.gaps.append(self.gap)
            else:
                assert control and data == IDLE, f"{data:#x}/{control} between frames"
                if self.gap is not None:
                    self.gap += 1
        elif control and data == TERMINATE:
            assert self.frame[:7] == b"\x55" * 6 + b"\xd5", self.frame[:8].hex()
            self.frames.append((bytes(self.frame[7:]), self.is_error, self.start))
            self.frame, self.gap = None, 1
        elif control:
            assert data == ERROR, f"control {data:#x} in a frame"
            self.is_error = True
        else:
            assert not self.is_error, "data after an error"
            self.frame.append(data)


async def send(dut, port, characters):
    """Drives a port with characters from the next falling edge on; returns the words it took."""
    words = words_of(characters)
    data, control = getattr(dut, f"rxd{port}"), getattr(dut, f"rxc{port}")
    for value, controls in words:
        data.value, control.value = value, controls
        await FallingEdge(dut.clk)
    data.value, control.value = IDLES
    return len(words)


# The forwarding step, as a second witness beside crates/plane/src/axon/forward.rs.


def packet(forward, reverse=(), payload=b"", packet_type=1, priority=0, hop_bytes=1):
    """An Axon packet without FCS."""
    hops = b"".join(hop.to_bytes(hop_bytes, "big") for hop in [*forward, *reverse])
    length = 6 + len(hops)
    head = packet_type << 44 | length << 28 | len(forward) << 16 | len(reverse) << 4 | priority << 1
    return head.to_bytes(6, "big") + hops + payload


def step(frame, ingress, kinds, hop_bytes=1):
    """(port, frame) that a good packet becomes; None if it does not go to a port."""
    fields = int.from_bytes(frame[:6], "big")
    forward, reverse = fields >> 16 & 0xFFF, fields >> 4 & 0xFFF
    length = fields >> 28 & 0xFFFF
    end = 6 + forward * hop_bytes
    if forward == 0 or reverse == 0xFFF or length != end + reverse * hop_bytes:
        return None
    port = int.from_bytes(frame[6:6 + hop_bytes], "big")
    if port >= len(kinds) or kinds[port] == UNKNOWN or length > len(frame):
        return None
    if kinds[port] == HOST:
        return (port, frame[length:]) if fields >> 44 == 1 else None
    fields += (1 << 4) - (1 << 16)
    hops = frame[6 + hop_bytes:end] + ingress.to_bytes(hop_bytes, "big")
    return port, fields.to_bytes(6, "big") + hops + frame[end:]
