"""Agents at a switch that the test leads: calls, errors, and views that are kept for too long."""

import os
import signal
import tempfile
import threading
import unittest
from collections.abc import Callable
from pathlib import Path

import axon
from switch_in_python import (
    BUFFERS,
    CHUNKS,
    DROP,
    FETCH,
    FORWARD,
    FRAME_BYTES,
    HEAD_BYTES,
    HEADROOM,
    PACKET,
    PAYLOAD,
    REPLACE,
    RETURNED,
    SEND,
    SLOTS,
    TO_AGENT_TAIL,
    Switch,
)

FRAME = bytes(range(200))


class WithSwitch(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def switch(self, stays: bool = True) -> Switch:
        switch = Switch(self.folder, stays)
        self.addCleanup(switch.close)
        return switch

    def packet(self, switch: Switch, client: axon.AgentClient, handle: int) -> axon.Packet:
        switch.give(handle, handle % CHUNKS, FRAME)
        ([packet], []) = client.receive()
        return packet


class TestAgent(WithSwitch):
    def test_heads_are_the_memory_of_the_switch(self) -> None:
        switch = self.switch()
        client = switch.attach()
        self.assertEqual(switch.hello[16:20], b"test")
        self.assertEqual((client.head_bytes, client.frame_bytes_max), (HEAD_BYTES, FRAME_BYTES))
        self.assertTrue(client.payload_stays)
        packet = self.packet(switch, client, 0x10001)
        self.assertEqual((packet.handle, packet.head_bytes, packet.frame_bytes), (0x10001, 64, 200))
        self.assertEqual(packet.head, FRAME[:HEAD_BYTES])
        self.assertEqual(len(packet.payload), 0)
        self.assertFalse(packet.head.readonly)
        packet.head[2:4] = b"\xaa\xbb"
        packet.forward()
        self.assertEqual(switch.answers(), [], "nothing before the flush")
        client.flush()
        [answer] = switch.answers()
        self.assertEqual(answer[:3], (FORWARD, 1, 0x10001))
        self.assertEqual(switch.chunk(answer), b"\0\1\xaa\xbb" + FRAME[4:HEAD_BYTES])

    def test_every_call_writes_its_answer(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packets = [self.packet(switch, client, 0x10000 + number) for number in range(4)]
        packets[0].drop()
        packets[1].resize_head(HEAD_BYTES + 4)
        packets[1].head[:4] = b"long"
        packets[1].forward()
        packets[2].resize_head(HEAD_BYTES - 10)
        packets[2].replace(memoryview(b"other"))
        packets[3].fetch(190, 50)
        client.flush()
        drop, longer, replaced, fetch = switch.answers()
        self.assertEqual(drop[:3], (DROP, 0, 0x10000))
        self.assertEqual(switch.chunk(longer), b"long" + FRAME[:HEAD_BYTES])
        self.assertEqual(replaced[0], REPLACE)
        self.assertEqual(switch.chunk(replaced), FRAME[10:HEAD_BYTES])
        self.assertEqual(switch.buffer(replaced), b"other")
        self.assertEqual((fetch[0], fetch[3], fetch[6]), (FETCH, 190, 10))
        at = switch.first_buffer + fetch[5] * FRAME_BYTES
        switch.memory[at : at + 10] = FRAME[190:]
        switch.write((PAYLOAD, 0, 0x10003, 190, 0, fetch[5], 10))
        ([], [payload]) = client.receive()
        self.assertEqual((payload.offset, payload.data), (190, FRAME[190:]))
        self.assertEqual((payload.packet, payload.packet.is_held), (packets[3], True))
        self.assertEqual({packets[3]: 1}[payload.packet], 1)
        client.send(bytearray(b"my own"))
        client.flush()
        [own] = switch.answers()
        self.assertEqual((own[0], switch.buffer(own)), (SEND, b"my own"))

    def test_a_copied_payload_is_there_and_fetched_without_the_switch(self) -> None:
        switch = self.switch(stays=False)
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        self.assertEqual(packet.payload, FRAME[HEAD_BYTES:])
        packet.payload[:2] = b"PP"
        packet.fetch(60, 10)
        ([], [payload]) = client.receive()
        self.assertEqual(payload.data, FRAME[60:64] + b"PP" + FRAME[66:70])
        packet.fetch(0, 10)
        packet.forward()
        self.assertEqual(client.receive(), ([], []), "its chunk has gone back")
        client.flush()
        [answer] = switch.answers()
        self.assertEqual(switch.chunk(answer), FRAME[:64] + b"PP" + FRAME[66:])

    def test_a_packet_is_decided_on_once(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        packet.forward()
        self.assertFalse(packet.is_held)
        again: list[Callable[[], object]] = [
            packet.forward,
            packet.drop,
            lambda: packet.replace(b""),
            lambda: packet.head,
            lambda: packet.head_bytes,
            lambda: packet.payload,
            lambda: packet.fetch(0, 1),
            lambda: packet.resize_head(1),
        ]
        for call in again:
            with self.assertRaisesRegex(axon.NotHeldError, "decide once on each packet"):
                call()
        client.flush()
        self.assertEqual(len(switch.answers()), 1, "nothing was written for what was refused")

    def test_one_that_was_held_for_too_long_is_dropped_and_no_longer_held(self) -> None:
        switch = self.switch()
        client = switch.attach()
        old = self.packet(switch, client, 0x10000)
        new = self.packet(switch, client, 0x20000)
        self.assertEqual((old.is_held, new.is_held, old == new), (False, True, False))
        client.flush()
        self.assertEqual([answer[:3] for answer in switch.answers()], [(DROP, 0, 0x10000)])

    def test_views_outlive_packets_clients_and_switches(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        view = packet.head
        packet.forward()
        client.flush()
        switch.give(0x20001, 0, b"next" + FRAME)
        self.assertEqual(bytes(view[:4]), b"next", "it shows what stands there")
        with self.assertRaises(BufferError):
            view.obj.close()  # type: ignore[attr-defined]
        client.close()
        client.close()
        switch.stream.close()
        with self.assertRaisesRegex(ValueError, "client is closed"):
            client.receive()
        self.assertFalse(packet.is_held)
        del client, packet
        view[:4] = b"last"
        self.assertEqual(switch.memory[switch.memory.find(b"last") :][:4], b"last")

    def test_what_cannot_be_sent_is_refused_with_what_can(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        for frame in (b"", bytes(FRAME_BYTES + 1)):
            with self.assertRaisesRegex(ValueError, "expected 1 to 512"):
                client.send(frame)
        with self.assertRaisesRegex(ValueError, "a frame of 513 bytes"):
            packet.replace(bytes(FRAME_BYTES - HEAD_BYTES + 1))
        with self.assertRaisesRegex(ValueError, "there is room for 160"):
            packet.resize_head(HEAD_BYTES + 97)
        packet.resize_head(HEAD_BYTES + 96)
        with self.assertRaises(TypeError):
            client.send("text")  # type: ignore[arg-type]
        for _ in range(BUFFERS):
            client.send(FRAME)
        more: list[Callable[[], None]] = [
            lambda: client.send(FRAME),
            lambda: packet.replace(FRAME),
        ]
        for full in more:
            with self.assertRaisesRegex(axon.FullError, "all 2 buffers of the agent are in use"):
                full()
        self.assertTrue(packet.is_held)
        client.flush()
        switch.write((RETURNED, 0, 0, 0, 0, switch.answers()[0][5], 0))
        self.assertEqual(client.receive(), ([], []))
        client.send(FRAME)

    def test_fetches_wait_for_a_buffer(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        for number in range(BUFFERS + 1):
            packet.fetch(number, 1)
        client.flush()
        answers = switch.answers()
        self.assertEqual(len(answers), BUFFERS)
        switch.write((PAYLOAD, 0, 0x10000, 0, 0, answers[0][5], 1))
        self.assertEqual(len(client.receive()[1]), 1)
        client.flush()
        self.assertEqual([answer[3] for answer in switch.answers()], [BUFFERS])

    def test_a_switch_that_is_not_there_refuses_or_ends_says_so(self) -> None:
        with self.assertRaisesRegex(axon.NoSwitchError, "no switch at .*none.sock .*start it"):
            axon.AgentClient(self.folder / "none.sock", "test")
        switch = self.switch()
        with self.assertRaisesRegex(axon.RefusedError, "refuses this agent: one is attached"):
            switch.refuse(b"one is attached")
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        packet.head[0] = 7
        switch.stream.close()
        with self.assertRaisesRegex(axon.SwitchGone, "has ended the attachment.*attach again"):
            client.wait()
        self.assertTrue(issubclass(axon.SwitchGone, ConnectionError))
        switch.listener.close()
        with self.assertRaisesRegex(axon.NoSwitchError, "one that has ended has left its socket"):
            axon.AgentClient(self.folder / "s1-p1.sock", "test")

    def test_a_switch_that_breaks_the_protocol_ends_the_attachment_and_nothing_else(self) -> None:
        whole = (PACKET, 0, 0, HEADROOM, 8, 0, 100)
        bad = [
            (9, *whole[1:]),
            (FORWARD, *whole[1:]),
            (PACKET, CHUNKS, *whole[2:]),
            (*whole[:2], 4, *whole[3:]),
            (*whole[:3], HEADROOM + 64, *whole[4:]),
            (*whole[:4], 0xFFFFFFFF, 0, 100),
            (*whole[:6], 7),
            (*whole[:6], FRAME_BYTES + 1),
            (PAYLOAD, 0, 0, 0, 0, BUFFERS, 1),
            (PAYLOAD, 0, 0, 0, 0, 0, FRAME_BYTES + 1),
            (RETURNED, 0, 0, 0, 0, BUFFERS, 0),
        ]
        for descriptor in bad:
            switch = self.switch()
            client = switch.attach()
            switch.write(descriptor)
            with self.assertRaisesRegex(axon.ProtocolError, "same release", msg=str(descriptor)):
                client.receive()
            switch.path.unlink()
        switch = self.switch()
        client = switch.attach()
        switch.word(TO_AGENT_TAIL, SLOTS + 1)
        with self.assertRaisesRegex(axon.ProtocolError, "17 descriptors in a ring"):
            client.receive()
        switch.path.unlink()
        with self.assertRaisesRegex(axon.ProtocolError, "sealed"):
            self.switch().attach(seals=0)

    def test_a_wait_ends_by_a_packet_a_time_or_a_signal(self) -> None:
        switch = self.switch()
        client = switch.attach()
        self.assertFalse(client.wait(0))
        self.assertFalse(client.wait(0.001, spin_us=10))
        switch.give(0x10000, 0, FRAME)
        self.assertTrue(client.wait())
        client.receive()
        with self.assertRaisesRegex(ValueError, "no time to wait for"):
            client.wait(-1.0)

        def interrupt(*_: object) -> None:
            raise KeyboardInterrupt

        before = signal.signal(signal.SIGUSR1, interrupt)
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        own = threading.get_ident()
        timer = threading.Timer(0.05, signal.pthread_kill, (own, signal.SIGUSR1))
        timer.start()
        with self.assertRaises(KeyboardInterrupt):
            while True:
                client.wait(0.5)
        timer.join()

    def test_a_client_has_one_thread(self) -> None:
        switch = self.switch()
        client = switch.attach()
        packet = self.packet(switch, client, 0x10000)
        waiting = threading.Thread(target=client.wait)
        waiting.start()
        refused: list[RuntimeError] = []
        while not refused and waiting.is_alive():
            try:
                _ = packet.head
            except RuntimeError as error:
                refused.append(error)
        self.assertRegex(str(refused), "an agent has one thread")
        # As a switch wakes its agent.
        switch.give(0x10001, 1, FRAME)
        switch.bell[1].send(bytes(8))
        waiting.join()


class Recorder(axon.Agent):
    """Writes down what it is called with, and stops when it has two payloads."""

    def start(self) -> None:
        self.calls: list[object] = []
        self.deadline_ns = self.now_ns

    def handle_packets(self, batch: list[axon.Packet]) -> None:
        self.calls.append(len(batch))
        for packet in batch:
            packet.fetch(0, 2)

    def handle_payload(self, payload: axon.Payload) -> None:
        self.calls.append(payload.data)
        payload.packet.forward()

    def handle_timeout(self) -> None:
        self.calls.append("timeout")
        self.deadline_ns = self.now_ns + 1000
        if self.calls.count(FRAME[:2]) == 2:
            self.stop()


class TestRun(WithSwitch):
    def test_an_agent_is_run_until_it_stops(self) -> None:
        switch = self.switch(stays=False)
        agent = Recorder()

        def answer() -> None:
            switch.answer()
            switch.give(0x10000, 0, FRAME)
            switch.give(0x10001, 1, FRAME)

        answering = threading.Thread(target=answer)
        answering.start()
        axon.run_agent(agent, switch.path, "run")
        answering.join()
        self.assertEqual(switch.hello[16:19], b"run")
        self.assertEqual(sum(call for call in agent.calls if isinstance(call, int)), 2)
        self.assertEqual([answer[:2] for answer in switch.answers()], [(FORWARD, 0), (FORWARD, 1)])
        self.assertEqual(switch.stream.recv(1), b"", "it has closed its socket")

    def test_the_base_class_sends_everything_on_and_ends_with_its_switch(self) -> None:
        switch = self.switch()

        def answer() -> None:
            switch.answer()
            switch.give(0x10000, 0, FRAME)
            switch.stream.shutdown(2)

        answering = threading.Thread(target=answer)
        answering.start()
        with self.assertRaises(axon.SwitchGone):
            axon.run_agent(axon.Agent(), switch.path)
        answering.join()
        self.assertEqual(switch.hello[16:21], b"Agent")
        self.assertEqual([answer[:3] for answer in switch.answers()], [(FORWARD, 0, 0x10000)])

    def test_an_agent_whose_deadline_is_always_over_is_heard_and_ends_with_its_switch(self) -> None:
        switch = self.switch()

        class AlwaysDue(axon.Agent):
            def start(self) -> None:
                self.deadline_ns = self.now_ns
                # Otherwise it would run for ever.
                self.end_ns = self.now_ns + 20_000_000_000
                self.client.send(FRAME)

            def handle_timeout(self) -> None:
                self.deadline_ns = self.now_ns
                if self.now_ns > self.end_ns:
                    self.stop()

        def answer() -> None:
            switch.answer()
            while not switch.answers():
                pass
            switch.stream.shutdown(2)

        answering = threading.Thread(target=answer)
        answering.start()
        with self.assertRaises(axon.SwitchGone):
            axon.run_agent(AlwaysDue(), switch.path)
        answering.join()


if __name__ == "__main__":
    unittest.main()
