"""Tests of inject.sv: frames of the CPU find their port."""

import random

import bench
import cocotb

PORTS = 4


@cocotb.test()
async def frames_go_to_the_port_in_their_first_byte(dut):
    random.seed(int(cocotb.RANDOM_SEED))
    await bench.start(dut, inject_valid=0, inject_symbol=0)
    sent = [[] for _ in range(PORTS)]
    stream, swallowed = [], 0
    for _ in range(300):
        port = random.choice([0, 1, 2, 3, 3, 4, 15, 16, 128, 255])
        frame = random.randbytes(random.choice([0, 1, 2, 30]))
        is_bad = random.random() < 0.2
        if port < PORTS:
            sent[port].append((frame, is_bad))
        else:
            swallowed += 1
        stream += [port, *bench.symbols(frame, is_bad)]
        if random.random() < 0.1:
            stream.append(0x100)  # an end without a frame
    got = [[] for _ in range(PORTS)]
    announced = [0] * PORTS
    no_such_port = 0
    position = 0
    for _ in range(4 * len(stream)):
        valid = position < len(stream) and random.random() < 0.7
        dut.inject_valid.value = valid
        dut.inject_symbol.value = stream[position] if valid else random.getrandbits(9)
        position += valid
        await bench.cycle(dut)
        assert int(dut.inject_ready.value) == 1
        no_such_port += int(dut.no_such_port.value)
        for port in range(PORTS):
            ended = len(got[port]) == 0 or got[port][-1] & 0x100
            if int(dut.announce.value) >> port & 1:
                assert ended, "announced within a frame"
                announced[port] += 1
            if int(dut.write.value) >> port & 1:
                got[port].append(int(dut.symbol.value))
    assert position == len(stream)
    assert [bench.frames_of(symbols) for symbols in got] == sent
    assert announced == [len(frames) for frames in sent]
    assert no_such_port == swallowed


def test_inject():
    bench.run("inject", parameters={"PORTS": PORTS}, tests=__file__)
