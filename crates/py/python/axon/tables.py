"""Changes of the tables, one by one or in transactions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self

from ._axon import Action, Change, EntryName

if TYPE_CHECKING:
    from ._axon import Ipv4, Mac, Octets, Prefix


class Tables(ABC):
    """What can be set in the tables of a switch (paper 004, section 3.3.2)."""

    @abstractmethod
    def change(self, change: Change) -> None:
        """Makes one change, or takes it into a transaction."""

    def set_udlk(self, id: int, fields: Sequence[str], frame_type: str | None = None) -> None:
        """Sets lookup key `id` (0 to 15): bytes of the frame as `B0-5` or `B12`, `INGRESS`, and
        `PRIORITY`, for frames of one type (`other`, `arp`, `ipv4`, `ipv6`, `mpls`, `tagged`,
        `axon`) or of all."""
        self.change(Change.udlk(id, fields, frame_type))

    def set_tcam(
        self, index: int, udlk: int, value: Octets, mask: Octets | None, action: Action
    ) -> None:
        """Sets an entry of the TCAM: of several that match the highest index wins. Value and mask
        have the fields of the key in their order; all bits count without a mask."""
        self.change(Change.tcam(index, udlk, value, mask, action))

    def set_mac(self, mac: Mac, action: Action | None, bridge: int = 0) -> None:
        """Sets what is done with frames for a MAC, or removes that."""
        self.change(Change.mac(mac, action, bridge))

    def set_ipv4(self, address: Ipv4, action: Action | None) -> None:
        """Sets what is done with packets for an address, or removes that."""
        self.change(Change.ipv4(address, action))

    def set_mpls(self, label: int, action: Action | None) -> None:
        """Sets what is done with packets with this label on top, or removes that."""
        self.change(Change.mpls(label, action))

    def set_prefix(self, prefix: Prefix, action: Action | None) -> None:
        """Sets what is done with packets for a prefix, or removes that; the longest wins."""
        self.change(Change.prefix(prefix, action))

    def set_miss(self, action: Action | None) -> None:
        """Sets what is done with frames that nothing matches; without it they are dropped as
        `no_route`."""
        self.change(Change.miss(action))

    def set_interface(
        self,
        number: int,
        port: int,
        destination: Mac | None = None,
        source: Mac | None = None,
    ) -> None:
        """Sets an interface: a port, and the addresses that frames get there."""
        self.change(Change.interface(number, port, destination, source))

    def set_group(self, number: int, interfaces: Sequence[int]) -> None:
        """Sets a group of interfaces, for copies or to spread flows over."""
        self.change(Change.group(number, interfaces))

    def set_tunnel(
        self,
        number: int,
        source: Ipv4,
        destination: Ipv4,
        protocol: int = 4,
        ttl: int = 64,
        shim: bytes = b"",
    ) -> None:
        """Sets a tunnel: the IPv4 header that goes before a packet, and a shim behind that."""
        self.change(Change.tunnel(number, source, destination, protocol, ttl, shim))

    def set_port(
        self,
        port: int,
        bridge: int = 0,
        routed: bool = True,
        learn: bool = False,
        axon: bool = False,
    ) -> None:
        """Sets how frames of a port are looked up: the bridge whose MAC entries count, whether
        addresses and labels are looked up, whether unknown sources are sent to the program,
        whether its frames begin with an Axon header."""
        self.change(Change.port(port, bridge, routed, learn, axon))

    def remove(self, entry: EntryName) -> None:
        """Removes an entry; to remove what is not there is no error."""
        self.change(Change.remove(entry))

    def set_lookup_table(
        self,
        table: str,
        index: object,
        udlk: int | None,
        value: object,
        mask: Octets | None,
        action: Action | None,
    ) -> None:
        """Sets an entry of `tcam`, `mac`, `ipv4`, `mpls` or `prefix`, with the parameters of the
        paper. Only the TCAM has an index, a key and a mask; `None` elsewhere. As in the paper's
        example, the value may have bits that the mask leaves out; they do not count."""
        if table == "tcam":
            if not isinstance(index, int) or udlk is None or action is None:
                raise TypeError("an entry of the TCAM has an index, a udlk and an action")
            if not isinstance(value, (str, bytes)):
                raise TypeError("the value of an entry of the TCAM is bytes or hexadecimal digits")
            if mask is not None:
                pairs = zip(_octets(value), _octets(mask), strict=True)
                value = bytes(byte & bits for byte, bits in pairs)
            self.set_tcam(index, udlk, value, mask, action)
            return
        setters: dict[str, Callable[..., None]] = {
            "mac": self.set_mac,
            "ipv4": self.set_ipv4,
            "mpls": self.set_mpls,
            "prefix": self.set_prefix,
        }
        if table not in setters:
            raise ValueError(f"no lookup table {table!r}: expected tcam, mac, ipv4, mpls, prefix")
        setters[table](value, action)

    def set_vif_table(
        self, number: int, destination: Mac | None, source: Mac | None, port: int
    ) -> None:
        """Sets an interface, with the parameters in the order of the paper."""
        self.set_interface(number, port, destination, source)

    # The paper's names.
    SetUDLK = set_udlk
    SetLookupTable = set_lookup_table
    SetVifTable = set_vif_table


def _octets(given: Octets) -> bytes:
    """Bytes, or hexadecimal digits as bytes."""
    return bytes.fromhex(given) if isinstance(given, str) else given


class Transaction(Tables):
    """Changes that are made together, all of them or none, when its block ends without an
    exception."""

    def __init__(self, commit: Callable[[Sequence[Change]], None]) -> None:
        self._commit = commit
        self.changes: list[Change] = []

    def change(self, change: Change) -> None:
        self.changes.append(change)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if kind is None:
            self._commit(self.changes)
