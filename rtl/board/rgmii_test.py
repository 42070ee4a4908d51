"""Tests of rgmii with models of the cells: bytes at both edges, control signals, in-band status."""

import os
import random

import board_bench  # before bench: it sets the path
import bench
import cocotb
from cocotb.clock import Clock
from cocotb.triggers import FallingEdge, Timer


async def begin(dut):
    """Starts the clock of the core; the clock of the PHY comes with its data."""
    inputs = ("txd", "tx_en", "tx_er", "phy_rxc", "phy_rxd", "phy_rx_ctl")
    for name in inputs:
        getattr(dut, name).value = 0
    cocotb.start_soon(Clock(dut.clk, 8, "ns").start())
    await bench.cycle(dut)


async def phy_sends(dut, items):
    """Drives (byte, valid, error) at the pins: a quarter of a cycle before each edge."""
    for byte, valid, error in items:
        dut.phy_rxd.value = byte & 15
        dut.phy_rx_ctl.value = valid
        await Timer(2, "ns")
        dut.phy_rxc.value = 1
        await Timer(2, "ns")
        dut.phy_rxd.value = byte >> 4
        dut.phy_rx_ctl.value = valid ^ error
        await Timer(2, "ns")
        dut.phy_rxc.value = 0
        await Timer(2, "ns")


@cocotb.test()
async def received_bytes_have_their_low_half_first(dut):
    """Random bytes with valid and error; all come out in order, some cycles later."""
    await begin(dut)
    chance = random.Random(int(os.environ.get("AXON_SEED", "1")))
    sent = [(chance.randrange(256), 1, chance.randrange(2)) for _ in range(200)]
    received = []

    async def collect():
        while True:
            await FallingEdge(dut.phy_rxc)
            item = (dut.rxd.value, dut.rx_dv.value, dut.rx_er.value)
            if all(value.is_resolvable for value in item):
                received.append(tuple(int(value) for value in item))

    cocotb.start_soon(collect())
    idle = [(0xDD, 0, 0)] * 8
    await phy_sends(dut, [*idle, *sent, *idle])
    assert [item for item in received if item[1]] == sent


@cocotb.test()
async def link_follows_the_in_band_status(dut):
    """Up at 1000 Mbit/s full duplex, down at any other; data of a frame do not count."""
    await begin(dut)
    for status, is_up in ((0x00, 0), (0xDD, 1), (0x55, 0), (0xDD, 1), (0xBB, 0), (0xDD, 1)):
        await phy_sends(dut, [(status, 0, 0)] * 6)
        assert dut.is_link_up.value == is_up, hex(status)
    await phy_sends(dut, [(0x00, 1, 0)] * 20)
    assert dut.is_link_up.value == 1
    # Carrier extension: not valid, but an error.
    await phy_sends(dut, [(0x0F, 0, 1)] * 6)
    assert dut.is_link_up.value == 1


@cocotb.test()
async def sent_bytes_have_their_low_half_first(dut):
    """The pins show the low half while the clock is high; control is enable, then enable xor error."""
    await begin(dut)
    chance = random.Random(int(os.environ.get("AXON_SEED", "1")))
    sent = [(chance.randrange(256), 1, chance.randrange(2)) for _ in range(200)]
    pins = []

    async def collect():
        while True:
            await Timer(2, "ns")  # after a falling edge of clk: the clock of the pins is low
            second = int(dut.phy_txd.value), int(dut.phy_tx_ctl.value)
            assert dut.phy_txc.value == 0
            await Timer(4, "ns")
            first = int(dut.phy_txd.value), int(dut.phy_tx_ctl.value)
            assert dut.phy_txc.value == 1
            pins.append((first, second))
            await Timer(2, "ns")

    await bench.cycle(dut, 4)
    cocotb.start_soon(collect())
    for byte, valid, error in [*sent, *[(0, 0, 0)] * 6]:
        dut.txd.value, dut.tx_en.value, dut.tx_er.value = byte, valid, error
        await bench.cycle(dut)
    received = []
    for (first, _), (_, second) in zip(pins, pins[1:]):
        if first[1]:
            received.append((first[0] | second[0] << 4, 1, first[1] ^ second[1]))
    assert received == sent


def test_rgmii():
    """With the models of ecp5_primitives.sv."""
    board_bench.run("rgmii", tests=__file__)
