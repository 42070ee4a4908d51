"""The programmable switch: in memory, and control programs of whole fabrics.

`Switch` is a switch in memory: frames in, frames out. `Program` is what controls the switches of a
fabric: a subclass `Fabric` of it in a file that a fabric file names (`program: {python: FILE}`).
"""

from ._axon import (
    PROTOCOL_VERSION,
    Action,
    Change,
    ChangeError,
    Entry,
    EntryName,
    Explanation,
    RegisterError,
    arp_answer,
    arrange_tcam,
    combine_patterns,
    prefix_pattern,
    range_patterns,
)
from .plan import Host, Node, Plan, Port, Shape, Site, mac_bytes, mac_text
from .program import Program
from .switch import Control, Switch
from .tables import Tables, Transaction

__all__ = [
    "PROTOCOL_VERSION",
    "Action",
    "Change",
    "ChangeError",
    "Control",
    "Entry",
    "EntryName",
    "Explanation",
    "Host",
    "Node",
    "Plan",
    "Port",
    "Program",
    "RegisterError",
    "Shape",
    "Site",
    "Switch",
    "Tables",
    "Transaction",
    "arp_answer",
    "arrange_tcam",
    "combine_patterns",
    "mac_bytes",
    "mac_text",
    "prefix_pattern",
    "range_patterns",
]
