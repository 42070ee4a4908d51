// Counts the frames of a symbol stream and their bytes.
//
// Timing: `done` in the cycle after the end, with the bytes of the frame but the first SKIPPED.

`default_nettype none

module stream_meter #(
    parameter logic [13:0] SKIPPED = 14'd0 // bytes in front of a frame
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        valid, // a symbol passes
    input  wire logic        is_end,
    output logic             done,  // not of a frame without a byte
    output logic [13:0]      bytes
);
    logic [13:0] count;
    always_ff @(posedge clk) begin
        if (valid) count <= is_end ? 14'd0 : count + 14'd1;
        done <= valid && is_end && count != 14'd0 && !rst;
        bytes <= count > SKIPPED ? count - SKIPPED : 14'd0;
        if (rst) count <= 14'd0;
    end
endmodule
