// Place at which the simulated device stops clocks: in gates a wire.
//
// `is_active` is 1 in each cycle whose edge changes what a later cycle shows, except for the last
// 64 cycles of such a time. With AXON_MODEL, model/device.cpp runs the clocks. It stops one that
// has been inactive for 64 cycles or more, and runs all of them when a setting, a link or the bus
// changes.

`default_nettype none

module clock_gate #(
    parameter int unsigned CLOCKS = 1 // at most 8
) (
    /* verilator lint_off UNUSEDSIGNAL */ // each is for one of the two
    input  wire logic              clk,
    input  wire logic [CLOCKS-1:0] is_active,
    /* verilator lint_on UNUSEDSIGNAL */
    output logic      [CLOCKS-1:0] gated
);
`ifdef AXON_MODEL
    logic [7:0] active /* verilator public_flat_rd */;
    logic [7:0] driven /* verilator public_flat_rw */;
    assign active = 8'(is_active);
    assign gated = driven[CLOCKS-1:0];
`else
    assign gated = {CLOCKS{clk}};
`endif
endmodule
