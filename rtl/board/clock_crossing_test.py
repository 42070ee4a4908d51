"""Tests of clock_crossing: frames arrive whole at any difference of the clocks up to 250 ppm."""

import os
import random

import board_bench
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer
from cocotb.utils import get_sim_time

PERIOD_PS = 8000
GAP = 12


def clocks(dut, ppm, phase_ps):
    """Starts both clocks: the PHY's is `ppm` faster, and `phase_ps` later."""
    # The simulator counts picoseconds, and a clock needs an even number: steps of 250 ppm.
    phy = round(PERIOD_PS / (1 + ppm * 1e-6) / 2) * 2
    cocotb.start_soon(Clock(dut.clk, PERIOD_PS, "ps").start())

    async def later():
        await Timer(phase_ps + 2, "ps")
        await Clock(dut.clk_rx, phy, "ps").start()

    cocotb.start_soon(later())


async def reset(dut):
    """Silence at the PHY, four cycles of reset."""
    dut.phy_rx_dv.value = 0
    dut.phy_rx_er.value = 0
    dut.phy_rxd.value = 0
    dut.rst.value = 1
    for _ in range(4):
        await FallingEdge(dut.clk)
    dut.rst.value = 0


async def send(dut, frame, gap=GAP, errors=()):
    """Sends bytes at the PHY's clock, and then a gap; bytes at the places `errors` have rx_er."""
    for place, byte in enumerate(frame):
        await FallingEdge(dut.clk_rx)
        dut.phy_rx_dv.value = 1
        dut.phy_rx_er.value = int(place in errors)
        dut.phy_rxd.value = byte
    for _ in range(gap):
        await FallingEdge(dut.clk_rx)
        dut.phy_rx_dv.value = 0
        dut.phy_rx_er.value = 0
        dut.phy_rxd.value = 0xDD  # the in-band status is no frame


class Receiver:
    """Collects (bytes, places of errors) of frames, the gaps before them, and damage."""

    def __init__(self, dut):
        self.dut, self.frames, self.gaps, self.damaged = dut, [], [], 0
        cocotb.start_soon(self.run())

    async def run(self):
        frame, errors, gap = bytearray(), [], 0
        while True:
            await FallingEdge(self.dut.clk)
            self.damaged += int(self.dut.damaged.value) if self.dut.damaged.value.is_resolvable else 0
            if self.dut.rx_dv.value == 1:
                if not frame:
                    self.gaps.append(gap)
                if self.dut.rx_er.value == 1:
                    errors.append(len(frame))
                frame.append(int(self.dut.rxd.value))
                gap = 0
            else:
                if frame:
                    self.frames.append((bytes(frame), errors))
                    frame, errors = bytearray(), []
                gap += 1


@cocotb.test()
async def frames_arrive_whole_at_any_phase_and_250_ppm_either_way(dut):
    """Random lengths at full rate; the gap shrinks by two cycles at most."""
    chance = random.Random(int(os.environ.get("AXON_SEED", "1")))
    ppm = int(os.environ.get("AXON_PPM", "0"))
    clocks(dut, ppm, chance.randrange(0, PERIOD_PS, 2))
    await reset(dut)
    receiver = Receiver(dut)
    sent = []
    for _ in range(40):
        frame = chance.randbytes(chance.choice([1, 2, 3, 64, 72, 600, 1530, 2056]))
        errors = [place for place in range(len(frame)) if chance.random() < 0.001]
        await send(dut, frame, errors=errors)
        sent.append((frame, errors))
    await Timer(40 * PERIOD_PS, "ps")
    assert receiver.frames == sent
    assert receiver.damaged == 0
    assert min(receiver.gaps[1:]) >= GAP - 2, receiver.gaps
    assert max(receiver.gaps[1:]) <= GAP + 2, receiver.gaps


@cocotb.test()
async def a_byte_takes_three_to_four_cycles(dut):
    """From the edge of the PHY's clock that takes a byte to the edge that shows it in the core."""
    clocks(dut, 250, 0)  # the phase moves on by itself
    await reset(dut)
    chance = random.Random(int(os.environ.get("AXON_SEED", "1")))
    delays = []
    for _ in range(60):
        await Timer(chance.randrange(0, 99 * PERIOD_PS, 2), "ps")
        # The byte is driven half a cycle before the edge that takes it.
        await FallingEdge(dut.clk_rx)
        begin = get_sim_time("ps") + PERIOD_PS // 2
        sender = cocotb.start_soon(send(dut, b"\x55" * 20))
        dut.phy_rx_dv.value = 1
        await dut.rx_dv.value_change
        delays.append((get_sim_time("ps") - begin) / PERIOD_PS)
        await sender
    dut._log.info("delays from %.2f to %.2f cycles", min(delays), max(delays))
    assert 3 < min(delays) < 3.1 and 3.9 < max(delays) <= 4, delays


@cocotb.test()
async def clocks_too_far_apart_damage_frames_visibly(dut):
    """At 2 % every frame that has changed has an error in it, and `damaged` shows."""
    clocks(dut, -20_000, 1000)
    await reset(dut)
    receiver = Receiver(dut)
    frame = bytes(range(256)) * 4
    for _ in range(4):
        await send(dut, frame, gap=60)
    await Timer(40 * PERIOD_PS, "ps")
    assert len(receiver.frames) == 4 and receiver.damaged > 0
    for received, errors in receiver.frames:
        assert received == frame or errors


@cocotb.test()
async def a_reset_in_a_frame_loses_no_later_frame(dut):
    """What is left of the frame may come out; the next one is whole."""
    clocks(dut, 250, 3000)
    await reset(dut)
    sender = cocotb.start_soon(send(dut, bytes(range(200)), gap=30))
    await Timer(60 * PERIOD_PS, "ps")
    await FallingEdge(dut.clk)
    dut.rst.value = 1
    for _ in range(3):
        await FallingEdge(dut.clk)
    dut.rst.value = 0
    await sender
    receiver = Receiver(dut)
    await send(dut, b"whole frame" * 9, gap=30)
    await Timer(40 * PERIOD_PS, "ps")
    assert receiver.frames[-1] == (b"whole frame" * 9, [])


def test_clock_crossing():
    """Both signs of the difference and none."""
    for ppm in (-250, 0, 250):
        os.environ["AXON_PPM"] = str(ppm)
        board_bench.run("clock_crossing", tests=__file__)
