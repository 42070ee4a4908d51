"""Tests of forward.sv: the step of vectors/forward.txt, and of random headers and hops."""

import random

import bench
import cocotb
import ingress_reference as reference
import pytest

OPERATIONS = ["raw", "hop", "strip", "push"]
REASONS = {number: name for name, number in reference.DROPS.items()}
PUNTS = {number: name for name, number in reference.PUNTS.items()}


def fields_word(fields):
    """`fields` as axon::header_fields_t."""
    word = fields["type"] << 43 | fields["priority"] << 40 | fields["length"] << 24
    return word | fields["forward"] << 12 | fields["reverse"]


def decoded(word):
    """axon::decision_t as a dictionary."""
    decision = {}
    for name, bits in [
        ("frame_priority", 3), ("is_limited", 1), ("rewrites_destination", 1), ("place", 2),
        ("header", 47), ("becomes_error", 1), ("operation", 2), ("punt", 3), ("to", 4),
        ("drop", 5), ("is_drop", 1),
    ]:  # fmt: skip
        decision[name] = word & ((1 << bits) - 1)
        word >>= bits
    return decision


def expected(verdict, port, fields):
    """The parts of the decision that `verdict` asks for."""
    if verdict.startswith("drop-"):
        return {"is_drop": 1, "drop": reference.DROPS[verdict[5:]]}
    parts = {"is_drop": 0, "header": fields_word(fields), "frame_priority": fields["priority"]}
    if verdict.startswith("punt-"):
        operation = 1 if fields["forward"] else 0
        is_error = verdict == "punt-error"
        punt = reference.PUNTS[verdict[5:]]
        return parts | {"to": 15, "punt": punt, "operation": operation, "becomes_error": is_error}
    operation = OPERATIONS.index("strip" if verdict == "strip" else "hop")
    return parts | {"to": port, "operation": operation, "becomes_error": 0}


async def check(dut, fields, is_valid, hop, kinds, ups, route_bytes_max, name):
    dut.header.value = fields_word(fields)
    dut.is_valid.value = is_valid
    dut.hop.value = hop
    dut.kinds.value = sum(reference.KINDS[kind] << 2 * at for at, kind in enumerate(kinds))
    dut.ups.value = sum(up << at for at, up in enumerate(ups))
    dut.route_bytes_max.value = route_bytes_max
    await bench.settle()
    decision = decoded(int(dut.decision.value))
    width = int(dut.HOP_BITS.value)
    verdict, port = reference.forward(
        fields if is_valid else None, hop, width, kinds, ups, route_bytes_max
    )
    wanted = expected(verdict, port, fields)
    got = {key: decision[key] for key in wanted}
    assert got == wanted, f"{name}: {verdict}: {got}, expected {wanted}"
    return verdict


@cocotb.test()
async def decides_as_the_vectors(dut):
    width, count = int(dut.HOP_BITS.value), 0
    for line, (bits, _, kinds, packet), (verdict, *_) in reference.vectors("forward.txt"):
        packet = reference.from_hex(packet)
        if int(bits) != width:
            continue
        fields = reference.parse(packet, width)
        hop = reference.get_hop(packet, width, 0) if fields and fields["forward"] else 0
        kinds = kinds.ljust(4, "U")
        got = await check(
            dut, fields or dict.fromkeys(["type", "length", "forward", "reverse", "priority"], 1),
            fields is not None, hop, kinds, [1] * 4, 0xFFFF, f"forward.txt:{line}",
        )  # fmt: skip
        assert got == verdict, f"forward.txt:{line}: the reference says {got}"
        count += 1
    assert count >= 9, f"only {count} vectors"


@cocotb.test()
async def decides_as_the_reference_on_random_headers(dut):
    width, seen = int(dut.HOP_BITS.value), set()
    for number in range(4000):
        fields = {
            "type": random.randint(1, 5),
            "length": random.choice([6, 7, 20, 64, random.getrandbits(16)]),
            "forward": random.choice([0, 1, 2, random.getrandbits(12)]),
            "reverse": random.choice([0, 1, 0xFFE, 0xFFF]),
            "priority": random.getrandbits(3),
        }
        hop = random.choice([*range(6), (1 << width) - 1, (1 << width) - 2])
        hop = random.choice([hop, hop, hop, random.getrandbits(width)])
        seen.add(
            await check(
                dut, fields, random.random() < 0.9, hop, random.choices("UHA", k=4),
                [random.getrandbits(1) for _ in range(4)], random.choice([6, 19, 64, 0xFFFF]),
                f"case {number}",
            )  # fmt: skip
        )
    assert len(seen) == 9, f"not every verdict occurred: {sorted(seen)}"


@pytest.mark.parametrize("hop_bits", [4, 8, 16])
def test_forward(hop_bits):
    bench.run("forward", parameters={"HOP_BITS": hop_bits}, tests=__file__)
