// Time of the device, for the probe units: units of 10 ps, as `Time` in crates/wire/src/units.rs,
// from a begin that the driver chooses.
//
// Timing: `time_now` grows by 8 ns a cycle. A write of the low half in cycle t sets both halves,
// and `time_now` has the written value in t + 1; the high half waits for it. Without IS_PRESENT it
// is 0.

`default_nettype none

module device_time #(
    parameter logic IS_PRESENT = 1'b1
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        write_high,
    input  wire logic        write_low,
    input  wire logic [31:0] write_data,
    output logic [63:0]      time_now
);
    localparam logic [63:0] CYCLE = 64'd800;

    if (IS_PRESENT) begin : present
        logic        time_clk;
        logic [31:0] high;
        clock_gate gate (.clk, .is_active(1'b1), .gated(time_clk));
        always_ff @(posedge time_clk) begin
            if (write_high) high <= write_data;
            time_now <= write_low ? {high, write_data} : time_now + CYCLE;
            if (rst) time_now <= '0;
        end
    end else begin : absent
        logic unused;
        assign unused = &{clk, rst, write_high, write_low, write_data};
        assign time_now = '0;
    end
endmodule
