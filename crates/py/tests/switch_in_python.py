"""The switch's side of an agent port, written from the layout alone: a switch that a test leads."""

from __future__ import annotations

import fcntl
import mmap
import os
import socket
import struct
import threading
from pathlib import Path

import axon

MAGIC = b"AXONAGNT"
VERSION = 2
TO_AGENT_TAIL, TO_AGENT_HEAD, FROM_AGENT_TAIL, FROM_AGENT_HEAD = 1024, 1152, 1280, 1408
PACKET, PAYLOAD, RETURNED, FORWARD, DROP, FETCH, REPLACE, SEND = 1, 2, 3, 16, 17, 18, 19, 20
HEADROOM = 128
SLOTS, PAYLOADS, CHUNKS, BUFFERS = 16, 4, 8, 2
HEAD_BYTES, FRAME_BYTES = 64, 512
TO_AGENT, FROM_AGENT, FIRST_CHUNK = 4096, 8192, 12288

Descriptor = tuple[int, int, int, int, int, int, int]


class Switch:
    """Listens at a socket, attaches one agent, and then does what a test says."""

    def __init__(self, folder: Path, stays: bool = True) -> None:
        self.path = folder / "s1-p1.sock"
        self.stays = stays
        self.chunk_bytes = HEADROOM + (HEAD_BYTES if stays else FRAME_BYTES)
        self.first_buffer = -(-(FIRST_CHUNK + CHUNKS * self.chunk_bytes) // 4096) * 4096
        self.bytes = -(-(self.first_buffer + BUFFERS * FRAME_BYTES) // 4096) * 4096
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen()
        self.bell, self.event = socket.socketpair(), os.eventfd(0, os.EFD_NONBLOCK)
        self.written = self.read = 0

    def close(self) -> None:
        """Goes, as a switch that is stopped."""
        if hasattr(self, "stream"):
            self.stream.close()
            self.memory.close()
        self.listener.close()
        for end in self.bell:
            end.close()
        os.close(self.event)

    def attach(self, seals: int = fcntl.F_SEAL_SHRINK) -> axon.AgentClient:
        """Attaches an agent that connects meanwhile."""
        answering = threading.Thread(target=self.answer, args=(seals,))
        answering.start()
        try:
            return axon.AgentClient(self.path, "test")
        finally:
            answering.join()

    def answer(self, seals: int = fcntl.F_SEAL_SHRINK) -> None:
        """Attaches the next agent that connects."""
        self.stream, _ = self.listener.accept()
        self.hello = self.stream.recv(64)
        memory = os.memfd_create("test", os.MFD_ALLOW_SEALING)
        os.ftruncate(memory, self.bytes)
        fcntl.fcntl(memory, fcntl.F_ADD_SEALS, seals)
        self.memory = mmap.mmap(memory, self.bytes)
        places = (TO_AGENT, FROM_AGENT, FIRST_CHUNK, self.first_buffer, self.bytes)
        sizes = (SLOTS, CHUNKS, self.chunk_bytes, HEADROOM, HEAD_BYTES, BUFFERS, FRAME_BYTES)
        words = (VERSION, *sizes, PAYLOADS, int(self.stays), *places)
        struct.pack_into("<8s15I", self.memory, 0, MAGIC, *words)
        answer = struct.pack("<8sIIQII224x", MAGIC, 0, VERSION, self.bytes, 0, 0)
        socket.send_fds(self.stream, [answer], [memory, self.bell[0].fileno(), self.event])
        os.close(memory)

    def refuse(self, why: bytes) -> axon.AgentClient:
        """Refuses an agent that connects meanwhile."""

        def answer() -> None:
            stream, _ = self.listener.accept()
            stream.recv(64)
            stream.send(struct.pack("<8sIIQII224s", MAGIC, 1, VERSION, 0, len(why), 0, why))
            stream.close()

        answering = threading.Thread(target=answer)
        answering.start()
        try:
            return axon.AgentClient(self.path, "test")
        finally:
            answering.join()

    def give(self, handle: int, chunk: int, frame: bytes) -> None:
        """Gives the agent a packet."""
        copied = frame[:HEAD_BYTES] if self.stays else frame
        at = FIRST_CHUNK + chunk * self.chunk_bytes + HEADROOM
        self.memory[at : at + len(copied)] = copied
        self.write((PACKET, chunk, handle, HEADROOM, len(copied), 0, len(frame)))

    def write(self, descriptor: Descriptor) -> None:
        """Writes a descriptor: kind, chunk, handle, offset, head bytes, buffer, bytes."""
        at = TO_AGENT + self.written % SLOTS * 32
        struct.pack_into("<IIQIIII", self.memory, at, *descriptor)
        self.written += 1
        self.word(TO_AGENT_TAIL, self.written)

    def word(self, at: int, value: int) -> None:
        """Sets a cursor."""
        struct.pack_into("<I", self.memory, at, value & 0xFFFFFFFF)

    def answers(self) -> list[Descriptor]:
        """What the agent has written since the last time."""
        (tail,) = struct.unpack_from("<I", self.memory, FROM_AGENT_TAIL)
        places = [FROM_AGENT + number % SLOTS * 32 for number in range(self.read, tail)]
        self.read = tail
        self.word(FROM_AGENT_HEAD, tail)
        return [struct.unpack_from("<IIQIIII", self.memory, at) for at in places]

    def chunk(self, answer: Descriptor) -> bytes:
        """What an answer says that stands in its chunk."""
        at = FIRST_CHUNK + answer[1] * self.chunk_bytes + answer[3]
        return self.memory[at : at + answer[4]]

    def buffer(self, answer: Descriptor) -> bytes:
        """What an answer says that stands in its buffer."""
        at = self.first_buffer + answer[5] * FRAME_BYTES
        return self.memory[at : at + answer[6]]
