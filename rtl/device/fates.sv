// Fate of each frame that an ingress ends, for the counters: a drop, a punt, or none if it has
// passed.
//
// The ingress knows the fate that the frame has by itself; the buffer at its output has the last
// word. A bad frame is a drop only if it had not begun to leave: otherwise it is sent, poisoned
// (thesis 000 section 3.3.1). A frame for which there was no room is a drop, punt or not.
//
// Timing: the buffers answer in the cycle after the end is written, which is when `drop_valid` and
// `punt_valid` come.

`default_nettype none

module fates (
    input  wire logic        clk,
    input  wire logic        rst,
    // From the ingress.
    input  wire logic        ingress_drop_valid,
    input  wire axon::drop_t ingress_drop,
    input  wire logic        ingress_punt_valid,
    input  wire axon::punt_t ingress_punt,
    input  wire logic        ends_at_output,     // it writes an end to a buffer
    // From the buffers of this ingress, one cycle later.
    input  wire logic        is_full_drop,
    input  wire logic        is_bad_drop,
    // To the counters.
    output logic             drop_valid,
    output axon::drop_t      drop,
    output logic             punt_valid,
    output axon::punt_t      punt
);
    logic        had_drop, had_punt, had_output;
    axon::drop_t reason;
    always_ff @(posedge clk) begin
        had_drop <= ingress_drop_valid && !rst;
        had_punt <= ingress_punt_valid && !rst;
        had_output <= ends_at_output;
        reason <= ingress_drop;
        punt <= ingress_punt;
    end
    always_comb begin
        drop_valid = is_full_drop || (had_drop && (!had_output || is_bad_drop));
        drop = is_full_drop ? axon::DROP_QUEUE_FULL : reason;
        punt_valid = had_punt && !is_full_drop;
    end
endmodule
