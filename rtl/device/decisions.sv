// Queue of decisions: the frame that leaves and the one after it. So a frame is decided on while
// the one before is still leaving.
//
// `begins` announces a frame that begins to leave as soon as its decision is the first: all but
// those that are dropped or whose header is skipped before. It is a register for each output, for
// the way to the buffers is long.
//
// Timing: a decision written in cycle t is in `first` in t + 1, if none is before it. `begins`
// comes in the first cycle of a decision in `first`.

`default_nettype none

module decisions #(
    parameter int unsigned PORTS = 4
) (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            write,       // never while is_full
    input  wire axon::decision_t decision,
    output logic                 is_full,
    output logic                 first_valid,
    output axon::decision_t      first,
    output logic [PORTS:0]       begins,      // bit PORTS: the CPU
    input  wire logic            done         // `first` is done with
);
    function automatic logic [PORTS:0] outputs(
        input logic is_drop, input axon::operation_t operation, input axon::output_t to
    );
        outputs = '0;
        if (!is_drop && operation != axon::STRIP) begin
            for (int unsigned at = 0; at < PORTS; at++) outputs[at] = to == 4'(at);
            outputs[PORTS] = to == axon::CPU;
        end
    endfunction

    axon::decision_t second;
    always_ff @(posedge clk) begin
        begins <= done && is_full ? outputs(second.is_drop, second.operation, second.to) : '0;
        if (done) begin
            first_valid <= is_full;
            first <= second;
            is_full <= 1'b0;
        end
        if (write) begin
            if (!first_valid || (done && !is_full)) begin
                first_valid <= 1'b1;
                first <= decision;
                begins <= outputs(decision.is_drop, decision.operation, decision.to);
            end else begin
                is_full <= 1'b1;
                second <= decision;
            end
        end
        if (rst) begin
            first_valid <= 1'b0;
            begins <= '0;
            is_full <= 1'b0;
        end
    end
endmodule
