-- Dissects what an Axon fabric says, for tshark and Wireshark 3.6 and later.
--
--   tshark -X lua_script:docs/wireshark/axon.lua -r results/demo/axon.pcapng
--
-- Axon packets (link type USER0, 147): the header of paper 001 figure 2, then the
-- encapsulated Ethernet frame or the envelope of a sealed control message.
-- Link frames (EtherType 0x88B5): an envelope in plain Ethernet.
-- Probes, Axon packets or Ethernet of type 0x88B6: the head, then one record for each unit.
-- The layouts are those of crates/wire/src/{header,envelope,link,probe,congestion}.rs.

local ETHERTYPE_LINK = 0x88b5
local ETHERTYPE_PROBE = 0x88b6
local ENVELOPE_BYTES = 27
local PROBE_HEAD_BYTES = 16
local RECORD_BYTES = 16
local CONGESTION_BYTES = 28
local ENVELOPE_VERSION = 2

local axon = Proto("axon", "Axon source route")
local envelope = Proto("axon.envelope", "Axon sealed message")
local link = Proto("axon.link", "Axon link frame")
local probe = Proto("axon.probe", "Axon probe")
local congestion = Proto("axon.congestion", "Axon congestion message")

local TYPES = { [1] = "Ethernet", [2] = "Control", [3] = "Probe", [4] = "Error",
  [5] = "Congestion" }
local UNITS = { [1] = "ingress", [2] = "egress" }

local f = axon.fields
f.type = ProtoField.uint8("axon.type", "Type", base.DEC, TYPES, 0xf0)
f.length = ProtoField.uint16("axon.header_length", "Header length (bytes)")
f.forward_count = ProtoField.uint16("axon.forward_count", "Forward hops")
f.reverse_count = ProtoField.uint16("axon.reverse_count", "Reverse hops")
f.priority = ProtoField.uint8("axon.priority", "Priority", base.DEC, nil, 0x0e)
f.hop_bits = ProtoField.uint8("axon.hop_bits", "Bits of a hop, by the header length")
f.forward = ProtoField.string("axon.forward", "Forward hops, next first")
f.reverse = ProtoField.string("axon.reverse", "Reverse hops, nearest first")
local bad_length = ProtoExpert.new("axon.bad_length",
  "The header length disagrees with the hop counts", expert.group.MALFORMED, expert.severity.ERROR)
local bad_type = ProtoExpert.new("axon.bad_type",
  "Unassigned packet type", expert.group.MALFORMED, expert.severity.ERROR)
axon.experts = { bad_length, bad_type }

local e = envelope.fields
e.version = ProtoField.uint8("axon.envelope.version", "Version")
e.length = ProtoField.uint16("axon.envelope.length", "Bytes sealed")
e.node = ProtoField.uint64("axon.envelope.node", "Sealed by node", base.HEX)
e.incarnation = ProtoField.uint64("axon.envelope.incarnation", "In its life", base.HEX)
e.sequence = ProtoField.uint64("axon.envelope.sequence", "Sequence in that life", base.DEC)
e.sealed = ProtoField.bytes("axon.envelope.sealed", "Ciphertext and tag (XChaCha20-Poly1305)")
local bad_envelope = ProtoExpert.new("axon.envelope.bad",
  "Not an envelope of version 2, or cut short", expert.group.MALFORMED, expert.severity.ERROR)
envelope.experts = { bad_envelope }

local p = probe.fields
p.version = ProtoField.uint8("axon.probe.version", "Version")
p.options = ProtoField.uint8("axon.probe.options", "Options", base.HEX)
p.wants_ingress = ProtoField.bool("axon.probe.wants_ingress", "Ingress units stamp", 8, nil, 0x01)
p.wants_egress = ProtoField.bool("axon.probe.wants_egress", "Egress units stamp", 8, nil, 0x02)
p.wants_queued = ProtoField.bool("axon.probe.wants_queued", "Egress units tell what waits", 8, nil, 0x04)
p.body = ProtoField.uint16("axon.probe.body_bytes", "Bytes before the records")
p.sequence = ProtoField.uint32("axon.probe.sequence", "Sequence")
p.origin = ProtoField.uint64("axon.probe.origin", "Sent by node", base.HEX)
p.record = ProtoField.none("axon.probe.record", "Record")
p.unit = ProtoField.uint8("axon.probe.unit", "Unit", base.DEC, UNITS)
p.port = ProtoField.uint16("axon.probe.port", "Port")
p.queued = ProtoField.uint32("axon.probe.queued", "Bytes that wait for the port")
p.ticks = ProtoField.uint64("axon.probe.ticks", "Time (10 ps)", base.DEC)
p.since = ProtoField.double("axon.probe.residence_ns", "Inside this switch (ns)")
local bad_probe = ProtoExpert.new("axon.probe.bad",
  "Not a probe of version 1, or cut short", expert.group.MALFORMED, expert.severity.ERROR)
probe.experts = { bad_probe }

local g = congestion.fields
g.version = ProtoField.uint8("axon.congestion.version", "Version")
g.egress = ProtoField.uint16("axon.congestion.egress", "Full output")
g.host_port = ProtoField.uint16("axon.congestion.host_port", "Host port at the edge")
g.queued = ProtoField.uint32("axon.congestion.queued", "Bytes that wait there")
g.switch = ProtoField.ether("axon.congestion.switch", "Switch")
g.destination = ProtoField.ether("axon.congestion.destination", "Refused frame's destination")
g.source = ProtoField.ether("axon.congestion.source", "Refused frame's source")

local ethernet = Dissector.get("eth_withoutfcs")
local data = Dissector.get("data")

-- Bytes of a header with this many hops of this width. Hops of 4 bits begin in the second
-- half of byte 5, wider ones at byte 6.
local function header_bytes(bits, hops)
  local first = bits == 4 and 44 or 48
  return math.max(6, math.ceil((first + hops * bits) / 8))
end

-- The width is a parameter of the fabric and not in the header, but with at least one hop
-- only one width gives the header length.
local function hop_bits(length, hops)
  for _, bits in ipairs({ 8, 4, 16 }) do
    if header_bytes(bits, hops) == length then return bits end
  end
end

local function hop_list(tvb, bits, first, count)
  local names = {}
  for index = first, first + count - 1 do
    local hop
    if bits == 4 then
      hop = tvb(0):bitfield(44 + 4 * index, 4)
    else
      hop = tvb(0):bitfield(48 + bits * index, bits)
    end
    names[#names + 1] = hop == 2 ^ bits - 1 and "control" or tostring(hop)
  end
  return table.concat(names, " ")
end

function envelope.dissector(tvb, pinfo, tree)
  local item = tree:add(envelope, tvb())
  if tvb:len() < ENVELOPE_BYTES or tvb(0, 1):uint() ~= ENVELOPE_VERSION
      or tvb:reported_len() < ENVELOPE_BYTES + tvb(1, 2):uint() then
    item:add_proto_expert_info(bad_envelope)
    return
  end
  local length = tvb(1, 2):uint()
  item:add(e.version, tvb(0, 1))
  item:add(e.length, tvb(1, 2))
  item:add(e.node, tvb(3, 8))
  item:add(e.incarnation, tvb(11, 8))
  item:add(e.sequence, tvb(19, 8))
  item:add(e.sealed, tvb(ENVELOPE_BYTES, math.min(length, tvb:len() - ENVELOPE_BYTES)))
  local text = string.format("sealed by %s, number %s, %d bytes",
    tostring(tvb(3, 8):bytes()):lower(), tostring(tvb(19, 8):uint64()), length)
  item:append_text(": " .. text)
  pinfo.cols.info = text
end

function link.dissector(tvb, pinfo, tree)
  pinfo.cols.protocol = "Axon link"
  tree:add(link, tvb())
  envelope.dissector(tvb, pinfo, tree)
end

-- The time inside a switch is that of an egress record less that of the ingress record right
-- before it: the same switch stamped both.
function probe.dissector(tvb, pinfo, tree)
  local item = tree:add(probe, tvb())
  if tvb:len() < PROBE_HEAD_BYTES or tvb(0, 1):uint() ~= 1 or tvb(2, 2):uint() > tvb:len() then
    item:add_proto_expert_info(bad_probe)
    return
  end
  item:add(p.version, tvb(0, 1))
  local options = item:add(p.options, tvb(1, 1))
  options:add(p.wants_ingress, tvb(1, 1))
  options:add(p.wants_egress, tvb(1, 1))
  options:add(p.wants_queued, tvb(1, 1))
  item:add(p.body, tvb(2, 2))
  item:add(p.sequence, tvb(4, 4))
  item:add(p.origin, tvb(8, 8))
  local at = math.max(tvb(2, 2):uint(), PROBE_HEAD_BYTES)
  local count, came = 0, nil
  while at + RECORD_BYTES <= tvb:len() do
    local unit, port = tvb(at, 1):uint(), tvb(at + 2, 2):uint()
    local ticks = tvb(at + 8, 8):uint64()
    local record = item:add(p.record, tvb(at, RECORD_BYTES))
    record:append_text(string.format(": %s of port %d at %s", UNITS[unit] or "?", port, tostring(ticks)))
    record:add(p.unit, tvb(at, 1))
    record:add(p.port, tvb(at + 2, 2))
    record:add(p.queued, tvb(at + 4, 4))
    record:add(p.ticks, tvb(at + 8, 8))
    if unit == 2 and came then
      local inside = (ticks - came):tonumber() / 100
      record:add(p.since, tvb(at + 8, 8), inside):set_generated()
    end
    came = unit == 1 and ticks or nil
    count = count + 1
    at = at + RECORD_BYTES
  end
  local text = string.format("probe %d, %d records", tvb(4, 4):uint(), count)
  item:append_text(": " .. text)
  pinfo.cols.info = text
end

function congestion.dissector(tvb, pinfo, tree)
  local item = tree:add(congestion, tvb())
  if tvb:len() < CONGESTION_BYTES then return end
  item:add(g.version, tvb(0, 1))
  item:add(g.egress, tvb(2, 2))
  item:add(g.host_port, tvb(4, 2))
  item:add(g.queued, tvb(6, 4))
  item:add(g.switch, tvb(10, 6))
  item:add(g.destination, tvb(16, 6))
  item:add(g.source, tvb(22, 6))
  pinfo.cols.info = string.format("output %d is full, %d bytes wait", tvb(2, 2):uint(), tvb(6, 4):uint())
end

-- What is in front of the payload's own words in the packet list. Columns are fenced, so
-- that the dissectors of the payload write behind this and not over it.
local function announce(pinfo, text)
  pinfo.cols.info = text
  pinfo.cols.info:fence()
end

function axon.dissector(tvb, pinfo, tree)
  -- A link frame or another link-local Ethernet frame: its first byte reads as type 0.
  if tvb:len() < 6 or tvb(0, 1):bitfield(0, 4) == 0 then
    ethernet:call(tvb, pinfo, tree)
    return
  end
  pinfo.cols.protocol = "Axon"
  local kind = tvb(0, 1):bitfield(0, 4)
  local length = tvb(0, 3):bitfield(4, 16)
  local forward = tvb(2, 2):bitfield(4, 12)
  local reverse = tvb(4, 2):bitfield(0, 12)
  local bits = hop_bits(length, forward + reverse)
  local item = tree:add(axon, tvb(0, math.min(length, tvb:len())))
  item:add(f.type, tvb(0, 1))
  item:add(f.length, tvb(0, 3), length)
  item:add(f.forward_count, tvb(2, 2), forward)
  item:add(f.reverse_count, tvb(4, 2), reverse)
  if not bits or length > tvb:len() then
    item:add_proto_expert_info(bad_length)
    pinfo.cols.info = "no Axon header: length and hop counts disagree"
    return
  end
  local hops = tvb(0, length)
  local ahead = hop_list(tvb, bits, 0, forward)
  local behind = hop_list(tvb, bits, forward, reverse)
  -- Hops of 4 bits begin where the priority would stand.
  if bits ~= 4 then item:add(f.priority, tvb(5, 1)) end
  item:add(f.hop_bits, hops, bits):set_generated()
  item:add(f.forward, hops, ahead)
  item:add(f.reverse, hops, behind)
  local name = TYPES[kind]
  item:append_text(string.format(", %s, forward [%s], reverse [%s]", name or kind, ahead, behind))
  announce(pinfo, string.format("%s [%s | %s] ", name or "?", ahead, behind))
  local payload = tvb(length):tvb()
  if kind == 1 then
    ethernet:call(payload, pinfo, tree)
  elseif kind == 2 then
    envelope.dissector(payload, pinfo, tree)
  elseif kind == 3 then
    probe.dissector(payload, pinfo, tree)
  elseif kind == 5 then
    congestion.dissector(payload, pinfo, tree)
  else
    if not name then item:add_proto_expert_info(bad_type) end
    data:call(payload, pinfo, tree)
  end
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, axon)
DissectorTable.get("ethertype"):add(ETHERTYPE_LINK, link)
DissectorTable.get("ethertype"):add(ETHERTYPE_PROBE, probe)
