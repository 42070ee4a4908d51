#!/usr/bin/env python3
"""Makes the files that share the register map of the device from registers.toml.

    registers.py            writes them
    registers.py --check    lists those that are not up to date; fails if there are any

They are a SystemVerilog package, tables in Rust, and a page of docs. Needs Python 3.11.
"""

import re
import sys
import textwrap
import tomllib
from pathlib import Path

RTL = Path(__file__).resolve().parent
SOURCE = RTL / "registers.toml"
WORD_MAX = 2**32 - 1


# The description, checked.


def load():
    """Returns the description; fails if it contradicts itself or the types of the device."""
    with open(SOURCE, "rb") as file:
        described = tomllib.load(file)
    registers = described["device"], described["port"]
    for register in [*described["device"], *described["port"]]:
        name, value = register["name"], register.get("value")
        if value is None:
            limits = range(register["min"], register["max"] + 1)
            require(limits.stop <= WORD_MAX + 1, f"{name}: `max` exceeds 32 bits")
            require(register.get("default", limits.start) in limits, f"{name}: default off limits")
            writable = register.get("access") == "read_write"
            require(writable == ("default" in register), f"{name}: a default makes it writable")
    counters, tables = described["counters"], described["table"]
    for block in registers:
        areas = [(register["offset"], 1, register["name"]) for register in block]
        areas += [(area["offset"], area["length"], area["name"]) for area in tables]
        areas.append((counters["offset"], counters["length"], "counters"))
        areas.sort()
        for (offset, length, name), (following, _, other) in zip(areas, areas[1:]):
            require(offset + length <= following, f"{name} and {other} overlap")
        require(areas[-1][0] + areas[-1][1] <= described["block"], "a block is too short")
    for table in tables:
        require(table["offset"] % table["length"] == 0, f"{table['name']}: not aligned")
        bits = sum(width(part["max"]) for part in table["index"])
        require(1 << bits == table["length"], f"{table['name']}: index and length differ")
    names = [counter["name"] for counter in described["counter"]]
    require(len(names) <= counters["length"], "too many counters")
    require(len(names) == len(set(names)), "two counters have one name")
    for kind in ["drop", "punt"]:
        found = {
            counter["name"]: counter[kind] for counter in described["counter"] if kind in counter
        }
        require(found == reasons(kind), f"{kind}s differ from axon::{kind}_t: {reasons(kind)}")
    return described


def reasons(kind):
    """Names and numbers of axon::drop_t or axon::punt_t."""
    text = (RTL / "device/axon.sv").read_text()
    found = re.findall(rf"\b{kind.upper()}_(\w+)\s*=\s*\d+'d(\d+)", text)
    return {name.lower(): int(number) for name, number in found}


def require(condition, message):
    if not condition:
        sys.exit(f"{SOURCE.name}: {message}")


def width(largest):
    """Bits of a number."""
    return max(1, largest.bit_length())


# SystemVerilog.


def systemverilog(described):
    lines = [
        "// Register map of the device: made by registers.py from registers.toml; do not edit.",
        "//",
        "// Addresses count 32-bit words: offsets within the block of the device or of a port, and",
        "// numbers of counters.",
        "",
        "`default_nettype none",
        "",
        "// Not every module uses every constant.",
        "/* verilator lint_off UNUSEDPARAM */",
        "package register_map;",
    ]

    def constant(type_bits, name, value):
        return f"    localparam logic [{type_bits - 1}:0] {name.upper()} = {value};"

    block_bits = width(described["block"] - 1)
    lines.append(f"    localparam int unsigned BLOCK_BITS = {block_bits};")
    for block in ["device", "port"]:
        lines += ["", f"    // Registers of {'the device' if block == 'device' else 'a port'}."]
        for register in described[block]:
            name = f"{block}_{register['name']}"
            lines.append(constant(block_bits, name, f"{block_bits}'h{register['offset']:03x}"))
            if "value" in register:
                lines.append(constant(32, f"{name}_value", f"32'h{register['value']:x}"))
            if "default" in register:
                bits = width(register["max"])
                lines.append(f"    localparam int unsigned {name.upper()}_BITS = {bits};")
                lines.append(constant(bits, f"{name}_default", f"{bits}'d{register['default']}"))
    lines += ["", "    // Tables of a port, aligned to their length."]
    for table in described["table"]:
        name = f"table_{table['name']}"
        lines.append(constant(block_bits, name, f"{block_bits}'h{table['offset']:03x}"))
        bits = width(table["length"] - 1)
        lines.append(f"    localparam int unsigned {name.upper()}_BITS = {bits};")
    lines += ["", "    // Counters of a port, and of the CPU in the block of the device."]
    counters = described["counters"]
    bits = width(counters["length"] - 1)
    lines.append(constant(block_bits, "counters", f"{block_bits}'h{counters['offset']:03x}"))
    lines.append(f"    localparam int unsigned COUNTERS_BITS = {bits};")
    for number, counter in enumerate(described["counter"]):
        lines.append(constant(bits, f"counter_{counter['name']}", f"{bits}'d{number}"))
    for kind in ["drop", "punt"]:
        chosen = [counter for counter in described["counter"] if kind in counter]
        lines += [
            "",
            f"    function automatic logic [{bits - 1}:0] counter_of_{kind}"
            f"(input axon::{kind}_t {kind});",
            f"        case ({kind})",
        ]
        for counter in chosen[1:]:
            name = counter["name"].upper()
            target = f"axon::{kind.upper()}_{name}"
            lines.append(f"            {target}: counter_of_{kind} = COUNTER_{name};")
        default = chosen[0]["name"].upper()
        lines += [
            f"            default: counter_of_{kind} = COUNTER_{default};",
            "        endcase",
            "    endfunction",
        ]
    lines += ["endpackage", "/* verilator lint_on UNUSEDPARAM */"]
    return "\n".join(lines) + "\n"


# Rust.

RUST_TYPES = '''\
//! Register map of the device in gates: made by `rtl/registers.py` from `rtl/registers.toml`; do
//! not edit.
//!
//! Addresses count 32-bit words. The block of the device begins at 0, that of port `p` at
//! [`port_block`]; offsets are within a block.

/// Register of the device or of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Name in messages.
    pub name: &'static str,
    /// Offset in its block, in words.
    pub offset: u16,
    /// Least value.
    pub min: u32,
    /// Largest value.
    pub max: u32,
    /// Value after reset if the register can be written.
    pub default: Option<u32>,
}

/// Field of a word, or part of the number of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Name in messages.
    pub name: &'static str,
    /// Number of its lowest bit.
    pub shift: u8,
    /// Largest value; the least is 0.
    pub max: u32,
}

/// Table of a port, write-only, with one word for each element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Table {
    /// Name in messages.
    pub name: &'static str,
    /// Offset of element 0 in the block of the port, in words.
    pub offset: u16,
    /// Number of elements.
    pub length: u16,
    /// Parts of the number of an element.
    pub index: &'static [Field],
    /// Fields of an element.
    pub fields: &'static [Field],
}

/// Counter of a port, or of the CPU in the block of the device: 32 bits, which wrap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Name in messages.
    pub name: &'static str,
    /// Offset in the block of the port, in words.
    pub offset: u16,
    /// Number of the reason if it counts drops.
    pub drop: Option<u8>,
    /// Number of the reason if it counts punts.
    pub punt: Option<u8>,
}

const fn field(name: &'static str, shift: u8, max: u32) -> Field {
    Field { name, shift, max }
}

/// Words of a block.
pub const BLOCK: u16 = @block@;

/// Largest number of ports of a device.
pub const PORTS_MAX: u16 = @ports_max@;

/// Returns the address of the block of `port`.
pub const fn port_block(port: u16) -> u16 {
    (port + 1) * BLOCK
}
'''


def rust(described):
    text = RUST_TYPES.replace("@block@", f"{described['block']:#x}")
    text = text.replace("@ports_max@", str(described["ports_max"]))
    modules = [
        ("device", "Registers of the device.", described["device"]),
        ("port", "Registers of a port.", described["port"]),
    ]
    for module, title, registers in modules:
        body = []
        for register in registers:
            body += rust_doc(register["text"])
            body.append(rust_register(register))
            for name, value in register.get("values", {}).items():
                full = f"{register['name']}_{name}"
                body += [f"/// Value of [`{register['name'].upper()}`]: {name.replace('_', '-')}."]
                body.append(f"pub const {full.upper()}: u32 = {value};")
        text += rust_module(module, title, ["use super::Register;"], body, "Register", registers)
    body = []
    for table in described["table"]:
        body += rust_doc(table["text"])
        body.append(rust_table(table))
    uses = ["use super::{Table, field};"]
    text += rust_module("table", "Tables of a port.", uses, body, "Table", described["table"])
    body = []
    for number, counter in enumerate(described["counter"]):
        body += rust_doc(counter["text"])
        body.append(rust_counter(counter, described["counters"]["offset"] + number))
    uses = ["use super::Counter;"]
    counters = described["counter"]
    text += rust_module("counter", "Counters of a port.", uses, body, "Counter", counters)
    return text


def rust_doc(text):
    return [f"/// {line}" for line in textwrap.wrap(text, 92)]


def rust_module(name, title, uses, body, element, members):
    listed = [member["name"].upper() for member in members]
    lines = [*uses, ""]
    for line in body:
        lines += line.split("\n")
        if line.startswith("pub"):
            lines.append("")
    lines += ["/// All of them, in order.", *rust_list(element, listed)]
    indented = [f"    {line}" if line else "" for line in lines]
    return f"\n/// {title}\npub mod {name} {{\n" + "\n".join(indented) + "\n}\n"


def rust_list(element, names):
    """The constant ALL as rustfmt has it, at an indentation of four."""
    begin, value = f"pub const ALL: &[{element}] =", f"&[{', '.join(names)}];"
    if len(begin) + 1 + len(value) <= 96:
        return [f"{begin} {value}"]
    if len(value) <= 92:
        return [begin, f"    {value}"]
    return [f"{begin} &[", *(f"    {name}," for name in names), "];"]


def rust_constant(name, kind, fields):
    """A constant, on one line if it fits at an indentation of four."""
    one = f"pub const {name.upper()}: {kind} = {kind} {{ {', '.join(fields)} }};"
    flat = f"    {kind} {{ {', '.join(fields)} }};"
    if "\n" not in one:
        if len(one) <= 96:
            return one
        if len(flat) <= 96:
            return f"pub const {name.upper()}: {kind} =\n{flat}"
    lines = [f"    {line}" for item in fields for line in f"{item},".split("\n")]
    return "\n".join([f"pub const {name.upper()}: {kind} = {kind} {{", *lines, "};"])


def rust_register(register):
    least, most = (register.get(key, register.get("value")) for key in ["min", "max"])
    default = f"Some({rust_number(register['default'])})" if "default" in register else "None"
    fields = [
        f'name: "{register["name"]}"',
        f"offset: {register['offset']:#05x}",
        f"min: {rust_number(least)}",
        f"max: {rust_number(most)}",
        f"default: {default}",
    ]
    return rust_constant(register["name"], "Register", fields)


def rust_table(table):
    index, shift = [], 0
    for part in reversed(table["index"]):
        index.insert(0, (part["name"], shift, part["max"]))
        shift += width(part["max"])
    fields = [(part["name"], part["shift"], part["max"]) for part in table["field"]]

    def listed(name, parts):
        calls = [f'field("{name}", {shift}, {rust_number(most)})' for name, shift, most in parts]
        one = f"{name}: &[{', '.join(calls)}]"
        if len(one) <= 91:
            return one
        return f"{name}: &[\n" + "".join(f"    {call},\n" for call in calls) + "]"

    return rust_constant(
        table["name"],
        "Table",
        [
            f'name: "{table["name"]}"',
            f"offset: {table['offset']:#05x}",
            f"length: {table['length']}",
            listed("index", index),
            listed("fields", fields),
        ],
    )


def rust_counter(counter, offset):
    reasons = [f"Some({counter[kind]})" if kind in counter else "None" for kind in ["drop", "punt"]]
    fields = [f'name: "{counter["name"]}"', f"offset: {offset:#05x}"]
    fields += [f"drop: {reasons[0]}", f"punt: {reasons[1]}"]
    return rust_constant(counter["name"], "Counter", fields)


def rust_number(value):
    if value < 10000:
        return str(value)
    digits = f"{value:x}"
    if value == WORD_MAX or value > 0xFFFFFF:
        return "0x" + "_".join(textwrap.wrap(digits.rjust(8, "0"), 4))
    return f"{value:_}"


# Docs.


def docs(described):
    block = described["block"]
    lines = [
        "# Registers of the device in gates",
        "",
        "<!-- Made by rtl/registers.py from rtl/registers.toml; do not edit. -->",
        "",
        "The registers configure the ports and route tables of `axon_device` and read its counters.",
        "Addresses count 32-bit words. The block of the device is at 0, that of port p at",
        f"(p + 1) x {block:#x}. An address without a register reads as 0, and a write to it does nothing.",
        "",
        "Drivers refuse values outside the limits; the gates keep the low bits of a value.",
        "",
        "To change an entry of a route table: clear its bit in `valid`, wait 64 cycles, write its rows,",
        "attributes and bytes, and set the bit. While frames arrive, leave 16 cycles between the write",
        "of a row and the next write: the port writes a row between two lookups.",
        "",
        "## The device",
        "",
        *register_table(described["device"]),
        "",
        "## A port",
        "",
        *register_table(described["port"]),
        "",
        "## Tables of a port",
        "",
        "Tables are write-only: the driver keeps a copy.",
    ]
    for table in described["table"]:
        index = ", ".join(
            f"`{part['name']}` ({bits_of(part)}, at most {part['max']})"
            for part in table["index"]
        )
        first, last = table["offset"], table["offset"] + table["length"] - 1
        lines += [
            "",
            f"**`{table['name']}`**, {first:#05x} to {last:#05x}. {table['text']}",
            f"Address, most significant part first: {index}.",
            "",
            "| field | bits | most | meaning |",
            "|---|---|---|---|",
        ]
        for part in table["field"]:
            low, high = part["shift"], part["shift"] + width(part["max"]) - 1
            bits = f"{high}:{low}" if high > low else str(low)
            lines.append(f"| `{part['name']}` | {bits} | {number(part['max'])} | {part['text']} |")
    lines += [
        "",
        "## Counters",
        "",
        "All counters have 32 bits, wrap, and are cleared by reset. In the block of the device they",
        "count the CPU as a port: it receives what the CPU injects, and sends what the CPU gets.",
        "",
        "| offset | counter | reason | meaning |",
        "|---|---|---|---|",
    ]
    for at, counter in enumerate(described["counter"]):
        found = [f"{kind} {counter[kind]}" for kind in ["drop", "punt"] if kind in counter]
        reason = "".join(found)
        offset = described["counters"]["offset"] + at
        lines.append(f"| {offset:#05x} | `{counter['name']}` | {reason} | {counter['text']} |")
    return "\n".join(lines) + "\n"


def bits_of(part):
    count = width(part["max"])
    return "1 bit" if count == 1 else f"{count} bits"


def register_table(registers):
    lines = [
        "| offset | register | access | limits | after reset | meaning |",
        "|---|---|---|---|---|---|",
    ]
    for register in registers:
        if "value" in register:
            limits = f"{number(register['value'])}"
        else:
            limits = f"{register['min']} to {number(register['max'])}"
        access = "read, write" if "default" in register else "read"
        values = register.get("values", {})
        text = register["text"]
        if values:
            parts = [f"{value}: {name.replace('_', '-')}" for name, value in values.items()]
            text += f" {', '.join(parts)}."
        lines.append(
            f"| {register['offset']:#05x} | `{register['name']}` | {access} | {limits} | "
            f"{register.get('default', '')} | {text} |"
        )
    return lines


def number(value):
    return f"{value:#x}" if value > 0xFFFFFF else str(value)


def main(arguments):
    described = load()
    files = {
        RTL / "device/register_map.sv": systemverilog(described),
        RTL.parent / "crates/rtl/src/registers.rs": rust(described),
        RTL.parent / "docs/rtl-registers.md": docs(described),
    }
    if arguments == ["--check"]:
        stale = [path for path in files if not path.exists() or path.read_text() != files[path]]
        for path in stale:
            print(f"{path.relative_to(RTL.parent)} is not up to date: run rtl/registers.py")
        return 1 if stale else 0
    if arguments:
        print(__doc__, file=sys.stderr)
        return 2
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
