// Stateless forwarding step (thesis section 3.1), as `forward` in crates/plane/src/axon/forward.rs:
// what becomes of a packet that came in at an Axon port.
//
// In this order: an invalid header or a reverse list that can take no more hops is malformed; a
// route longer than the limit is too long; without a hop the packet becomes an error for the
// control plane; a hop to the control plane goes there; a port that the switch does not have, or
// whose peer is not known, drops the packet; an Axon port takes a hop; a host port strips the
// header, unless the packet is not Ethernet: then it becomes an error for the control plane.
//
// Timing: combinational. The hop byte comes last: all that does not depend on it is two signals,
// and the ports are compared in parallel.

`default_nettype none

module forward #(
    parameter int unsigned PORTS = 4,    // at most 14
    parameter int unsigned HOP_BITS = 8  // 4, 8 or 16
) (
    input  wire axon::header_fields_t  header,
    input  wire logic                  is_valid,  // type and length of the header
    input  wire logic [HOP_BITS-1:0]   hop,
    input  wire logic [PORTS-1:0][1:0] kinds,     // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]      ups,       // carrier
    input  wire logic [15:0]           route_bytes_max,
    output axon::decision_t            decision,
    output logic [PORTS:0]             begins     // see decisions
);
    localparam logic [HOP_BITS-1:0] CONTROL = '1;

    // What the fields decide, whatever the hop.
    logic        is_too_long, is_refused, is_ended, is_ethernet;
    axon::drop_t refusal;
    always_comb begin
        is_too_long = header.header_bytes > route_bytes_max;
        is_ended = header.forward_count == 12'd0;
        is_refused = !is_valid || is_too_long || (!is_ended && header.reverse_count == 12'hfff);
        refusal = is_valid && is_too_long ? axon::DROP_ROUTE_TOO_LONG : axon::DROP_MALFORMED;
        is_ethernet = header.packet_type == axon::TYPE_ETHERNET;
    end

    // What the hop selects.
    logic to_control, to_axon, to_host, to_unknown, to_down;
    always_comb begin
        to_control = hop == CONTROL;
        to_axon = 1'b0;
        to_host = 1'b0;
        to_unknown = 1'b0;
        to_down = 1'b0;
        for (int unsigned at = 0; at < PORTS; at++) if (hop == HOP_BITS'(at)) begin
            to_axon = to_axon | (kinds[at] == axon::PORT_AXON);
            to_host = to_host | (kinds[at] == axon::PORT_HOST);
            to_unknown = to_unknown
                | (kinds[at] != axon::PORT_AXON && kinds[at] != axon::PORT_HOST);
            to_down = to_down | !ups[at];
        end
    end

    logic strips, punts_error, takes_hop;
    always_comb begin
        strips = !is_ended && to_host && is_ethernet;
        punts_error = is_ended || (to_host && !is_ethernet);
        takes_hop = !is_ended && !strips;
        begins[PORTS] = !is_refused && (punts_error || to_control);
        for (int unsigned at = 0; at < PORTS; at++) begins[at] = !is_refused && !is_ended
            && hop == HOP_BITS'(at) && kinds[at] == axon::PORT_AXON;
        decision = '0;
        decision.header = header;
        decision.frame_priority = header.frame_priority;
        decision.is_drop = is_refused || !(is_ended || to_control || to_axon || to_host);
        decision.drop = is_refused ? refusal
            : !to_unknown ? axon::DROP_NO_SUCH_PORT
            : to_down ? axon::DROP_PORT_DOWN : axon::DROP_EGRESS_UNKNOWN;
        decision.to = punts_error || to_control ? axon::CPU : 4'(hop);
        decision.punt = punts_error ? axon::PUNT_ERROR : axon::PUNT_ADDRESSED;
        decision.operation = takes_hop ? axon::HOP : strips ? axon::STRIP : axon::RAW;
        decision.becomes_error = punts_error;
        decision.is_limited = strips && !is_refused;
    end

`ifdef FORMAL
    // The step as crates/plane/src/axon/forward.rs and `axon_ingress` in plane.rs put it: one
    // question after the other. Fields that a verdict does not use are not compared.
    typedef enum logic [2:0] {DROP, PUNT_RAW, PUNT_HOP, EGRESS, STRIPPED} step_t;
    step_t       step;
    axon::drop_t reason;
    logic        is_error, has_port, is_up;
    logic [1:0]  kind;
    always_comb begin
        kind = 2'd0;
        is_up = 1'b0;
        has_port = hop < HOP_BITS'(PORTS);
        if (has_port) begin
            kind = kinds[hop[1:0]];
            is_up = ups[hop[1:0]];
        end
        step = DROP;
        reason = axon::DROP_MALFORMED;
        is_error = 1'b0;
        if (!is_valid) begin
            reason = axon::DROP_MALFORMED;
        end else if (header.header_bytes > route_bytes_max) begin
            reason = axon::DROP_ROUTE_TOO_LONG;
        end else if (header.forward_count == 0) begin
            step = PUNT_RAW;
            is_error = 1'b1;
        end else if (header.reverse_count == 4095) begin
            reason = axon::DROP_MALFORMED;
        end else if (hop == CONTROL) begin
            step = PUNT_HOP;
        end else if (!has_port) begin
            reason = axon::DROP_NO_SUCH_PORT;
        end else if (kind == axon::PORT_AXON) begin
            step = EGRESS;
        end else if (kind == axon::PORT_HOST) begin
            step = header.packet_type == axon::TYPE_ETHERNET ? STRIPPED : PUNT_HOP;
            is_error = header.packet_type != axon::TYPE_ETHERNET;
        end else begin
            reason = is_up ? axon::DROP_EGRESS_UNKNOWN : axon::DROP_PORT_DOWN;
        end
    end
    logic is_punt;
    logic [PORTS:0] f_begins;
    assign is_punt = step == PUNT_RAW || step == PUNT_HOP;
    always_comb begin
        a_drop: assert (decision.is_drop == (step == DROP));
        a_header: assert (decision.header == header);
        a_priority: assert (decision.frame_priority == header.frame_priority);
        if (step == DROP) begin
            a_reason: assert (decision.drop == reason);
            a_unlimited: assert (!decision.is_limited);
        end else begin
            a_to: assert (decision.to == (is_punt ? axon::CPU : 4'(hop)));
            a_error: assert (decision.becomes_error == is_error);
            a_raw: assert ((decision.operation == axon::RAW) == (step == PUNT_RAW));
            a_strip: assert ((decision.operation == axon::STRIP) == (step == STRIPPED));
            a_hop: assert ((decision.operation == axon::HOP)
                == (step == PUNT_HOP || step == EGRESS));
            a_limited: assert (decision.is_limited == (step == STRIPPED));
        end
        f_begins = '0;
        for (int unsigned at = 0; at < PORTS; at++)
            f_begins[at] = step == EGRESS && hop == HOP_BITS'(at);
        f_begins[PORTS] = is_punt;
        a_begins: assert (begins == f_begins);
        if (is_punt)
            a_punt: assert (decision.punt
                == (is_error ? axon::PUNT_ERROR : axon::PUNT_ADDRESSED));
    end
`endif
endmodule
