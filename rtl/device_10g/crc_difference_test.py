"""Tests of crc_difference against zlib: every bit of a word, every length, random frames."""

import os
import random as random_module
import zlib

import bench_10g
import cocotb
from bench_10g import bench


async def correction(dut, difference):
    """Feeds the xor of two frames without FCS; returns the correction of the FCS."""
    padded = difference + bytes(4)  # the FCS takes part in no way: its difference is 0
    words = [padded[at:at + 8] for at in range(0, len(padded), 8)]
    for number, word in enumerate(words):
        dut.valid.value = 1
        dut.difference.value = int.from_bytes(word, "little")
        dut.has_fcs.value = number == len(difference) // 8
        dut.fcs_lane.value = len(difference) % 8
        dut.is_last.value = number == len(words) - 1
        await bench.cycle(dut)
    dut.valid.value = 0
    await bench.cycle(dut, 2)
    return int(dut.correction.value)


async def start(dut):
    await bench.start(dut, valid=0, is_last=0, difference=0, has_fcs=0, fcs_lane=0)


def crc_of_difference(difference):
    """CRC from an initial state of 0: what two CRCs of frames that differ so differ by."""
    return zlib.crc32(difference) ^ zlib.crc32(bytes(len(difference)))


@cocotb.test()
async def each_bit_of_a_word_at_each_length(dut):
    """The circuit only xors, so it is right for all frames if it is right for single bits."""
    await start(dut)
    for length in range(8, 26):
        for bit in range(64):
            difference = (1 << bit).to_bytes(8, "little") + bytes(length - 8)
            assert await correction(dut, difference) == crc_of_difference(difference)
    for length in range(1, 8):
        for bit in range(8 * length):
            difference = (1 << bit).to_bytes(length, "little")
            assert await correction(dut, difference) == crc_of_difference(difference)


@cocotb.test()
async def the_fcs_of_a_changed_frame(dut):
    random = random_module.Random(int(os.environ.get("AXON_SEED", "1")))
    await start(dut)
    for _ in range(600):
        old = random.randbytes(random.choice([random.randint(60, 90), random.randint(60, 1600)]))
        new = random.randbytes(min(len(old), random.randint(0, 80)))
        new += old[len(new):]
        difference = bytes(a ^ b for a, b in zip(old, new))
        assert zlib.crc32(new) == zlib.crc32(old) ^ await correction(dut, difference)


def test_crc_difference():
    bench_10g.run("crc_difference", __file__)
