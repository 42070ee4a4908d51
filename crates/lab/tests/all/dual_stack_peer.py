"""A dual-stack host that says nothing before it is asked, and counts what its port carries.

It gives its device an address of each family and keeps quiet what the kernel says of itself then:
no duplicate address detection, no solicitation of routers, and a queue without room until `open`.
Then it takes lines as commands: each is answered by one line. A packet socket sees all that the device sends
and receives, from the start.
"""

import os
import select
import socket
import struct
import subprocess
import sys
import threading
import time

V4, V6, PORT = "239.7.7.7", "ff05::77", 5007
GROUPS = {b"\x01\x00\x5e\x07\x07\x07": 4, b"\x33\x33\x00\x00\x00\x77": 6}
# Requests without a reply at a time, and from one to the next.
WINDOW, AGAIN, LIMIT = 8, 1.0, 10.0


class Host:
    """A host with one device."""

    def __init__(self, dev, v4, v6, rate):
        self.dev, self.v4, self.v6, self.rate = dev, v4, v6, rate
        self.index = socket.if_nametoindex(dev)
        self.own = socket.inet_aton(v4), socket.inet_pton(socket.AF_INET6, v6)
        # Frames that were sent before somebody asked for an address of this host, and all.
        self.unasked, self.sent, self.is_asked = 0, 0, False
        self.on_wire = {4: 0, 6: 0}
        self.members = {}
        threading.Thread(target=self.watch, args=(self.capture(),), daemon=True).start()
        self.silence()

    def capture(self):
        raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
        raw.bind((self.dev, 0))
        # All groups, as a capture has it, so that the device hides nothing.
        raw.setsockopt(263, 1, struct.pack("@iHH8s", self.index, 1, 0, b""))
        return raw

    def watch(self, raw):
        """Counts what the device sends and receives."""
        while True:
            frame, where = raw.recvfrom(200)
            if where[2] == socket.PACKET_OUTGOING:
                self.sent += 1
                self.unasked += not self.is_asked
                continue
            # Edges ask all their hosts for an address that nobody has spoken for.
            arp = frame[12:14] == b"\x08\x06" and frame[38:42] == self.own[0]
            nd = frame[12:14] == b"\x86\xdd" and frame[54:55] == b"\x87"
            self.is_asked = self.is_asked or arp or nd and frame[62:78] == self.own[1]
            family = GROUPS.get(frame[:6])
            if family and frame[23 if family == 4 else 20] == 17:
                self.on_wire[family] += 1

    def silence(self):
        dev = self.dev
        run(f"tc qdisc replace dev {dev} root pfifo limit 0")
        conf = f"/proc/sys/net/ipv6/conf/{dev}/"
        quiet = {"accept_dad": 0, "router_solicitations": 0, "addr_gen_mode": 1}
        for key, value in {**quiet, "disable_ipv6": 0}.items():
            with open(conf + key, "w", encoding="ascii") as file:
                file.write(str(value))
        run(f"ip address add {self.v4}/16 dev {dev}")
        local = "fe80::" + self.v6.rsplit(":", 1)[1]
        for address in (local, self.v6):
            run(f"ip -6 address add {address}/64 dev {dev} nodad")

    def open(self):
        """What the kernel has to say of itself is said, and was dropped. Now the device sends."""
        run(f"tc qdisc replace dev {self.dev} root tbf rate {self.rate} burst 64kb limit 1mb")
        return "open"

    def silent(self):
        """Frames that were sent without being asked, those sent at all by the device's counter."""
        with open("/proc/net/dev", encoding="ascii") as file:
            line = next(line for line in file if line.strip().startswith(self.dev + ":"))
        return f"{self.unasked} {line.split(':')[1].split()[9]}"

    def ping(self, *targets):
        """Asks each until it answers. Says how many did, with how many requests; who did not."""
        four = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
        six = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
        ident = os.getpid() & 0xFFFF
        waiting, todo, sent, missing, longest = {}, list(enumerate(targets)), 0, [], 0.0
        begun = {}

        def ask(number):
            target = targets[number]
            is_six = ":" in target
            head = struct.pack("!BBHHH", 128 if is_six else 8, 0, 0, ident, number)
            if not is_six:
                total = sum(struct.unpack("!4H", head))
                total = (total & 0xFFFF) + (total >> 16)
                head = struct.pack("!BBHHH", 8, 0, ~total & 0xFFFF, ident, number)
            try:
                (six if is_six else four).sendto(head, (target, 0))
            except OSError:
                pass
            waiting[number] = time.monotonic()

        while todo or waiting:
            while todo and len(waiting) < WINDOW:
                number, _ = todo.pop(0)
                begun[number] = time.monotonic()
                ask(number)
                sent += 1
            for one in select.select([four, six], [], [], 0.05)[0]:
                packet, source = one.recvfrom(200)
                head = packet[(packet[0] & 15) * 4 :] if one is four else packet
                if len(head) < 8 or head[0] != (0 if one is four else 129):
                    continue
                _, _, _, ours, number = struct.unpack("!BBHHH", head[:8])
                if ours == ident and number in waiting and source[0] == targets[number]:
                    longest = max(longest, time.monotonic() - waiting.pop(number))
            now = time.monotonic()
            for number, last in list(waiting.items()):
                if now - begun[number] > LIMIT:
                    missing.append(targets[number])
                    del waiting[number]
                elif now - last > AGAIN:
                    ask(number)
                    sent += 1
        answered = len(targets) - len(missing)
        return f"{answered} {sent} {longest * 1000:.0f} {','.join(missing) or '-'}"

    def join(self):
        """Joins both groups by the kernel's own means."""
        four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        four.bind((V4, PORT))
        member = socket.inet_aton(V4) + socket.inet_aton(self.v4)
        four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
        six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        six.bind((V6, PORT, 0, self.index))
        member = socket.inet_pton(socket.AF_INET6, V6) + struct.pack("@I", self.index)
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)
        for family, one in ((4, four), (6, six)):
            self.members[family] = []
            threading.Thread(target=self.receive, args=(family, one), daemon=True).start()
        return "joined"

    def receive(self, family, one):
        while True:
            self.members[family].append(one.recv(100))

    def has(self, number):
        """Says whether this datagram of both groups has come to a member."""
        datagram = number.encode()
        return "yes" if all(datagram in self.members[family] for family in (4, 6)) else "no"

    def reset(self):
        self.on_wire = {4: 0, 6: 0}
        for had in self.members.values():
            had.clear()
        return "reset"

    def counts(self):
        """For each family: frames at the port; datagrams that a member read, and different ones."""
        words = []
        for family in (4, 6):
            had = self.members.get(family, [])
            words.append(f"{self.on_wire[family]} {len(had)} {len(set(had))}")
        return " ".join(words)

    def send(self, count, first):
        """Sends `count` datagrams to each group, 10 ms apart, numbered from `first`."""
        four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, 4)
        four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
        any_of = struct.pack("@4s4si", bytes(4), bytes(4), self.index)
        four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, any_of)
        six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, self.index)
        six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
        for number in range(int(first), int(first) + int(count)):
            four.sendto(b"%d" % number, (V4, PORT))
            six.sendto(b"%d" % number, (V6, PORT, 0, self.index))
            time.sleep(0.01)
        return "sent"


def run(line):
    subprocess.run(line.split(), check=True)


def main():
    host = Host(*sys.argv[1:])
    print("ready", flush=True)
    for line in sys.stdin:
        word, *rest = line.split() or ["end"]
        if word == "end":
            break
        print(getattr(host, word)(*rest), flush=True)


main()
