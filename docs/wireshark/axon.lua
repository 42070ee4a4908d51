-- Dissects what an Axon fabric says, for tshark and Wireshark 3.6 and later.
--
--   tshark -X lua_script:docs/wireshark/axon.lua -r results/demo/axon.pcapng
--
-- Axon packets (link type USER0, 147): the header of paper 001 figure 2, then the
-- encapsulated Ethernet frame or the envelope of a sealed control message.
-- Link frames (EtherType 0x88B5): an envelope in plain Ethernet.
-- The layouts are those of crates/wire/src/{header,envelope,link}.rs.

local ETHERTYPE_LINK = 0x88b5
local ENVELOPE_BYTES = 27
local ENVELOPE_VERSION = 1

local axon = Proto("axon", "Axon source route")
local envelope = Proto("axon.envelope", "Axon sealed message")
local link = Proto("axon.link", "Axon link frame")

local TYPES = { [1] = "Ethernet", [2] = "Control", [3] = "Probe", [4] = "Error" }

local f = axon.fields
f.type = ProtoField.uint8("axon.type", "Type", base.DEC, TYPES, 0xf0)
f.length = ProtoField.uint16("axon.header_length", "Header length (bytes)")
f.forward_count = ProtoField.uint16("axon.forward_count", "Forward hops")
f.reverse_count = ProtoField.uint16("axon.reverse_count", "Reverse hops")
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
  "Not an envelope of version 1, or cut short", expert.group.MALFORMED, expert.severity.ERROR)
envelope.experts = { bad_envelope }

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
  else
    if not name then item:add_proto_expert_info(bad_type) end
    data:call(payload, pinfo, tree)
  end
end

DissectorTable.get("wtap_encap"):add(wtap.USER0, axon)
DissectorTable.get("ethertype"):add(ETHERTYPE_LINK, link)
