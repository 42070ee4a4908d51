// Ingress of a port (thesis sections 3.1 to 3.3): decides on each frame while it arrives and gives
// it to an output, header rewritten.
//
// The first bytes of a frame are watched as they come from the wire (`head`, FCS included) and
// decide: see frame_decision. The frame itself follows four cycles later without FCS (`body`) and
// waits in a delay line.
//
// A frame that begins while two are decided on and have not left is refused whole (only fragments
// behind a long pushed header do that). Exactly one of `refused`, drop, punt or a good end at an
// output comes of each frame of at least one byte.
//
// Timing: byte k in `head` in cycle t0 + k. The decision is registered in t0 + 7 with hops of 8
// bits (4 bits: t0 + 6, 16 bits: t0 + 8), and in t0 + 15 without an Axon header. `announce` comes
// in that cycle if the frame before has left, its first byte at `symbol` two cycles later.

`default_nettype none

module ingress #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8, // 4, 8 or 16
    parameter int unsigned ROUTES = 32,
    parameter logic PROBES = 1'b1,     // there is a probe unit
    parameter logic MASQUERADES = 1'b1 // see frame_decision
) (
    input  wire logic                  clk,
    input  wire logic                  rst,
    input  wire axon::output_t         port,            // number of this port: a constant
    // From gmii_rx.
    input  wire logic                  head_valid,
    input  wire logic [7:0]            head_data,
    input  wire logic                  head_first,
    input  wire logic                  head_end,
    input  wire logic                  body_valid,
    input  wire axon::symbol_t         body,
    input  wire logic                  is_bad_fcs,      // with the end of body
    input  wire logic                  is_runt,
    input  wire logic                  is_giant,
    // Settings.
    input  wire axon::port_kind_t      kind,            // of this port
    input  wire logic                  stores_frames,   // announced frames leave only when whole
    input  wire logic                  punts_resolution, // ARP and ND go to the CPU
    input  wire logic [63:0]           time_now,
    input  wire logic [13:0]           bytes_max,       // longest frame, with the record of a probe
    input  wire logic [13:0]           frame_bytes_max, // of an Ethernet frame of hosts
    input  wire logic [15:0]           route_bytes_max,
    input  wire logic [PORTS-1:0][1:0] kinds,           // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]      ups,             // carrier of each port
    // To routes, from the registers.
    input  wire logic [ROUTES-1:0]     valid,
    input  wire logic [ROUTES-1:0]     by_source,
    input  wire logic                  row_write,
    input  wire logic                  attributes_write,
    input  wire logic                  memory_write,
    input  wire logic [9:0]            write_address,
    input  wire logic [31:0]           write_data,
    // To the buffers.
    output logic [PORTS-1:0]           announce,
    output logic                       cpu_announce,
    output logic [2:0]                 frame_priority,  // with announce
    output logic                       is_stored,       // with announce
    output logic [PORTS-1:0]           write,
    output logic                       cpu_write,
    output logic                       mac_control_valid,
    output axon::symbol_t              symbol,          // with write, cpu_write, mac_control_valid
    // Fates, one cycle each.
    output logic                       refused,
    output logic                       drop_valid,
    output axon::drop_t                drop,
    output logic                       punt_valid,
    output axon::punt_t                punt
);
    // Where the frame is: `is_deciding` from its first byte to its decision, `is_open` to the end
    // of its body.
    logic [3:0]       head_index;
    logic             is_deciding, is_open, is_full, decides;
    axon::port_kind_t frame_kind; // of the port when the frame began
    always_ff @(posedge clk) begin
        if (head_valid && head_index != 4'd15) head_index <= head_index + 4'd1;
        if (head_end) head_index <= 4'd0;
        if (decides) is_deciding <= 1'b0;
        if (body_valid && body.is_end) is_open <= 1'b0;
        if (head_first && head_valid) begin
            frame_kind <= kind;
            is_deciding <= !is_full;
            is_open <= !is_full;
        end
        if (rst) begin
            head_index <= 4'd0;
            {is_deciding, is_open} <= 2'b00;
        end
    end

    // A decision needs its clock until its header has been pushed, 40 cycles after it is `first`.
    logic decision_clk;
    clock_gate gate_of_decision (
        .clk, .is_active(is_deciding || is_full || (head_valid && head_index != 4'd15)),
        .gated(decision_clk)
    );
    logic [1:0]      memory_place;
    logic [4:0]      memory_offset;
    logic [7:0]      memory_data;
    axon::decision_t decision, first;
    logic [PORTS:0]  decided_begins;
    frame_decision #(
        .PORTS(PORTS), .HOP_BITS(HOP_BITS), .ROUTES(ROUTES), .MASQUERADES(MASQUERADES)
    ) decide (
        .clk(decision_clk), .rst, .head_valid, .head_data, .head_index, .head_end, .is_deciding,
        .kind(frame_kind), .punts_resolution, .route_bytes_max, .kinds, .ups, .valid, .by_source,
        .row_write, .attributes_write, .memory_write, .write_address, .write_data,
        .memory_place, .memory_offset, .memory_data, .decides, .decision,
        .begins(decided_begins)
    );
    logic           first_valid, decision_done;
    logic [PORTS:0] begins;
    decisions #(.PORTS(PORTS)) queue (
        .clk, .rst, .write(decides), .decision, .decided_begins, .is_full, .first_valid, .first,
        .begins, .done(decision_done)
    );

    // The frame itself.
    axon::symbol_t symbol_0, symbol_1;
    logic [7:0]    data_2;
    logic [2:0]    window_valid;
    logic          advance;
    probed_line #(.HOP_BITS(HOP_BITS), .PROBES(PROBES)) delay_line (
        .clk, .rst, .port, .time_now, .bytes_max, .frame_bytes_max, .kind(frame_kind),
        .begins(head_first && head_valid), .decides,
        .misses(!decision.is_drop && decision.operation == axon::PUSH
            && decision.to == axon::CPU && decision.punt == axon::PUNT_MISS),
        .body_valid(body_valid && is_open), .body, .is_bad_fcs, .is_runt, .is_giant,
        .window_valid, .symbol_0, .symbol_1, .data_2, .advance
    );

    rewrite #(.PORTS(PORTS), .HOP_BITS(HOP_BITS)) rewriter (
        .clk, .rst, .port, .frame_bytes_max, .decision_valid(first_valid), .decision(first),
        .begins, .decision_done, .window_valid, .symbol_0, .symbol_1, .data_2, .advance,
        .memory_place, .memory_offset, .memory_data, .announce, .cpu_announce, .frame_priority,
        .write, .cpu_write, .mac_control_valid, .symbol, .drop_valid, .drop, .punt_valid, .punt
    );
    assign is_stored = stores_frames || cpu_announce;

    always_ff @(posedge clk) refused <= head_first && head_valid && is_full && !rst;
endmodule
