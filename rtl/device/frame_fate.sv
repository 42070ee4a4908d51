// Fate of a frame that leaves the rewriter, told with its end: dropped, punted or, without a pulse,
// passed.
//
// The frame ends bad if it came bad, is shorter than its headers, or longer than the limit; the
// first of these reasons counts. A frame that the decision drops has the reason of the decision
// if none of these holds.
//
// Timing: `is_bad` is combinational and valid with the end in `symbol_0`; the fate comes one cycle
// after the end leaves.

`default_nettype none

module frame_fate (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            is_idle,         // the next byte is the first of a frame
    input  wire logic            skips,           // a header is skipped in front of it
    input  wire logic            has_header,      // header_bytes are of the frame
    input  wire logic [15:0]     header_bytes,
    input  wire logic            advance,         // symbol_0 leaves
    input  wire axon::symbol_t   symbol_0,        // an end holds its reason in bits 5 to 1
    output logic                 is_last_skipped, // the last byte of the header leaves
    input  wire logic [13:0]     frame_bytes_max,
    // Of the decision.
    input  wire logic            is_limited,
    input  wire logic            is_dropped,
    input  wire axon::drop_t     decided_drop,
    input  wire logic            to_cpu,
    input  wire axon::punt_t     decided_punt,
    // Fate.
    output logic                 is_bad,
    output logic                 drop_valid,
    output axon::drop_t          drop,
    output logic                 punt_valid,
    output axon::punt_t          punt
);
    localparam logic [15:0] ETHERNET_BYTES = 16'd14;

    // Bytes of headers that must still come. With flags the counter is not in any long path; it
    // goes on below 0 without effect.
    logic [15:0] remaining, due;
    logic        is_short; // remaining is not 0
    logic        is_last;  // remaining is 1
    assign due = is_idle && has_header ? header_bytes : ETHERNET_BYTES;
    logic        restarts; // in the cycle in which the counter moves
    assign restarts = is_idle || (skips && !symbol_0.is_end && is_last);
    assign is_last_skipped = skips && advance && !symbol_0.is_end && is_last;
    always_ff @(posedge clk) if (is_idle || advance) begin
        if (restarts) begin
            remaining <= due;
            is_short <= due != 16'd0;
            is_last <= 1'b0; // a header of 1 byte is malformed
        end else begin
            remaining <= remaining - 16'd1;
            is_last <= remaining == 16'd2;
            if (is_last) is_short <= 1'b0;
        end
    end

    logic is_long, has_ended;
    frame_limits limits (
        .clk, .start(is_idle || skips), .data_valid(advance), .data(symbol_0.data),
        .frame_bytes_max, .is_long
    );
    always_comb begin
        has_ended = advance && symbol_0.is_end;
        is_bad = symbol_0.data[0] || is_short || (is_limited && is_long);
    end
    always_ff @(posedge clk) begin
        drop_valid <= has_ended && (is_bad || is_dropped) && !rst;
        drop <= symbol_0.data[0] ? axon::drop_t'(symbol_0.data[5:1])
            : is_short ? axon::DROP_MALFORMED
            : is_limited && is_long ? axon::DROP_OVERSIZED : decided_drop;
        punt_valid <= has_ended && !is_bad && !is_dropped && to_cpu && !rst;
        punt <= decided_punt;
    end
endmodule
