"""The control messages of vectors/control.txt, from postcard's published rules.

Numbers are varints, enumerations and options begin with a number, lists with their length,
addresses are their bytes, and fields follow in order.
"""


def number(value):
    """A varint: seven bits a byte, the lowest first, the highest bit set in all but the last."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out + bytes([value]))


def some(value):
    return b"\x01" + value


def several(*values):
    return number(len(values)) + b"".join(values)


def octets(value):
    return number(len(value)) + value


def hops(*ports):
    return several(*map(number, ports))


def route(*ports, layer=0, tagged=False):
    """Hops, and one byte: the layer, and in its highest bit whether frames leave tagged."""
    return hops(*ports) + bytes([layer | tagged << 7])


NONE = b"\x00"
CONTROL = 0xFFFF
SWITCH, CONTROLLER = number(0), number(1)
FOUR_BITS, EIGHT_BITS, SIXTEEN_BITS = number(0), number(1), number(2)
PEER_HOST, PEER_AXON = number(0), number(1)
TARGET_IP, TARGET_MAC = number(0), number(1)
INCARNATION = number(0x0102030405060708) + number(300)
SOURCE_MAC = bytes([2, 0, 0, 0, 0, 1])
TARGET_MAC_ADDRESS = bytes([2, 0, 0, 0, 0, 2])
SOURCE_IP = number(0) + bytes([10, 0, 0, 1])
TARGET_IP_ADDRESS = number(0) + bytes([10, 0, 0, 2])
LOCALHOST = number(1) + bytes(15) + b"\x01"
# A sequence number and a tag of fixed length.
GRANT = number(500) + b"sixteen bytes.16"
STAMP = number(2) + number(1000)
CHALLENGE, ECHO = number(0x1122334455667788), number(0x99AA)
U64_MAX = number(2**64 - 1)


def message(kind, *fields):
    return number(kind) + b"".join(fields)


item = message
HOST_FRAME = number(4) + octets(b"\xff" * 14)

# In the order of the items' numbers.
ITEMS = several(
    item(0, number(1), SOURCE_MAC, several(SOURCE_IP, LOCALHOST)),
    item(1, number(1), SOURCE_MAC),
    item(2, number(1), TARGET_MAC_ADDRESS, some(SOURCE_MAC), STAMP, route(2, 5)),
    item(3, number(1), TARGET_MAC_ADDRESS, NONE, STAMP),
    item(4, number(1), SOURCE_MAC, SOURCE_IP),
)
LOAD_ITEMS = several(
    item(5, number(1000)),
    item(6, number(1_000_003),
         several(number(0) + number(2**40), number(300) + number(0))),
)

PRIMARY = route(2, 5) + several(number(7))
BACKUP = route(3, 1, 5) + several(number(7), number(300))
BACKUP_ITEMS = several(
    item(7, number(1), TARGET_MAC_ADDRESS, some(SOURCE_MAC), PRIMARY, some(BACKUP)),
    item(7, number(1), TARGET_MAC_ADDRESS, NONE, PRIMARY, NONE),
    item(8, number(1), TARGET_MAC_ADDRESS, some(SOURCE_MAC), STAMP, route(3, 1, 5)),
)

GROUP = number(0) + bytes([239, 1, 2, 3])
MDNS = number(1) + b"\xff\x02" + bytes(13) + b"\xfb"
NO, YES = b"\x00", b"\x01"
GROUP_ITEMS = several(
    item(9, number(1), SOURCE_MAC, GROUP, YES),
    item(9, number(1), SOURCE_MAC, MDNS, NO),
    item(10, number(1), SOURCE_MAC, GROUP, YES),
    item(11, number(1), SOURCE_MAC, GROUP, number(300), YES,
         several(TARGET_MAC_ADDRESS, SOURCE_MAC)),
    item(11, number(1), SOURCE_MAC, MDNS, number(0), NO, several()),
)

# A message ends with the VLAN of its hosts, if they are in one.
VLAN = number(300)
VLAN_ITEMS = several(
    item(2, number(1), TARGET_MAC_ADDRESS, NONE, STAMP, route(2, 5, layer=3, tagged=True)),
)

PARTNER = number(0xFFFF) + SOURCE_MAC + number(9)
DOWN, DISTRIBUTING = number(0), number(6)
BOND_ITEMS = several(
    item(12, number(3), DISTRIBUTING, some(PARTNER), YES),
    item(12, number(3), DOWN, NONE, NO),
    item(13, number(3), PARTNER, YES),
)

MESSAGES = {
    "hello": message(0, number(2), SWITCH, EIGHT_BITS, CHALLENGE),
    "hello-controller-nibble": message(0, number(2), CONTROLLER, FOUR_BITS, CHALLENGE),
    "hello-reply": message(1, number(2), CONTROLLER, SIXTEEN_BITS, ECHO, CHALLENGE),
    "hello-confirm": message(2, ECHO),
    "heartbeat": message(3, ECHO, some(INCARNATION + hops(3, CONTROL))),
    "heartbeat-without-path": message(3, ECHO, NONE),
    "controller-hello": message(
        4, number(3), U64_MAX,
        several(number(0) + PEER_HOST,
                number(200) + PEER_AXON + number(9) + number(2) + SWITCH)),
    "controller-hello-ack": message(5, number(3), U64_MAX),
    "arp-request-ip": message(
        6, number(7), number(1), SOURCE_MAC, some(SOURCE_IP), TARGET_IP + LOCALHOST,
        NONE),
    "arp-request-mac": message(
        6, number(7), number(1), SOURCE_MAC, NONE, TARGET_MAC + TARGET_MAC_ADDRESS,
        some(TARGET_IP_ADDRESS)),
    "arp-target": message(
        7, number(7), INCARNATION, number(1), SOURCE_MAC, some(SOURCE_IP), number(5),
        TARGET_MAC_ADDRESS, some(TARGET_IP_ADDRESS), STAMP, route(3, 1), NO,
        route(2, 5), YES, hops(3, CONTROL), GRANT),
    "arp-reply": message(
        8, number(7), number(1), SOURCE_MAC, TARGET_MAC_ADDRESS, NONE, STAMP, route(2, 5),
        YES, GRANT),
    "dhcp-relay": message(9, HOST_FRAME),
    "host-frame": message(10, HOST_FRAME),
    "segment": message(11, number(128), number(5), ITEMS),
    "segment-load": message(11, number(2), U64_MAX, LOAD_ITEMS),
    "segment-backup": message(11, number(3), number(4), BACKUP_ITEMS),
    "segment-group": message(11, number(3), number(4), GROUP_ITEMS),
    "segment-bond": message(11, number(3), number(4), BOND_ITEMS),
    "link-down": message(13, number(7), number(2), number(300), number(200), b"\x40"),
    "segment-empty": message(11, number(0), number(0), several()),
    "seek": message(12, TARGET_IP_ADDRESS, NONE),
    "seek-except": message(12, LOCALHOST, some(number(300))),
    "vlan": message(12, TARGET_IP_ADDRESS, NONE, VLAN),
    "segment-vlan": message(11, number(3), number(4), VLAN_ITEMS, VLAN),
}
