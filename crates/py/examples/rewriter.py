"""Counts up one byte of each head and sends the packet on.

    python3 rewriter.py SOCKET [BYTE]
"""

import sys

import axon


class Rewriter(axon.Agent):
    """Counts up the byte `at` of each head."""

    def __init__(self, at: int) -> None:
        self.at = at

    def handle_packets(self, batch: list[axon.Packet]) -> None:
        at = self.at
        for packet in batch:
            head = packet.head
            if at < len(head):
                head[at] = (head[at] + 1) & 0xFF
            packet.forward()


if __name__ == "__main__":
    try:
        axon.run_agent(Rewriter(int(sys.argv[2]) if len(sys.argv) > 2 else 40), sys.argv[1])
    except axon.SwitchGone as gone:
        print(gone)
