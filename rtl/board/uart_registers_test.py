"""Tests of uart_registers: reads and writes over a serial line, and recovery from a lost byte."""

import os
import random

import board_bench  # before bench: it sets the path
import bench
import cocotb

CLOCKS_PER_BIT = 10
TIMEOUT = 2000


class Line:
    """The other end of the serial line, and a memory of 32-bit registers at the bus."""

    def __init__(self, dut, drift=1.0):
        self.dut, self.registers, self.received, self.writes = dut, {}, bytearray(), []
        self.bit_clocks = CLOCKS_PER_BIT * drift
        cocotb.start_soon(self.listen())
        cocotb.start_soon(self.bus())

    async def bus(self):
        """Answers reads one cycle later; what is on the bus otherwise is of no use."""
        value = 0xDEADBEEF
        while True:
            await bench.cycle(self.dut)
            self.dut.read_data.value = value
            value = 0xDEADBEEF
            if self.dut.write.value == 1:
                self.writes.append(int(self.dut.address.value))
                self.registers[self.writes[-1]] = int(self.dut.write_data.value)
            if self.dut.read.value == 1:
                value = self.registers.get(int(self.dut.address.value), 0)

    async def listen(self):
        """Collects bytes that the module sends."""
        while True:
            while self.dut.line_out.value == 1:
                await bench.cycle(self.dut)
            await bench.cycle(self.dut, CLOCKS_PER_BIT // 2)
            byte = 0
            for place in range(8):
                await bench.cycle(self.dut, CLOCKS_PER_BIT)
                byte |= int(self.dut.line_out.value) << place
            await bench.cycle(self.dut, CLOCKS_PER_BIT)
            assert self.dut.line_out.value == 1, "no stop bit"
            self.received.append(byte)

    async def send(self, data, stop=1):
        """Sends bytes; `stop` is the level of the stop bit."""
        clocks = 0.0
        for byte in data:
            for bit in [0, *[byte >> place & 1 for place in range(8)], stop]:
                self.dut.line_in.value = bit
                before, clocks = clocks, clocks + self.bit_clocks
                await bench.cycle(self.dut, round(clocks) - round(before))
        self.dut.line_in.value = 1

    async def ask(self, request, answer_bytes):
        """Sends a request and returns its answer, which must come soon and be as long as that."""
        self.received.clear()
        await self.send(request)
        await bench.cycle(self.dut, (answer_bytes + 2) * 10 * CLOCKS_PER_BIT)
        assert len(self.received) == answer_bytes, bytes(self.received)
        return bytes(self.received)

    async def write(self, address, value):
        """Writes a register."""
        request = b"W" + address.to_bytes(2, "big") + value.to_bytes(4, "big")
        assert await self.ask(request, 1) == b"w"

    async def read(self, address):
        """Reads a register."""
        answer = await self.ask(b"R" + address.to_bytes(2, "big"), 5)
        assert answer[:1] == b"r"
        return int.from_bytes(answer[1:], "big")


async def begin(dut, drift=1.0):
    """Resets the module."""
    await bench.start(dut, line_in=1, read_data=0)
    return Line(dut, drift)


@cocotb.test()
async def what_is_written_is_read(dut):
    """Random registers, also with a sender that is 2 % slow or fast."""
    chance = random.Random(int(os.environ.get("AXON_SEED", "1")))
    for drift in (1.0, 0.98, 1.02):
        line = await begin(dut, drift)
        values = {chance.randrange(1 << 16): chance.randrange(1 << 32) for _ in range(12)}
        for address, value in values.items():
            await line.write(address, value)
        assert line.registers == values
        for address, value in values.items():
            assert await line.read(address) == value


@cocotb.test()
async def a_request_without_its_end_is_forgotten(dut):
    """After the timeout the next request is understood; nothing was written."""
    line = await begin(dut)
    await line.send(b"W\x00\x10\x12\x34")
    await bench.cycle(dut, TIMEOUT + 10)
    await line.write(0x20, 0x01020304)
    assert line.writes == [0x20]


@cocotb.test()
async def noise_is_ignored(dut):
    """Bytes that are no command, bytes without a stop bit, and spikes do nothing."""
    line = await begin(dut)
    await line.send(b"\x00wr\xff")
    await line.send(b"W", stop=0)
    await bench.cycle(dut, 20 * CLOCKS_PER_BIT)
    dut.line_in.value = 0
    await bench.cycle(dut, 2)
    dut.line_in.value = 1
    await bench.cycle(dut, 20 * CLOCKS_PER_BIT)
    await line.write(0xFFFF, 0xFFFFFFFF)
    assert line.writes == [0xFFFF]


def test_uart_registers():
    """At ten cycles a bit."""
    parameters = {"CLOCKS_PER_BIT": CLOCKS_PER_BIT, "TIMEOUT": TIMEOUT}
    board_bench.run("uart_registers", tests=__file__, parameters=parameters)
