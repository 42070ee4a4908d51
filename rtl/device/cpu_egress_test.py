"""Tests of cpu_egress.sv: whole frames alternately, drops, and a slow reader."""

import random

import bench
import cocotb

PORTS = 4
BYTES = 256


class Writers:
    """Writes symbols of each ingress, with pauses, after an announcement."""

    def __init__(self, dut):
        self.dut = dut
        self.streams = [[] for _ in range(PORTS)]  # values of symbols, "announce" or None
        self.got = []
        self.drops = [[0, 0] for _ in range(PORTS)]

    def send(self, at, frame, is_bad=False, pause=0.0):
        stream = ["announce", None]
        for symbol in bench.symbols(frame, is_bad):
            while random.random() < pause:
                stream.append(None)
            stream.append(symbol)
        self.streams[at] += stream

    async def step(self, ready=True):
        announce = write = symbols = 0
        for at, stream in enumerate(self.streams):
            item = stream.pop(0) if stream else None
            symbols |= (item if isinstance(item, int) else random.getrandbits(9)) << 9 * at
            write |= isinstance(item, int) << at
            announce |= (item == "announce") << at
        self.dut.announce.value = announce
        self.dut.write.value = write
        self.dut.symbols.value = symbols
        self.dut.punt_ready.value = ready
        await bench.settle()
        if ready and int(self.dut.punt_valid.value):
            self.got.append(int(self.dut.punt_symbol.value))
        await bench.cycle(self.dut)
        for at in range(PORTS):
            self.drops[at][0] += int(self.dut.full_drop.value) >> at & 1
            self.drops[at][1] += int(self.dut.bad_drop.value) >> at & 1

    async def run(self, cycles, ready=1.0):
        for _ in range(cycles):
            await self.step(random.random() < ready)


async def start(dut):
    random.seed(int(cocotb.RANDOM_SEED))
    await bench.start(dut, announce=0, write=0, symbols=0, punt_ready=0)
    return Writers(dut)


@cocotb.test()
async def frames_of_all_ingresses_arrive_whole_and_in_order(dut):
    writers = await start(dut)
    sent = [[] for _ in range(PORTS)]
    for _ in range(25):
        for at in range(PORTS):
            frame = bytes([at]) + random.randbytes(random.randint(0, 90))
            is_bad = random.random() < 0.2
            writers.send(at, frame, is_bad, pause=random.choice([0, 0.5]))
            if not is_bad:
                sent[at].append(frame)
        while any(writers.streams):
            await writers.step(random.random() < 0.6)
        await writers.run(3000, 0.6)
    got = bench.frames_of(writers.got)
    assert not any(is_bad for _, is_bad in got)
    assert [[frame for frame, _ in got if frame[0] == at] for at in range(PORTS)] == sent
    assert [drops[1] for drops in writers.drops] == [25 - len(frames) for frames in sent]
    assert all(drops[0] == 0 for drops in writers.drops)


@cocotb.test()
async def ingresses_alternate(dut):
    writers = await start(dut)
    for at in range(PORTS):
        for _ in range(3):
            writers.send(at, bytes([at] * 20))
    await writers.run(100, 0)
    await writers.run(3000)
    first = [frame[0] for frame, _ in bench.frames_of(writers.got)]
    assert first == [0, 1, 2, 3] * 3


@cocotb.test()
async def a_full_buffer_drops_whole_frames_of_its_ingress_only(dut):
    writers = await start(dut)
    for number in range(10):
        writers.send(1, bytes([number] * 100))
    writers.send(2, bytes([99] * 100))
    await writers.run(1200, 0)
    assert writers.drops == [[0, 0], [8, 0], [0, 0], [0, 0]]
    await writers.run(3000)
    frames = [frame for frame, _ in bench.frames_of(writers.got)]
    assert sorted(frames) == [bytes([n] * 100) for n in (0, 1, 99)]
    assert int(dut.occupancies.value) == 0


@cocotb.test()
async def a_symbol_waits_until_it_is_accepted_and_takes_5_cycles(dut):
    writers = await start(dut)
    writers.send(3, bytes(range(50)))
    await writers.run(100, 0)
    assert int(dut.punt_valid.value) == 1 and int(dut.punt_symbol.value) == 0
    await writers.run(1 + 50 * 5)
    assert writers.got == bench.symbols(bytes(range(50)))


def test_cpu_egress():
    bench.run("cpu_egress", parameters={"PORTS": PORTS, "BUFFER_BYTES": BYTES}, tests=__file__)
