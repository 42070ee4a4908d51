-- Dissects what an Axon fabric says, for tshark and Wireshark 3.6 and later.
--
--   tshark -X lua_script:docs/wireshark/axon.lua -r results/demo/axon.pcapng
--
-- Axon packets (link type USER0, 147): the header of paper 001 figure 2, then the
-- encapsulated Ethernet frame or the envelope of a sealed control message.
-- Link frames (EtherType 0x88B5): an envelope in plain Ethernet.
-- Probes, Axon packets or Ethernet of type 0x88B6: the head, then one record for each unit.
-- The layouts are those of crates/wire/src/{header,envelope,link,probe,congestion}.rs. What the
-- code refuses is marked malformed here, with the value found and the value expected.

-- The constants of crates/wire/src/constants; crates/wire/tests/all/wireshark compares them.
local ETHERTYPE_LINK = 0x88b5
local ETHERTYPE_PROBE = 0x88b6
local LINK_DESTINATION = "0180c200000e"
local ETHER_PROBE_FIRST_BYTE = 0x0a
local ENVELOPE_VERSION = 8
local PROBE_VERSION = 1
local CONGESTION_VERSION = 1
local ENVELOPE_BYTES = 27
local PROBE_HEAD_BYTES = 16
local PROBE_RECORD_BYTES = 16
local CONGESTION_BYTES = 28
local HEADER_FIXED_BYTES = 6
local HEADER_FIXED_BITS_OF_FOUR = 44
local TYPE_ETHERNET = 1
local TYPE_CONTROL = 2
local TYPE_PROBE = 3
local TYPE_ERROR = 4
local TYPE_CONGESTION = 5
local UNIT_INGRESS = 1
local UNIT_EGRESS = 2
local OPTION_INGRESS = 0x01
local OPTION_EGRESS = 0x02
local OPTION_QUEUED = 0x04

local axon = Proto("axon", "Axon source route")
local envelope = Proto("axon.envelope", "Axon sealed message")
local link = Proto("axon.link", "Axon link frame")
local probe = Proto("axon.probe", "Axon probe")
local congestion = Proto("axon.congestion", "Axon congestion message")

local TYPES = { [TYPE_ETHERNET] = "Ethernet", [TYPE_CONTROL] = "Control",
  [TYPE_PROBE] = "Probe", [TYPE_ERROR] = "Error", [TYPE_CONGESTION] = "Congestion" }
local UNITS = { [UNIT_INGRESS] = "ingress", [UNIT_EGRESS] = "egress" }

local function malformed(name, text)
  return ProtoExpert.new(name, text, expert.group.MALFORMED, expert.severity.ERROR)
end

local f = axon.fields
f.type = ProtoField.uint8("axon.type", "Type", base.DEC, TYPES, 0xf0)
f.length = ProtoField.uint16("axon.header_length", "Header length (bytes)")
f.forward_count = ProtoField.uint16("axon.forward_count", "Forward hops")
f.reverse_count = ProtoField.uint16("axon.reverse_count", "Reverse hops")
f.priority = ProtoField.uint8("axon.priority", "Priority", base.DEC, nil, 0x0e)
f.hop_bits = ProtoField.uint8("axon.hop_bits", "Bits of a hop, by the header length")
f.forward = ProtoField.string("axon.forward", "Forward hops, next first")
f.reverse = ProtoField.string("axon.reverse", "Reverse hops, nearest first")
local bad_length = malformed("axon.bad_length", "Bad header length")
local bad_type = malformed("axon.bad_type", "Unassigned packet type")
axon.experts = { bad_length, bad_type }

local e = envelope.fields
e.version = ProtoField.uint8("axon.envelope.version", "Version")
e.length = ProtoField.uint16("axon.envelope.length", "Bytes sealed")
e.node = ProtoField.uint64("axon.envelope.node", "Sealed by node", base.HEX)
e.incarnation = ProtoField.uint64("axon.envelope.incarnation", "Incarnation of that node", base.HEX)
e.sequence = ProtoField.uint64("axon.envelope.sequence", "Sequence in that incarnation", base.DEC)
e.sealed = ProtoField.bytes("axon.envelope.sealed", "Ciphertext and tag (XChaCha20-Poly1305)")
local bad_envelope = malformed("axon.envelope.bad", "Not an envelope")
envelope.experts = { bad_envelope }

local p = probe.fields
p.version = ProtoField.uint8("axon.probe.version", "Version")
p.options = ProtoField.uint8("axon.probe.options", "Options", base.HEX)
p.wants_ingress = ProtoField.bool("axon.probe.wants_ingress", "Ingress units append a record", 8,
  nil, OPTION_INGRESS)
p.wants_egress = ProtoField.bool("axon.probe.wants_egress", "Egress units append a record", 8,
  nil, OPTION_EGRESS)
p.wants_queued = ProtoField.bool("axon.probe.wants_queued", "Egress records hold bytes queued", 8,
  nil, OPTION_QUEUED)
p.body = ProtoField.uint16("axon.probe.body_bytes", "Bytes before the records")
p.sequence = ProtoField.uint32("axon.probe.sequence", "Sequence")
p.origin = ProtoField.uint64("axon.probe.origin", "Sent by node", base.HEX)
p.record = ProtoField.none("axon.probe.record", "Record")
p.unit = ProtoField.uint8("axon.probe.unit", "Unit", base.DEC, UNITS)
p.port = ProtoField.uint16("axon.probe.port", "Port")
p.queued = ProtoField.uint32("axon.probe.queued", "Bytes queued for the port")
p.ticks = ProtoField.uint64("axon.probe.ticks", "Time (10 ps)", base.DEC)
p.since = ProtoField.double("axon.probe.residence_ns", "Inside this switch (ns)")
local bad_probe = malformed("axon.probe.bad", "Not a probe")
probe.experts = { bad_probe }

local g = congestion.fields
g.version = ProtoField.uint8("axon.congestion.version", "Version")
g.egress = ProtoField.uint16("axon.congestion.egress", "Full egress port")
g.host_port = ProtoField.uint16("axon.congestion.host_port", "Host port at the edge")
g.queued = ProtoField.uint32("axon.congestion.queued", "Bytes queued for the egress port")
g.switch = ProtoField.ether("axon.congestion.switch", "Switch")
g.destination = ProtoField.ether("axon.congestion.destination", "Refused frame's destination")
g.source = ProtoField.ether("axon.congestion.source", "Refused frame's source")
local bad_congestion = malformed("axon.congestion.bad", "Not a congestion message")
congestion.experts = { bad_congestion }

local eth_destination = Field.new("eth.dst")
local ethernet = Dissector.get("eth_withoutfcs")
local data = Dissector.get("data")

-- Bytes of a header with this many hops of this width. Hops of 4 bits begin in the second
-- half of byte 5, wider ones at byte 6.
local function hop_at(bits, index)
  local first = bits == 4 and HEADER_FIXED_BITS_OF_FOUR or 8 * HEADER_FIXED_BYTES
  return first + bits * index
end

local function header_bytes(bits, hops)
  return math.max(HEADER_FIXED_BYTES, math.ceil(hop_at(bits, hops) / 8))
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
    local hop = tvb(0):bitfield(hop_at(bits, index), bits)
    names[#names + 1] = hop == 2 ^ bits - 1 and "control" or tostring(hop)
  end
  return table.concat(names, " ")
end

-- Why a format of this version and shortest length cannot begin here; nil if it can.
local function fault_of(tvb, version, bytes)
  if tvb:len() < bytes then
    return string.format("%d bytes, where at least %d were expected", tvb:len(), bytes)
  elseif tvb(0, 1):uint() ~= version then
    return string.format("version %d, where %d was expected", tvb(0, 1):uint(), version)
  end
end

function envelope.dissector(tvb, pinfo, tree)
  local item = tree:add(envelope, tvb())
  local fault = fault_of(tvb, ENVELOPE_VERSION, ENVELOPE_BYTES)
  local length = not fault and tvb(1, 2):uint()
  if not fault and tvb:reported_len() < ENVELOPE_BYTES + length then
    fault = string.format("%d bytes sealed, where %d were expected",
      tvb:reported_len() - ENVELOPE_BYTES, length)
  end
  if fault then
    item:add_proto_expert_info(bad_envelope, "Not an envelope: " .. fault)
    return
  end
  item:add(e.version, tvb(0, 1))
  item:add(e.length, tvb(1, 2))
  item:add(e.node, tvb(3, 8))
  item:add(e.incarnation, tvb(11, 8))
  item:add(e.sequence, tvb(19, 8))
  if length > 0 and tvb:len() > ENVELOPE_BYTES then
    item:add(e.sealed, tvb(ENVELOPE_BYTES, math.min(length, tvb:len() - ENVELOPE_BYTES)))
  end
  local text = string.format("sealed by %s, number %s, %d bytes",
    tostring(tvb(3, 8):bytes()):lower(), tostring(tvb(19, 8):uint64()), length)
  item:append_text(": " .. text)
  pinfo.cols.info = text
end

-- The destination of the Ethernet frame that is being dissected: the innermost one.
local function destination()
  local all = { eth_destination() }
  return all[#all].range:bytes()
end

-- Other programs use the local experimental EtherTypes too: a link frame has the link-local
-- destination, an ether probe an address made from a switch's. The rest is left to others.
function link.dissector(tvb, pinfo, tree)
  if destination():tohex(true) ~= LINK_DESTINATION then return 0 end
  pinfo.cols.protocol = "Axon link"
  tree:add(link, tvb())
  envelope.dissector(tvb, pinfo, tree)
end

local ether_probe = Proto("axon.ether_probe", "Axon ether probe")

function ether_probe.dissector(tvb, pinfo, tree)
  if destination():get_index(0) ~= ETHER_PROBE_FIRST_BYTE then return 0 end
  pinfo.cols.protocol = "Axon probe"
  probe.dissector(tvb, pinfo, tree)
end

-- Why the bytes are no probe; nil if they are one.
local function fault_of_probe(tvb)
  local fault = fault_of(tvb, PROBE_VERSION, PROBE_HEAD_BYTES)
  if fault then return fault end
  local body, length = tvb(2, 2):uint(), tvb:reported_len()
  if body < PROBE_HEAD_BYTES then
    return string.format("%d bytes of body, where at least %d were expected", body,
      PROBE_HEAD_BYTES)
  elseif body > length then
    return string.format("%d bytes, where %d of body were expected", length, body)
  elseif (length - body) % PROBE_RECORD_BYTES ~= 0 then
    return string.format("%d bytes of records, which are %d bytes each", length - body,
      PROBE_RECORD_BYTES)
  end
  for at = body, tvb:len() - PROBE_RECORD_BYTES, PROBE_RECORD_BYTES do
    local unit = tvb(at, 1):uint()
    if not UNITS[unit] then return string.format("record of unit %d", unit) end
  end
end

-- The time inside a switch is that of an egress record less that of the ingress record right
-- before it: the same switch stamped both.
function probe.dissector(tvb, pinfo, tree)
  local item = tree:add(probe, tvb())
  local fault = fault_of_probe(tvb)
  if fault then
    item:add_proto_expert_info(bad_probe, "Not a probe: " .. fault)
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
  local count, came = 0, nil
  for at = tvb(2, 2):uint(), tvb:len() - PROBE_RECORD_BYTES, PROBE_RECORD_BYTES do
    local unit, port = tvb(at, 1):uint(), tvb(at + 2, 2):uint()
    local ticks = tvb(at + 8, 8):uint64()
    local record = item:add(p.record, tvb(at, PROBE_RECORD_BYTES))
    record:append_text(string.format(": %s of port %d at %s", UNITS[unit], port, tostring(ticks)))
    record:add(p.unit, tvb(at, 1))
    record:add(p.port, tvb(at + 2, 2))
    record:add(p.queued, tvb(at + 4, 4))
    record:add(p.ticks, tvb(at + 8, 8))
    if unit == UNIT_EGRESS and came then
      local inside = (ticks - came):tonumber() / 100
      record:add(p.since, tvb(at + 8, 8), inside):set_generated()
    end
    came = unit == UNIT_INGRESS and ticks or nil
    count = count + 1
  end
  local text = string.format("probe %d, %d records", tvb(4, 4):uint(), count)
  item:append_text(": " .. text)
  pinfo.cols.info = text
end

function congestion.dissector(tvb, pinfo, tree)
  local item = tree:add(congestion, tvb())
  local fault = fault_of(tvb, CONGESTION_VERSION, CONGESTION_BYTES)
  if fault then
    item:add_proto_expert_info(bad_congestion, "Not a congestion message: " .. fault)
    return
  end
  item:add(g.version, tvb(0, 1))
  item:add(g.egress, tvb(2, 2))
  item:add(g.host_port, tvb(4, 2))
  item:add(g.queued, tvb(6, 4))
  item:add(g.switch, tvb(10, 6))
  item:add(g.destination, tvb(16, 6))
  item:add(g.source, tvb(22, 6))
  pinfo.cols.info = string.format("egress port %d is full, %d bytes queued", tvb(2, 2):uint(),
    tvb(6, 4):uint())
end

-- What is in front of the payload's own words in the packet list. Columns are fenced, so
-- that the dissectors of the payload write behind this and not over it.
local function announce(pinfo, text)
  pinfo.cols.info = text
  pinfo.cols.info:fence()
end

function axon.dissector(tvb, pinfo, tree)
  -- A link frame or another link-local Ethernet frame: its first byte reads as type 0.
  if tvb:len() < HEADER_FIXED_BYTES or tvb(0, 1):bitfield(0, 4) == 0 then
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
    local fault = not bits and string.format("%d bytes do not hold %d hops of 4, 8 or 16 bits",
      length, forward + reverse)
      or string.format("%d bytes, where %d were expected", tvb:len(), length)
    item:add_proto_expert_info(bad_length, "Bad header length: " .. fault)
    pinfo.cols.info = "no Axon header: " .. fault
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
  if not name then
    item:add_proto_expert_info(bad_type, string.format("Unassigned packet type %d", kind))
  end
  local payload = tvb(length):tvb()
  if kind == TYPE_ETHERNET then
    ethernet:call(payload, pinfo, tree)
  elseif kind == TYPE_CONTROL then
    envelope.dissector(payload, pinfo, tree)
  elseif kind == TYPE_PROBE then
    probe.dissector(payload, pinfo, tree)
  elseif kind == TYPE_CONGESTION then
    congestion.dissector(payload, pinfo, tree)
  else
    data:call(payload, pinfo, tree)
  end
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, axon)
DissectorTable.get("ethertype"):add(ETHERTYPE_LINK, link)
DissectorTable.get("ethertype"):add(ETHERTYPE_PROBE, ether_probe)
