// The way of a frame from the MAC to the rewriter: its end gets the reason for which it is bad, the
// probe unit of the ingress appends its record, the delay line keeps the frame until it is decided
// on.
//
// Probes from hosts, which are Ethernet frames, get a record if they have no route.
//
// Timing: see line.

`default_nettype none

module probed_line #(
    parameter int unsigned HOP_BITS = 8, // 4, 8 or 16
    parameter logic PROBES = 1'b1 // there is a probe unit
) (
    input  wire logic             clk,
    input  wire logic             rst,
    input  wire axon::output_t    port,
    input  wire logic [63:0]      time_now,
    input  wire logic [13:0]      bytes_max,       // longest frame, with the record of a probe
    input  wire logic [13:0]      frame_bytes_max, // the same of hosts
    input  wire axon::port_kind_t kind,            // of the port when the frame began
    input  wire logic             begins,          // byte 0 is in `head` of gmii_rx
    input  wire logic             decides,
    input  wire logic             misses,          // with decides: to the CPU, without a route
    input  wire logic             body_valid,
    input  wire axon::symbol_t    body,
    input  wire logic             is_bad_fcs,      // with the end of body
    input  wire logic             is_runt,
    input  wire logic             is_giant,
    output logic [2:0]            window_valid,
    output axon::symbol_t         symbol_0,
    output axon::symbol_t         symbol_1,
    output logic [7:0]            data_2,
    input  wire logic             advance
);
    axon::symbol_t symbol, stamped;
    axon::drop_t   bad_reason;
    logic          stamped_valid;
    always_comb begin
        bad_reason = is_giant ? axon::DROP_OVERSIZED
            : is_runt && !is_bad_fcs ? axon::DROP_MALFORMED : axon::DROP_BAD_FCS;
        symbol = body;
        if (body.is_end) symbol.data = {2'b00, bad_reason, body.data[0]};
    end

    if (PROBES) begin : probes
        logic is_miss;
        always_ff @(posedge clk) if (decides) is_miss <= misses;
        probe_unit unit (
            .clk, .rst, .port, .time_now, .stamps(begins),
            .bytes_max(kind == axon::PORT_HOST ? frame_bytes_max : bytes_max), .queued(16'd0),
            .is_axon(kind == axon::PORT_AXON), .is_served(is_miss), .cuts(begins),
            .valid(body_valid), .symbol, .out_valid(stamped_valid), .out_symbol(stamped)
        );
    end else begin : no_probes
        assign {stamped_valid, stamped} = {body_valid, symbol};
        logic unused;
        assign unused = &{port, time_now, bytes_max, frame_bytes_max, kind, begins, decides,
            misses};
    end

    line #(.HOP_BITS(HOP_BITS)) delay_line (
        .clk, .rst, .write(stamped_valid), .write_symbol(stamped), .window_valid, .symbol_0,
        .symbol_1, .data_2, .advance
    );
endmodule
