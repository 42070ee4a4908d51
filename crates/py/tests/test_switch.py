"""The switch in memory: the paper's API, transactions, errors, counters."""

import ipaddress
import unittest
from collections.abc import Callable

import axon
from axon import Action, EntryName

HOST = "02:00:00:00:00:09"


def frame(to: str = HOST, ethertype: int = 0x88B5, payload: bytes = bytes(46)) -> bytes:
    addresses = axon.mac_bytes(to) + axon.mac_bytes("02:00:00:00:01:01")
    return addresses + ethertype.to_bytes(2) + payload


class TestSwitch(unittest.TestCase):
    def test_a_frame_leaves_as_its_entry_says_and_is_counted(self) -> None:
        switch = axon.Switch(ports=4)
        switch.set_mac(HOST, Action.port(2))
        self.assertEqual(switch.receive(0, frame()), [(2, frame())])
        self.assertEqual(switch.read_entry(EntryName.mac(HOST)), (1, 60))
        self.assertEqual(switch.read_register("RX_FRAMES_PORT0"), 1)
        self.assertEqual(switch.read_register("TX_BYTES_PORT2"), 60)
        self.assertEqual(switch.receive(0, frame("02:00:00:00:00:0a")), [])
        self.assertEqual(switch.dropped(), {"no_route": 1})

    def test_the_examples_of_the_paper_do_what_it_says(self) -> None:
        switch = axon.Switch(ports=4)
        switch.SetUDLK(1, ("B0-5",))
        switch.SetUDLK(2, ("INPORT", "B30-33", "B42-45"))
        switch.SetVifTable(3, "001F29D417E8", None, 2)
        action = Action.interface(3)
        switch.SetLookupTable("tcam", 1, 1, "000001020001", "FFFFFF000000", action)
        left = switch.receive(0, frame("00:00:01:77:77:77"))
        self.assertEqual(left, [(2, frame("00:1f:29:d4:17:e8"))])
        self.assertEqual(switch.ReadRegister("OUTPUT_QUEUE_BYTES_PORT0"), 0)
        switch.WriteRegister("CPU_RATE_PORT0", 100)
        self.assertEqual(switch.ReadRegister("CPU_RATE_PORT0"), 100)
        switch.SendPacket(frame(), 1)
        self.assertEqual(switch.take_left(), [(1, frame())])
        switch.set_miss(Action.cpu())
        switch.receive(3, frame())
        self.assertEqual(switch.RecvPacket(), (3, frame()))
        self.assertIsNone(switch.RecvPacket())

    def test_every_lookup_table_has_the_parameters_of_the_paper(self) -> None:
        switch = axon.Switch(ports=4)
        port = Action.port(1)
        switch.set_lookup_table("mac", None, None, HOST, None, port)
        switch.set_lookup_table("ipv4", None, None, "10.0.0.1", None, port)
        switch.set_lookup_table("mpls", None, None, 5, None, port)
        switch.set_lookup_table("prefix", None, None, "10.0.0.0/8", None, port)
        entries = {table: count for table, (count, _) in switch.counts().items() if count}
        self.assertEqual(entries, {"mac": 1, "ipv4": 1, "mpls": 1, "prefix": 1})
        with self.assertRaisesRegex(ValueError, "expected tcam"):
            switch.set_lookup_table("lpm", None, None, "10.0.0.0/8", None, port)

    def test_a_transaction_makes_all_changes_or_none(self) -> None:
        switch = axon.Switch(ports=4)
        with switch.transaction() as t:
            t.set_mac(HOST, Action.port(1))
            t.set_ipv4(ipaddress.IPv4Address("10.0.0.1"), Action.port(1))
            self.assertEqual(switch.counts()["mac"], (0, 32768), "nothing before the end")
        self.assertEqual(switch.counts()["mac"], (1, 32768))
        with self.assertRaises(axon.ChangeError) as refused, switch.transaction() as t:
            t.set_mac(HOST, None)
            t.set_prefix("10.0.0.0/8", Action.port(9))
        error = refused.exception
        self.assertEqual(error.position, 2)
        self.assertEqual(error.entry, EntryName.prefix(ipaddress.IPv4Network("10.0.0.0/8")))
        self.assertEqual(error.entry.table, "prefix")
        self.assertEqual(error.reason, "there is no port p9")
        self.assertEqual(switch.counts()["mac"], (1, 32768))
        with self.assertRaises(KeyError), switch.transaction() as t:
            t.set_mac(HOST, None)
            raise KeyError("of the caller")
        self.assertEqual(switch.counts()["mac"], (1, 32768))

    def test_bad_input_is_a_typed_error_and_changes_nothing(self) -> None:
        switch = axon.Switch(ports=2, sizes={"mac": 1})
        switch.set_mac(HOST, Action.port(1))
        bad: list[Callable[[], None]] = [
            lambda: switch.set_udlk(0, ["B120-128"]),
            lambda: switch.set_udlk(0, ["B0-3", "B3-5"]),
            lambda: switch.set_udlk(16, ["B0-3"]),
            lambda: switch.set_mac("02:00:00:00:00:0a", Action.port(1)),
            lambda: switch.set_tcam(0, 3, "00", None, Action.drop()),
            lambda: switch.set_ipv4("10.0.0.1", Action.interface(0)),
            lambda: switch.set_mpls(1 << 20, Action.drop()),
            lambda: switch.set_prefix("10.0.0.1/8", Action.drop()),
        ]
        for change in bad:
            with self.assertRaises(axon.ChangeError):
                change()
        with self.assertRaisesRegex(ValueError, "no MAC"):
            switch.set_mac("02:00:00", Action.drop())
        with self.assertRaisesRegex(ValueError, "no field .DMAC."):
            switch.set_udlk(0, ["DMAC"])
        with self.assertRaisesRegex(ValueError, "a key ends at byte 127"):
            switch.set_udlk(0, ["B300"])
        with self.assertRaisesRegex(ValueError, "no layer 8: expected 0 to 7"):
            Action.port(1).axon_push([1], layer=8)
        with self.assertRaises(axon.RegisterError):
            switch.read_register("RX_FRAMES_PORT7")
        with self.assertRaises(axon.RegisterError):
            switch.write_register("RX_FRAMES_PORT0", 1)
        with self.assertRaisesRegex(ValueError, "no port 2"):
            switch.receive(2, frame())
        self.assertEqual(sum(count for count, _ in switch.counts().values()), 1)

    def test_the_way_of_a_frame_is_explained_and_not_counted(self) -> None:
        switch = axon.Switch(ports=4)
        switch.set_mac(HOST, Action.port(2))
        way = switch.explain(0, frame())
        self.assertEqual(way.sent, [(2, frame())])
        self.assertFalse(way.to_cpu)
        self.assertEqual([name for name, _ in way.stages], ["parser", "lookup", "out"])
        self.assertEqual(switch.entries("mac")[0].frames, 0)

    def test_entries_can_be_set_in_another_switch(self) -> None:
        one, other = axon.Switch(ports=2), axon.Switch(ports=2)
        one.set_udlk(1, ["B0-5"])
        one.set_tcam(4, 1, "020000000000", "ffffff000000", Action.port(1).set_dscp(3))
        one.set_mac(HOST, Action.drop())
        other.commit([entry.change for entry in one.entries()])
        self.assertEqual(one.entries(), other.entries())


class TestPatterns(unittest.TestCase):
    def test_ranges_and_prefixes_become_entries(self) -> None:
        ports = axon.range_patterns(1024, 65535, 2)
        self.assertEqual((len(ports), ports[0]), (6, (b"\x04\0", b"\xfc\0")))
        self.assertEqual(axon.prefix_pattern("10.0.0.0/8"), (b"\x0a\0\0\0", b"\xff\0\0\0"))
        both = axon.combine_patterns([[("05", "ff")], ports], max=6)
        self.assertEqual(both[0], (b"\x05\x04\0", b"\xff\xfc\0"))
        with self.assertRaisesRegex(ValueError, "it takes 6 entries; there is room for 5"):
            axon.combine_patterns([ports], max=5)
        with self.assertRaisesRegex(ValueError, "5-4 ends before it begins"):
            axon.range_patterns(5, 4, 2)

    def test_entries_with_priorities_get_their_indexes(self) -> None:
        key = axon.Change.udlk(1, ["B0-1"])
        wide, narrow = (1, 1, "0200", "ff00", Action.drop()), (9, 1, "0201", "ffff", Action.port(1))
        changes = axon.arrange_tcam([narrow, wide], [key], first=7, count=3)
        switch = axon.Switch(ports=2)
        switch.commit([key, *changes])
        indexes = [str(entry.name) for entry in switch.entries("tcam")]
        self.assertEqual(sorted(indexes), ["tcam 7", "tcam 8"])
        self.assertEqual([port for port, _ in switch.receive(0, frame("02:01:00:00:00:00"))], [1])
        self.assertEqual(switch.receive(0, frame("02:02:00:00:00:00")), [])
        with self.assertRaisesRegex(ValueError, "have the same priority 1"):
            axon.arrange_tcam([wide, (1, *narrow[1:])], [key], first=7, count=3)


class Learning(axon.Program):
    """A learning bridge, for the test of programs in memory."""

    def start(self) -> None:
        for port in range(self.switch.ports):
            self.switch.set_port(port, learn=True)
            self.switch.set_interface(port, port)
        self.switch.set_group(0, range(self.switch.ports))
        self.switch.set_miss(Action.group(0))
        self.deadline_ns = self.now_ns + 1000
        self.timeouts = 0
        self.links: list[tuple[int, bool]] = []

    def link(self, port: int, up: bool) -> None:
        self.links.append((port, up))

    def receive_packet(self, port: int, frame: bytes) -> None:
        self.switch.set_mac(frame[6:12], Action.port(port))

    def timeout(self) -> None:
        self.timeouts += 1
        self.deadline_ns = self.now_ns + 1000


class TestProgram(unittest.TestCase):
    def site(self) -> axon.Site:
        ports = tuple(axon.Port(number) for number in range(3))
        return axon.Site(axon.Plan((axon.Node("s1", "02:00:00:00:00:01", ports),), ()))

    def test_a_program_can_be_tried_on_a_switch_in_memory(self) -> None:
        switch = axon.Switch(ports=3)
        program = switch.run(Learning, self.site())
        self.assertEqual([port for port, _ in switch.receive(0, frame())], [1, 2])
        back = axon.mac_bytes("02:00:00:00:01:01") + axon.mac_bytes(HOST) + frame()[12:]
        self.assertEqual(switch.receive(2, back), [(0, back)], "the first source was learned")
        self.assertEqual([port for port, _ in switch.receive(0, frame())], [2])
        switch.advance(10_500)
        self.assertEqual(program.timeouts, 10)
        switch.set_link(2, False)
        self.assertEqual(program.links, [(0, True), (1, True), (2, True), (2, False)])
        self.assertEqual(switch.receive(0, frame()), [])

    def test_a_program_starts_without_carrier_and_then_gets_it(self) -> None:
        class Start(axon.Program):
            def start(self) -> None:
                self.up = [self.switch.is_up(port) for port in range(self.switch.ports)]

            def link(self, port: int, up: bool) -> None:
                self.up.append(self.switch.is_up(port))

        switch = axon.Switch(ports=3)
        switch.set_link(1, False)
        self.assertEqual(switch.run(Start, self.site()).up, [False] * 3 + [True] * 2)

    def test_a_deadline_in_the_past_does_not_stop_the_clock(self) -> None:
        class Hasty(axon.Program):
            def start(self) -> None:
                self.timeouts = 0
                self.deadline_ns = 0

            def timeout(self) -> None:
                self.timeouts += 1
                assert self.timeouts < 100
                self.deadline_ns = self.now_ns

        switch = axon.Switch(ports=3)
        program = switch.run(Hasty, self.site())
        switch.advance(10_500)
        self.assertEqual((program.timeouts, switch.now_ns), (10, 10_500))

    def test_what_a_program_sends_to_itself_ends_and_every_frame_is_counted_once(self) -> None:
        class Echo(axon.Program):
            def start(self) -> None:
                self.switch.set_miss(Action.cpu())
                self.packets = 0

            def receive_packet(self, port: int, frame: bytes) -> None:
                self.packets += 1
                assert self.packets < 100
                self.switch.inject_packet(frame)

        switch = axon.Switch(ports=3)
        program = switch.run(Echo, self.site())
        self.assertEqual(switch.receive(0, frame()), [])
        self.assertEqual(program.packets, 8)
        self.assertEqual(switch.dropped(), {"consumed": 8, "punt_limit": 1})

    def test_arp_is_answered_for_known_addresses(self) -> None:
        sender = axon.mac_bytes("02:00:00:00:01:01")
        request = bytes.fromhex("0001080006040001") + sender + bytes([10, 0, 0, 1]) + bytes(6)
        asked = frame("ff:ff:ff:ff:ff:ff", 0x0806, request + bytes([10, 0, 0, 2]))
        answer = axon.arp_answer(asked, {"10.0.0.2": HOST})
        assert answer is not None
        self.assertEqual(answer[:6], sender)
        self.assertEqual(axon.mac_text(answer[22:28]), HOST)
        self.assertIsNone(axon.arp_answer(asked, {}))


if __name__ == "__main__":
    unittest.main()
