"""A host in tests of groups: receives a stream, sends one, watches its port, or runs avahi-daemon.

It says "ready", waits for a line, and ends with what it has seen.
"""

import select
import socket
import struct
import subprocess
import sys
import time

V4, V6, PORT = "239.7.7.7", "ff05::77", 5007
END = b"end"


def ready():
    print("ready", flush=True)


def receive(dev, address):
    """Joins both groups by the kernel's own means; counts what comes. Says "all" when both streams
    have ended, each with a datagram that is not counted."""
    index = socket.if_nametoindex(dev)
    four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    four.bind((V4, PORT))
    member = socket.inet_aton(V4) + socket.inet_aton(address)
    four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    six.bind((V6, PORT, 0, index))
    member = socket.inet_pton(socket.AF_INET6, V6) + struct.pack("@I", index)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
    ready()
    seen = {four: [], six: []}
    sources = [four, six, sys.stdin]
    open_streams = {four, six}
    while sys.stdin not in (readable := select.select(sources, [], [])[0]):
        for one in readable:
            datagram = one.recv(100)
            if datagram != END:
                seen[one].append(datagram)
            elif one in open_streams:
                open_streams.remove(one)
                if not open_streams:
                    print("all", flush=True)
    for name, one in (("v4", four), ("v6", six)):
        print(name, len(seen[one]), len(set(seen[one])))


def watch(dev):
    """Counts frames to both groups that the port carries to the host."""
    raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
    raw.bind((dev, 0))
    index = socket.if_nametoindex(dev)
    # All groups, as a capture has it, so that the device hides nothing.
    promiscuous = struct.pack("@iHH8s", index, 1, 0, b"")
    raw.setsockopt(263, 1, promiscuous)
    ready()
    count = 0
    while sys.stdin not in (readable := select.select([raw, sys.stdin], [], [])[0]):
        frame, where = raw.recvfrom(2000)
        incoming = where[2] != socket.PACKET_OUTGOING
        groups = (b"\x01\x00\x5e\x07\x07\x07", b"\x33\x33\x00\x00\x00\x77")
        udp = frame[23] == 17 if frame[12] == 8 else frame[20] == 17
        count += incoming and frame[:6] in groups and udp
    print("frames", count)


def send(dev, count):
    """Sends so many datagrams to each group, 5 ms apart, and then the end."""
    four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
    four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
    six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    index = socket.if_nametoindex(dev)
    six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
    for option in (socket.IP_MULTICAST_IF,):
        any_of = struct.pack("@4s4si", bytes(4), bytes(4), index)
        four.setsockopt(socket.IPPROTO_IP, option, any_of)
    for number in range(int(count)):
        four.sendto(b"%d" % number, (V4, PORT))
        six.sendto(b"%d" % number, (V6, PORT, 0, index))
        time.sleep(0.005)
    four.sendto(END, (V4, PORT))
    six.sendto(END, (V6, PORT, 0, index))


def ask(line):
    """One question by avahi's simple protocol."""
    one = socket.socket(socket.AF_UNIX)
    one.connect("/run/avahi-daemon/socket")
    one.sendall(line.encode() + b"\n")
    return one.makefile().readline().strip()


def mdns(dev, name):
    """Runs avahi-daemon, without D-Bus and with a /run of its own, and asks it for names."""
    subprocess.run(["mount", "-t", "tmpfs", "none", "/run"], check=True)
    subprocess.run(["mkdir", "/run/avahi-daemon"], check=True)
    with open("/run/avahi.conf", "w", encoding="ascii") as conf:
        conf.write(
            f"[server]\nhost-name={name}\nallow-interfaces={dev}\nenable-dbus=no\n"
            "use-ipv4=yes\nuse-ipv6=yes\n"
        )
    daemon = subprocess.Popen(
        ["avahi-daemon", "-f", "/run/avahi.conf", "--no-drop-root", "--no-chroot", "--no-rlimits"],
        stderr=subprocess.DEVNULL,
    )
    try:
        for _ in range(100):
            try:
                if ask(f"RESOLVE-HOSTNAME-IPV4 {name}.local").startswith("+"):
                    break
            except OSError:
                pass
            time.sleep(0.1)
        ready()
        for question in sys.stdin.readline().split(","):
            print(ask(question.strip()) if question.strip() else "")
        sys.stdout.flush()
        sys.stdin.readline()
    finally:
        daemon.terminate()
        daemon.wait()


{"receive": receive, "watch": watch, "send": send, "mdns": mdns}[sys.argv[1]](*sys.argv[2:])
