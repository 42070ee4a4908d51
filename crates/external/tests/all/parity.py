"""Every kind of change, as `parity.rs` has it in Rust."""

import axon

Action = axon.Action


def fill(t: axon.Tables) -> None:
    t.set_udlk(1, ["B0-5"])
    t.set_udlk(2, ["INGRESS", "PRIORITY", "B30-33"], frame_type="ipv4")
    t.set_interface(3, 1, "001F29D417E8")
    t.set_interface(4, 0, source=bytes([2, 0, 0, 0, 0, 7]))
    t.set_group(5, [3, 4])
    t.set_tunnel(6, "10.0.0.1", bytes([10, 0, 0, 2]), protocol=47, ttl=9, shim=bytes(4))
    t.set_tcam(0, 1, "0000010200ff", None, Action.interface(3).mirror_to_cpu())
    t.set_tcam(7, 2, "0001" "03" "0a000000", "ffff" "07" "ff000000", Action.group(5))
    t.set_tcam(8, 1, "000000000001", None, Action.tables().mirror_to(1))
    t.set_mac("02:00:00:00:00:09", Action.port(1).set_source("02:00:00:00:00:01"), bridge=3)
    t.set_mac("02-00-00-00-00-0A", Action.drop().set_destination(bytes(6)))
    t.set_ipv4("10.1.2.3", Action.spread(5).decrement_ttl().set_dscp(46))
    t.set_mpls(77, Action.interface(4).mpls_swap(78).mirror_to(1))
    t.set_mpls(78, Action.port(0).mpls_pop())
    t.set_prefix("10.0.0.0/8", Action.port(1).tunnel_push(6))
    t.set_prefix("10.2.0.0/16", Action.port(1).tunnel_pop(4).mpls_push(5))
    t.set_mac("02:00:00:00:00:0b", Action.port(1).axon_push([1, 2]))
    t.set_mac("02:00:00:00:00:0c", Action.port(1).axon_hop())
    t.set_mac("02:00:00:00:00:0d", Action.port(1).axon_strip())
    t.set_mac("02:00:00:00:00:0e", Action.port(1).axon_push([3], layer=5))
    t.set_mac("02:00:00:00:00:0f", Action.port(1).axon_error())
    t.set_miss(Action.cpu())
    t.set_port(1, bridge=3, routed=False, learn=True)


class Fabric(axon.Program):
    def start(self) -> None:
        with self.switch.transaction() as t:
            fill(t)
        # What a second transaction sets and removes again leaves nothing.
        self.switch.set_mpls(9, Action.drop())
        self.switch.remove(axon.EntryName.mpls(9))


if __name__ == "__main__":
    switch = axon.Switch(ports=2)
    fill(switch)
    for entry in switch.entries():
        print(entry.change)
