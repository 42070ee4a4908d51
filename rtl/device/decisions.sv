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
    input  wire logic [PORTS:0]  decided_begins, // outputs at which it begins to leave at once
    output logic                 is_full,
    output logic                 first_valid,
    output axon::decision_t      first,
    output logic [PORTS:0]       begins,      // bit PORTS: the CPU
    input  wire logic            done         // `first` is done with
);
    // What comes next is the second if there is one, else what is decided. Contents of places that
    // are not valid do not matter: so the decision, which is late, meets one multiplexer only.
    axon::decision_t second;
    logic [PORTS:0]  second_begins;
    logic            moves; // `first` is free
    assign moves = done || !first_valid;
    always_ff @(posedge clk) begin
        if (moves) first <= is_full ? second : decision;
        if (!is_full) {second, second_begins} <= {decision, decided_begins};
        if (is_full) begins <= done ? second_begins : '0;
        else begins <= write && moves ? decided_begins : '0;
        if (moves) first_valid <= is_full || write;
        is_full <= is_full ? !done : write && !moves;
        if (rst) begin
            first_valid <= 1'b0;
            begins <= '0;
            is_full <= 1'b0;
        end
    end
endmodule
