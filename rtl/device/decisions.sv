// Queue of decisions: the frame that leaves and the one after it. So a frame is decided on while
// the one before is still leaving.
//
// Timing: a decision written in cycle t is in `first` in t + 1, if none is before it.

`default_nettype none

module decisions (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            write,       // never while is_full
    input  wire axon::decision_t decision,
    output logic                 is_full,
    output logic                 first_valid,
    output axon::decision_t      first,
    input  wire logic            done         // `first` is done with
);
    axon::decision_t second;
    always_ff @(posedge clk) begin
        if (done) begin
            first_valid <= is_full;
            first <= second;
            is_full <= 1'b0;
        end
        if (write) begin
            if (!first_valid || (done && !is_full)) begin
                first_valid <= 1'b1;
                first <= decision;
            end else begin
                is_full <= 1'b1;
                second <= decision;
            end
        end
        if (rst) begin
            first_valid <= 1'b0;
            is_full <= 1'b0;
        end
    end
endmodule
