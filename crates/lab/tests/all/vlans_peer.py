"""A host with tags, for kernels without VLAN devices: answers ARP and echo requests in its VLANs, and
pings when its standard input says `ping VID ADDRESS`.

Usage: vlans_peer.py DEVICE VID=ADDRESS...
"""

import select
import socket
import struct
import sys
import time

PACKET_AUXDATA, VLAN_VALID = 8, 0x10
device, addresses = sys.argv[1], {}
for word in sys.argv[2:]:
    vid, ip = word.split("=")
    addresses[int(vid)] = socket.inet_aton(ip)
sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
sock.setsockopt(socket.SOL_PACKET if hasattr(socket, "SOL_PACKET") else 263, PACKET_AUXDATA, 1)
sock.bind((device, 0))
own = sock.getsockname()[4]


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    total = (total >> 16) + (total & 0xFFFF)
    return ~(total + (total >> 16)) & 0xFFFF


def send(vid, to, ethertype, payload):
    tag = struct.pack(">HH", 0x8100, vid)
    sock.send((to + own + tag + struct.pack(">H", ethertype) + payload).ljust(64, b"\0"))


def arp(vid, operation, to, target_mac, target_ip):
    payload = struct.pack(">HHBBH", 1, 0x800, 6, 4, operation) + own + addresses[vid]
    send(vid, to, 0x806, payload + target_mac + target_ip)


def echo(vid, kind, to, target_ip, rest):
    data = bytes([kind, 0, 0, 0]) + rest
    data = data[:2] + struct.pack(">H", checksum(data)) + data[4:]
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(data), 1, 0, 64, 1, 0)
    head += addresses[vid] + target_ip
    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
    send(vid, to, 0x800, head + data)


def receive():
    """The VLAN, the source, the EtherType and the payload of a frame that came in; tags are beside
    it."""
    data, extra, _, address = sock.recvmsg(2048, 64)
    if address[2] == 4:
        return None
    vid = 0
    for _, kind, words in extra:
        status, _, _, _, _, tci, _ = struct.unpack("IIIHHHH", words[:20])
        if kind == PACKET_AUXDATA and status & VLAN_VALID:
            vid = tci & 0xFFF
    return vid, data[6:12], struct.unpack(">H", data[12:14])[0], data[14:]


neighbours, answered, untagged = {}, set(), 0


def handle():
    global untagged
    came = receive()
    if came is None:
        return
    vid, source, ethertype, data = came
    if vid not in addresses:
        untagged += ethertype in (0x800, 0x806)
        return
    if ethertype == 0x806:
        operation, sender_ip, target = struct.unpack(">H", data[6:8])[0], data[14:18], data[24:28]
        if operation == 1 and target == addresses[vid]:
            arp(vid, 2, source, data[8:14], sender_ip)
        if operation == 2:
            neighbours[vid, sender_ip] = data[8:14]
    if ethertype == 0x800 and data[9] == 1 and data[16:20] == addresses[vid]:
        length = struct.unpack(">H", data[2:4])[0]
        if data[20] == 8:
            echo(vid, 0, source, data[12:16], data[24:length])
        if data[20] == 0:
            answered.add((vid, data[12:16]))


def ping(vid, ip):
    answered.discard((vid, ip))
    for _ in range(20):
        mac = neighbours.get((vid, ip))
        if mac is None:
            arp(vid, 1, b"\xff" * 6, b"\0" * 6, ip)
        else:
            echo(vid, 8, mac, ip, struct.pack(">HH", 7, 1) + b"0123456789abcdef")
        end = time.monotonic() + 0.1
        while time.monotonic() < end:
            if select.select([sock], [], [], 0.02)[0]:
                handle()
            if (vid, ip) in answered:
                return neighbours[vid, ip].hex(":")
    return "none"


print("ready", flush=True)
for vid in addresses:
    arp(vid, 1, b"\xff" * 6, b"\0" * 6, addresses[vid])
while True:
    ready = select.select([sock, sys.stdin], [], [])[0]
    if sock in ready:
        handle()
    if sys.stdin in ready:
        words = sys.stdin.readline().split()
        if not words:
            break
        print(ping(int(words[1]), socket.inet_aton(words[2])), flush=True)
print(f"untagged {untagged}", flush=True)
