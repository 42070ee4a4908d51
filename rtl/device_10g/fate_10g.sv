// Fates of the frames of an ingress: one pulse for each that is dropped or for the control plane.
//
// Timing: in the cycle after the verdict, or after the last word of a frame that lacks a rest.

`default_nettype none

module fate_10g (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        is_verdict, // the inputs down to is_to_cpu, and reason, are valid
    input  wire logic        is_axon,    // kind of the ingress
    input  wire logic        is_drop,
    input  wire axon::drop_t decided,    // with is_drop
    input  wire logic        is_to_cpu,
    input  wire logic        has_output, // a cycle after is_verdict: the frame goes to a port
    input  wire axon::punt_t reason,     // with is_to_cpu
    input  wire logic        lacks_rest, // the frame to strip ended with its header
    output logic             drop_valid,
    output axon::drop_t      drop,
    output logic             punt_valid,
    output axon::punt_t      punt
);
    logic is_verdict_q, is_drop_q, is_to_cpu_q, lacks_rest_q, is_down;
    axon::drop_t decided_q;
    always_ff @(posedge clk) begin
        is_verdict_q <= is_verdict && !rst;
        {is_drop_q, is_to_cpu_q} <= {is_drop, is_to_cpu};
        decided_q <= decided;
        punt <= reason;
        lacks_rest_q <= lacks_rest && !rst;
    end
    always_comb begin
        is_down = !is_drop_q && !is_to_cpu_q && !has_output;
        drop_valid = (is_verdict_q && (!is_axon || is_drop_q || is_down)) || lacks_rest_q;
        drop = lacks_rest_q ? axon::DROP_MALFORMED : !is_axon ? axon::DROP_PORT_UNKNOWN
            : is_down ? axon::DROP_PORT_DOWN : decided_q;
        punt_valid = is_verdict_q && is_axon && is_to_cpu_q;
    end
endmodule
