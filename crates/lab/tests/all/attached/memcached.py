"""A client of memcached for tests. It follows doc/protocol.txt of memcached: the text protocol, and
over UDP its frame header of eight bytes before each datagram.

    fill SERVER BYTES KEY=COUNT ...   sets KEY-0, KEY-1, ... over TCP, once the server listens
    get SERVER BYTES KEY=COUNT ...    asks for them over UDP, one after the other, the kinds mixed
    set SERVER BYTES KEY VERSION      sets one over UDP
    same SERVER BYTES KEY VERSION     asks for one over UDP; expects that version of it
    value SERVER BYTES KEY VERSION    writes that version to standard output, and no more

Every value that comes is compared. The others print how many requests were sent a second time.
"""
import socket
import struct
import sys
import time

PORT = 11211
WAIT_S = 2
TRIES = 10


def value(key, size, version="0"):
    """What belongs to a key: no two keys have the same."""
    unit = f"{key}/{version}.".encode()
    return (unit * (size // len(unit) + 1))[:size]


class Udp:
    """Requests over UDP, one at a time; what is lost is asked for again."""

    def __init__(self, server):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.settimeout(WAIT_S)
        self.socket.connect((server, PORT))
        self.number = 0
        self.again = 0

    def ask(self, text):
        for _ in range(TRIES):
            self.number = (self.number + 1) % 65536
            self.socket.send(struct.pack("!HHHH", self.number, 0, 1, 0) + text)
            answer = self.answer()
            if answer is not None:
                return answer
            self.again += 1
        sys.exit(f"no answer to {text[:60]!r}")

    def answer(self):
        """The text of the answer to the last request; None if none comes."""
        while True:
            try:
                datagram = self.socket.recv(65536)
            except socket.timeout:
                return None
            number, sequence, count, _ = struct.unpack("!HHHH", datagram[:8])
            if number == self.number:
                assert (sequence, count) == (0, 1), "an answer of several datagrams"
                return datagram[8:]

    def get(self, key, expected):
        text = self.ask(f"get {key}\r\n".encode())
        right = f"VALUE {key} 0 {len(expected)}\r\n".encode() + expected + b"\r\nEND\r\n"
        if text != right:
            sys.exit(f"a wrong answer for {key}: {text[:80]!r}")


def connected(server):
    for _ in range(600):
        try:
            return socket.create_connection((server, PORT), WAIT_S)
        except OSError:
            time.sleep(0.1)
    sys.exit(f"nobody listens at {server}")


def fill(server, size, keys):
    stream = connected(server).makefile("rwb")
    for key in keys:
        stream.write(f"set {key} 0 0 {size} noreply\r\n".encode() + value(key, size) + b"\r\n")
    # The last of them is there when this is answered.
    stream.write(b"version\r\n")
    stream.flush()
    assert stream.readline().startswith(b"VERSION")


def counted(words):
    """The keys of KEY=COUNT ..., every kind spread evenly over all of them."""
    kinds = [word.split("=") for word in words]
    places = [
        ((i + 0.5) / int(count), f"{key}-{i}") for key, count in kinds for i in range(int(count))
    ]
    return [key for _, key in sorted(places)]


def main():
    command, server, size, *words = sys.argv[1:]
    size, udp = int(size), Udp(server)
    if command == "fill":
        fill(server, size, counted(words))
    elif command == "get":
        for key in counted(words):
            # Kinds with a `*` are a hundred keys, asked for over and over.
            kind, _, number = key.rpartition("-")
            key = f"{kind[:-1]}-{int(number) % 100}" if kind.endswith("*") else key
            udp.get(key, value(key, size))
    elif command == "set":
        key, version = words
        stored = value(key, size, version)
        text = udp.ask(f"set {key} 0 0 {size}\r\n".encode() + stored + b"\r\n")
        assert text == b"STORED\r\n", text
    elif command == "same":
        key, version = words
        udp.get(key, value(key, size, version))
    elif command == "value":
        key, version = words
        sys.stdout.buffer.write(value(key, size, version))
        return
    else:
        sys.exit(__doc__)
    print(udp.again)


main()
