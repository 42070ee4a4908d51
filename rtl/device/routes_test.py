"""Tests of routes.sv against a model: a list of entries, searched from the start."""

import random

import bench
import cocotb
from bench import cycle, start

ROUTES = 32
KEY_BYTES = 12


class Entry:
    """A route: a key, None in place of a source means any."""

    def __init__(self, destination, source, attributes, memory):
        self.destination, self.source = destination, source
        self.attributes, self.memory = attributes, memory

    def accepts(self, position, nibble, is_low):
        address = self.destination if position < 6 else self.source
        if address is None:
            return True
        byte = address[position % 6]
        return nibble == (byte & 15 if is_low else byte >> 4)

    def matches(self, key):
        return self.destination == key[:6] and self.source in (None, key[6:])


class Table:
    """The table of `dut` and what a driver remembers of it."""

    def __init__(self, dut):
        self.dut = dut
        self.entries = [None] * ROUTES
        self.rows = {}

    async def write(self, kind, address, data):
        strobe = getattr(self.dut, f"{kind}_write")
        strobe.value = 1
        self.dut.write_address.value = address
        self.dut.write_data.value = data
        await cycle(self.dut)
        strobe.value = 0

    async def clear(self):
        for is_low in range(2):
            for row in range(KEY_BYTES * 16):
                self.rows[is_low, row] = 0
                await self.write("row", is_low << 8 | row, 0)

    def mask(self, selects):
        return sum(
            1 << at for at, entry in enumerate(self.entries) if entry is not None and selects(entry)
        )

    async def disable(self, at):
        self.entries[at] = None
        self.dut.valid.value = self.mask(lambda entry: True)
        await cycle(self.dut)

    async def set(self, at, entry, pause=None):
        """Makes `entry` the one at `at`; awaits `pause` before each row."""
        await self.disable(at)
        for (is_low, row), old in self.rows.items():
            accepts = entry.accepts(row >> 4, row & 15, is_low)
            new = old | 1 << at if accepts else old & ~(1 << at)
            if new != old:
                if pause is not None:
                    await pause()
                self.rows[is_low, row] = new
                await self.write("row", is_low << 8 | row, new)
        await self.write("attributes", at, entry.attributes)
        for offset, byte in enumerate(entry.memory):
            await self.write("memory", at << 5 | offset, byte * 0x01010101)
        self.entries[at] = entry
        self.dut.by_source.value = self.mask(lambda entry: entry.source is not None)
        self.dut.valid.value = self.mask(lambda entry: True)
        await cycle(self.dut)

    def find(self, key):
        """The number of the entry for `key`."""
        found = [at for at, entry in enumerate(self.entries) if entry and entry.matches(key)]
        found.sort(key=lambda at: (self.entries[at].source is None, at))
        return found[0] if found else None


async def begin(dut):
    await start(
        dut, head_valid=0, head_data=0, head_index=0, memory_place=0, memory_offset=0, keeps=0, valid=0,
        by_source=0, row_write=0, attributes_write=0, memory_write=0, write_address=0, write_data=0,
    )
    table = Table(dut)
    await table.clear()
    return table


async def send(dut, key, first=0):
    """Shows bytes from number `first` on to the lookup and leaves the cycle behind the last."""
    for index, byte in enumerate(key, first):
        dut.head_valid.value = 1
        dut.head_index.value = min(index, 15)
        dut.head_data.value = byte
        await cycle(dut)
    dut.head_valid.value = 0


async def finish(dut, keeps=False):
    """Number and place of the entry that is found, after the key and up to the cycle after done."""
    assert not dut.done.value
    await cycle(dut)
    assert not dut.done.value, "done is 3 cycles after byte 11 was in head"
    await cycle(dut)
    assert dut.done.value
    found = int(dut.entry.value) if dut.hit.value else None
    place = int(dut.place.value)
    dut.keeps.value = int(keeps)
    await cycle(dut)
    dut.keeps.value = 0
    assert not dut.done.value
    return found, place


async def look_up(dut, key):
    """Number of the entry for a key, None without one; ends when the next frame may begin."""
    await send(dut, key)
    found, _ = await finish(dut)
    await cycle(dut, 3)
    return found


async def read(dut, place, offsets):
    """Bytes of a fetched entry, one asked for in each cycle from this one on."""
    dut.memory_place.value = place
    data = []
    for offset in offsets:
        dut.memory_offset.value = offset
        await cycle(dut)
        data.append(int(dut.memory_data.value))
    return bytes(data)


def random_entry(rng, destinations, sources, any_source=0.5):
    return Entry(
        rng.choice(destinations),
        None if rng.random() < any_source else rng.choice(sources),
        rng.getrandbits(13),
        rng.randbytes(32),
    )


def random_addresses(rng, count):
    """Addresses, many of which differ in one nibble only."""
    addresses = [rng.randbytes(6) for _ in range(count // 2)]
    while len(addresses) < count:
        near = bytearray(rng.choice(addresses))
        near[rng.randrange(6)] ^= rng.randrange(1, 16) << rng.choice([0, 4])
        addresses.append(bytes(near))
    return addresses


@cocotb.test()
async def random_tables_find_what_the_model_finds(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    table = await begin(dut)
    hits = misses = by_source = 0
    for round_number in range(12):
        destinations, sources = random_addresses(rng, 10), random_addresses(rng, 6)
        for at in rng.sample(range(ROUTES), rng.randrange(1, ROUTES)):
            await table.set(at, random_entry(rng, destinations, sources))
        for at in rng.sample(range(ROUTES), 3):
            await table.disable(at)
        for _ in range(60):
            key = rng.choice(destinations) + rng.choice(sources)
            expected = table.find(key)
            await send(dut, key)
            found, place = await finish(dut, rng.random() < 0.5)
            assert found == expected, f"round {round_number}: {key.hex()}"
            if found is None:
                misses += 1
                await cycle(dut, 3)
                continue
            hits += 1
            entry = table.entries[found]
            by_source += entry.source is not None
            parts = dut.rewrites_destination, dut.frame_priority, dut.header_bytes, dut.to
            word = 0
            for part, bits in zip(parts, [1, 3, 5, 4]):
                word = word << bits | int(part.value)
            assert word == entry.attributes
            # A header of 6 bytes or more and then the destination, or only that.
            header_bytes = int(dut.header_bytes.value)
            offsets = [*range(max(header_bytes, 6) if header_bytes else 0), *range(24, 30)]
            assert await read(dut, place, offsets) == bytes(entry.memory[at] for at in offsets)
    assert min(hits, misses, by_source) > 50, (hits, misses, by_source)


@cocotb.test()
async def headers_of_two_frames_wait_while_others_are_looked_up(dut):
    """Frames as close as the MAC lets them be; only some of those behind the two are kept."""
    rng = random.Random(cocotb.RANDOM_SEED)
    table = await begin(dut)
    destinations = [rng.randbytes(6) for _ in range(ROUTES)]
    for at, destination in enumerate(destinations):
        await table.set(at, Entry(destination, None, at | (at % 3 * 8) << 4, rng.randbytes(32)))
    waiting = []
    for _ in range(300):
        found = rng.randrange(ROUTES)
        keeps = len(waiting) < 2 and rng.random() < 0.7
        await send(dut, destinations[found] + rng.randbytes(6))
        number, place = await finish(dut, keeps)
        assert number == found
        if keeps:
            waiting.append((found, place))
        await cycle(dut, 3)
        if waiting and rng.random() < 0.4:
            first, place = waiting.pop(0)
            assert await read(dut, place, range(32)) == table.entries[first].memory


@cocotb.test()
async def an_entry_for_a_source_wins_and_then_the_lowest_number(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    table = await begin(dut)
    destination, source, other = (rng.randbytes(6) for _ in range(3))
    for at, of in [(3, None), (9, None), (12, source), (20, source), (5, other)]:
        await table.set(at, Entry(destination, of, at, bytes([at] * 32)))
    assert await look_up(dut, destination + source) == 12
    assert await look_up(dut, destination + other) == 5
    assert await look_up(dut, destination + rng.randbytes(6)) == 3
    assert await look_up(dut, rng.randbytes(6) + source) is None
    await table.disable(12)
    assert await look_up(dut, destination + source) == 20
    await table.disable(20)
    assert await look_up(dut, destination + source) == 3
    await table.disable(3)
    assert await look_up(dut, destination + source) == 9


@cocotb.test()
async def a_short_frame_leaves_no_trace(dut):
    rng = random.Random(cocotb.RANDOM_SEED)
    table = await begin(dut)
    destination, source = rng.randbytes(6), rng.randbytes(6)
    await table.set(7, Entry(destination, source, 7, bytes(32)))
    for length in range(1, KEY_BYTES):
        await send(dut, rng.randbytes(length))
        await cycle(dut, rng.randrange(1, 5))
        assert not dut.done.value
        assert await look_up(dut, destination + source) == 7
        await send(dut, (destination + source)[:length])
        await cycle(dut, 3)
        assert await look_up(dut, rng.randbytes(12)) is None


@cocotb.test()
async def updates_do_not_disturb_frames_that_stream(dut):
    """Entries come and go while frames are looked up; those that stay are always found."""
    rng = random.Random(cocotb.RANDOM_SEED)
    table = await begin(dut)
    stable, changing = random_addresses(rng, 8), random_addresses(rng, 8)
    sources = random_addresses(rng, 4)
    for at in range(0, ROUTES, 2):
        await table.set(at, random_entry(rng, stable, sources, 0.9))
    stays = [entry for entry in table.entries if entry]

    is_busy = False

    async def between_lookups():  # as route_writer
        while is_busy:
            await cycle(dut)

    updates = 0

    async def update():
        nonlocal updates
        while True:
            at = rng.randrange(1, ROUTES, 2)
            await table.set(at, random_entry(rng, changing, sources), between_lookups)
            updates += 1
            await cycle(dut, rng.randrange(30))

    task = cocotb.start_soon(update())
    await cycle(dut)
    hits = 0
    for _ in range(1500):
        destinations = stable if rng.random() < 0.7 else changing
        key = rng.choice(destinations) + rng.choice(sources)
        before = table.find(key)
        is_busy = True
        await cycle(dut)
        await send(dut, key)
        is_busy = False
        await send(dut, rng.randbytes(rng.randrange(20)), KEY_BYTES)
        for _ in range(4):
            if dut.done.value:
                break
            await cycle(dut)
        # A frame of more than 12 bytes has been looked up long before its end.
        found = int(dut.entry.value) if dut.hit.value else None
        expected = table.find(key)
        if found != expected and found != before:
            assert key[:6] in changing, f"{key.hex()}: {found}, not {expected}"
            entry = None if found is None else table.entries[found]
            assert entry is None or entry.matches(key)
        hits += key[:6] in changing and found is not None
        if key[:6] in stable:
            assert found == expected and (found is None or table.entries[found] in stays)
        await cycle(dut, rng.randrange(3, 8))
    task.cancel()
    assert updates > 50 and hits > 50, (updates, hits)


def test_routes():
    bench.run("routes", tests=__file__)
