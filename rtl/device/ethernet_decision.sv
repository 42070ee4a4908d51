// What becomes of a frame that begins with an Ethernet header, as `link_ingress` and
// `host_ingress` in crates/plane/src/axon/plane.rs.
//
// A link-local frame goes to the CPU from a port of any kind, and MAC control ends here. Another
// frame is accepted from hosts only: it leaves with the header of its route, or, without a route
// or to a group, goes to the CPU with the default header. A host port gets it without a header,
// whatever the entry holds; an Axon port never gets one without a header.
//
// Timing: combinational, from registers of `ethernet` and `routes`.

`default_nettype none

module ethernet_decision #(
    parameter int unsigned PORTS = 4 // at most 14
) (
    input  wire axon::port_kind_t      kind,           // of the ingress port
    input  wire logic                  is_multicast,
    input  wire logic                  is_link_local,
    input  wire logic                  is_mac_control,
    input  wire logic                  route_hit,
    input  wire logic [1:0]            route_place,
    input  wire axon::output_t         route_to,
    input  wire logic [PORTS:0]        route_reaches,  // `route_to` decoded; bit PORTS: the CPU
    input  wire logic [2:0]            route_priority,
    input  wire logic [4:0]            route_header_bytes,
    input  wire logic                  route_has_header,
    input  wire logic                  route_rewrites_destination,
    input  wire logic [PORTS-1:0][1:0] kinds,          // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]      ups,            // carrier
    output axon::decision_t            decision,
    output logic [PORTS:0]             begins          // see decisions
);
    localparam logic [15:0] ETHERNET_BYTES = 16'd14;

    // What the frame decides, whatever its route.
    logic is_host, is_link_frame, is_routed, is_other;
    always_comb begin
        is_host = kind == axon::PORT_HOST;
        is_link_frame = is_link_local || is_mac_control;
        is_routed = is_host && !is_link_frame && !is_multicast && route_hit;
        is_other = !is_mac_control && (is_host || is_link_local); // to the CPU, if not routed
    end

    // What the route selects, the last to be known.
    logic [PORTS:0] accepts, dead;
    logic           to_host;
    always_comb begin
        to_host = 1'b0;
        for (int unsigned at = 0; at < PORTS; at++) begin
            to_host = to_host | (route_reaches[at] && kinds[at] == axon::PORT_HOST);
            accepts[at] = route_reaches[at] && (kinds[at] == axon::PORT_HOST
                || (kinds[at] == axon::PORT_AXON && route_has_header));
            dead[at] = route_reaches[at] && !ups[at] // of unknown kind, without carrier
                && kinds[at] != axon::PORT_HOST && kinds[at] != axon::PORT_AXON;
        end
        accepts[PORTS] = route_reaches[PORTS];
        dead[PORTS] = 1'b0;
        begins = is_routed ? accepts : {is_other, {PORTS{1'b0}}};
    end

    always_comb begin
        decision = '0;
        decision.is_limited = is_host;
        decision.operation = is_host && !is_link_frame ? axon::PUSH : axon::RAW;
        decision.place = route_place;
        decision.rewrites_destination = route_rewrites_destination && is_routed;
        decision.frame_priority = is_routed ? route_priority : 3'd0;
        decision.to = is_routed ? route_to : axon::CPU;
        decision.punt = is_link_frame ? axon::PUNT_LINK_LOCAL
            : is_routed ? axon::PUNT_ADDRESSED : axon::PUNT_MISS;
        decision.header.header_bytes = is_link_frame ? ETHERNET_BYTES
            : is_host && !to_host ? 16'(route_header_bytes) : 16'd0;
        decision.is_drop = begins == '0;
        if (is_mac_control) decision.drop = axon::DROP_MAC_CONTROL;
        else if (kind == axon::PORT_AXON) decision.drop = axon::DROP_MALFORMED;
        else if (!is_host) decision.drop = axon::DROP_PORT_UNKNOWN;
        else if (route_reaches == '0) decision.drop = axon::DROP_NO_SUCH_PORT;
        else if (dead != '0) decision.drop = axon::DROP_PORT_DOWN;
        else decision.drop = axon::DROP_EGRESS_UNKNOWN;
    end

`ifdef FORMAL
    // `begins` is computed apart, for it is late; it is what the decision says.
    logic [PORTS:0] f_reaches, f_to;
    always_comb begin
        for (int unsigned at = 0; at < PORTS; at++) begin
            f_reaches[at] = route_to == 4'(at);
            f_to[at] = decision.to == 4'(at);
        end
        f_reaches[PORTS] = route_to == axon::CPU;
        f_to[PORTS] = decision.to == axon::CPU;
        assume (route_reaches == f_reaches);
        a_begins: assert (begins == (decision.is_drop ? '0 : f_to));
        a_drop: assert (decision.is_drop == (is_mac_control || (!is_host && !is_link_local)
            || (is_routed && !route_reaches[PORTS] && accepts == '0)));
        a_at_once: assert (decision.operation != axon::STRIP);
    end
`endif
endmodule
