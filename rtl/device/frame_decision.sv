// Decides on a frame while it arrives.
//
// On an Axon port a frame whose first four bits are not 0 is an Axon packet: the first hop decides.
// All others begin with an Ethernet header; they are decided on three cycles after the source
// address, when the route of a host's frame is found. A frame that ends before is dropped. Where
// address resolution ends at the CPU, by the setting of the port or since the route rewrites the
// destination, a frame with a route waits until it is known to be none.
//
// Timing: byte k in `head` in cycle t0 + k; `decides`, with the decision, comes in t0 + 6 with hops
// of 8 bits (4 bits: t0 + 5, 16 bits: t0 + 7), and in t0 + 14 without an Axon header, up to t0 + 26
// if the frame waits, or with head_end before that.

`default_nettype none

module frame_decision #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8, // 4, 8 or 16
    parameter int unsigned ROUTES = 32,
    parameter logic MASQUERADES = 1'b1 // without, no address resolution is looked for
) (
    input  wire logic                  clk,
    input  wire logic                  rst,
    // From gmii_rx.
    input  wire logic                  head_valid,
    input  wire logic [7:0]            head_data,
    input  wire logic [3:0]            head_index,  // of the byte in head_data; stays at 15
    input  wire logic                  head_end,
    input  wire logic                  is_deciding, // the frame has not been decided on
    // Settings.
    input  wire axon::port_kind_t      kind,        // of the port when the frame began
    input  wire logic                  punts_resolution, // of the port
    input  wire logic [15:0]           route_bytes_max,
    input  wire logic [PORTS-1:0][1:0] kinds,       // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]      ups,         // carrier of each port
    // Routes, see there.
    input  wire logic [ROUTES-1:0]     valid,
    input  wire logic [ROUTES-1:0]     by_source,
    input  wire logic                  row_write,
    input  wire logic                  attributes_write,
    input  wire logic                  memory_write,
    input  wire logic [9:0]            write_address,
    input  wire logic [31:0]           write_data,
    input  wire logic [1:0]            memory_place,
    input  wire logic [4:0]            memory_offset,
    output logic [7:0]                 memory_data,
    output logic                       decides,
    output axon::decision_t            decision,    // with decides
    output logic [PORTS:0]             begins       // with decides: see decisions
);
    // An Axon packet.
    axon::header_fields_t header;
    logic                 is_axon, is_packet, is_valid, hop_valid;
    logic [HOP_BITS-1:0]  hop;
    header_fields #(.HOP_BITS(HOP_BITS)) fields (
        .clk, .head_valid, .head_data, .head_index, .header, .is_axon, .is_valid, .hop_valid, .hop
    );
    axon::decision_t packet_decided;
    logic [PORTS:0]  packet_begins, ethernet_begins;
    forward #(.PORTS(PORTS), .HOP_BITS(HOP_BITS)) forward_packet (
        .header, .is_valid, .hop, .kinds, .ups, .route_bytes_max,
        .decision(packet_decided), .begins(packet_begins)
    );
    always_ff @(posedge clk) is_packet <= kind == axon::PORT_AXON && is_axon;

    // A frame with an Ethernet header.
    logic is_multicast, is_link_local, is_mac_control, verdict_valid;
    ethernet ethernet_header (
        .clk, .rst, .head_valid, .head_data, .head_index,
        .is_multicast, .is_link_local, .is_mac_control, .verdict_valid
    );
    logic          route_done, route_hit, has_header, rewrites_destination;
    logic [4:0]    route_header_bytes;
    logic [1:0]    route_place;
    logic [2:0]    route_priority;
    axon::output_t  route_to;
    logic [PORTS:0] route_reaches;
    /* verilator lint_off PINCONNECTEMPTY */ // the entry matters to its header only
    routes #(.PORTS(PORTS), .ROUTES(ROUTES)) route_table (
        .clk, .rst, .head_valid, .head_data, .head_index, .done(route_done), .hit(route_hit),
        .entry(), .place(route_place), .keeps(decides), .to(route_to),
        .reaches(route_reaches), .frame_priority(route_priority),
        .header_bytes(route_header_bytes), .has_header, .rewrites_destination,
        .memory_place, .memory_offset, .memory_data,
        .valid, .by_source, .row_write, .attributes_write, .memory_write,
        .write_address, .write_data
    );
    /* verilator lint_on PINCONNECTEMPTY */
    logic is_resolution, is_known, has_to_ask, was_done;
    if (MASQUERADES) begin : resolves
        resolution address_resolution (
            .clk, .rst, .head_valid, .head_data, .head_index, .is_resolution, .is_known
        );
    end else begin : no_resolution
        assign {is_resolution, is_known} = 2'b01;
    end
    assign has_to_ask = route_hit && (punts_resolution || rewrites_destination);
    always_ff @(posedge clk) was_done <= (was_done || route_done) && head_index != 4'd0 && !rst;

    axon::decision_t ethernet_decided;
    ethernet_decision #(.PORTS(PORTS)) decide_frame (
        .kind, .is_multicast, .is_link_local, .is_mac_control,
        .route_hit(route_hit && !(has_to_ask && is_known && is_resolution)), .route_place,
        .route_to, .route_reaches, .route_priority, .route_header_bytes,
        .route_has_header(has_header), .route_rewrites_destination(rewrites_destination),
        .kinds, .ups, .decision(ethernet_decided), .begins(ethernet_begins)
    );

    logic is_frame_ready;
    always_comb begin
        is_frame_ready = !is_packet && verdict_valid && (kind != axon::PORT_HOST
            || ((route_done || was_done) && (is_known || !has_to_ask || head_end)));
        decides = is_deciding && ((is_packet && hop_valid) || is_frame_ready || head_end);
        decision = is_packet ? packet_decided : ethernet_decided;
        begins = head_end && !is_frame_ready ? '0 : is_packet ? packet_begins : ethernet_begins;
        if (head_end && !is_frame_ready) begin // too short to be decided on
            decision.is_drop = 1'b1;
            decision.drop = kind == axon::PORT_UNKNOWN && !is_link_local
                ? axon::DROP_PORT_UNKNOWN : axon::DROP_MALFORMED;
            decision.header.header_bytes = 16'd0;
            decision.is_limited = 1'b0;
        end
    end
endmodule
