"""The programmable switch: in memory, control programs of whole fabrics, agents.

`Switch` is a switch in memory: frames in, frames out. `Program` is what controls the switches of a
fabric: a subclass `Fabric` of it in a file that a fabric file names (`program: {python: FILE}`).
`Agent` is a program beside a switch that looks at its packets; `run_agent` runs it.
"""

from ._axon import (
    PROTOCOL_VERSION,
    Action,
    AgentClient,
    Change,
    ChangeError,
    Entry,
    EntryName,
    Explanation,
    FullError,
    NoSwitchError,
    NotHeldError,
    Packet,
    Payload,
    ProtocolError,
    RefusedError,
    RegisterError,
    SwitchGone,
    arp_answer,
    arrange_tcam,
    combine_patterns,
    prefix_pattern,
    range_patterns,
)
from .agent import Agent, run_agent
from .plan import Host, Node, Plan, Port, Shape, Site, mac_bytes, mac_text
from .program import Program
from .switch import Control, Switch
from .tables import Tables, Transaction

__all__ = [
    "PROTOCOL_VERSION",
    "Action",
    "Agent",
    "AgentClient",
    "Change",
    "ChangeError",
    "Control",
    "Entry",
    "EntryName",
    "Explanation",
    "FullError",
    "Host",
    "NoSwitchError",
    "Node",
    "NotHeldError",
    "Packet",
    "Payload",
    "Plan",
    "Port",
    "Program",
    "ProtocolError",
    "RefusedError",
    "RegisterError",
    "Shape",
    "Site",
    "Switch",
    "SwitchGone",
    "Tables",
    "Transaction",
    "arp_answer",
    "arrange_tcam",
    "combine_patterns",
    "mac_bytes",
    "mac_text",
    "prefix_pattern",
    "range_patterns",
    "run_agent",
]
