// Egress of the CPU port: a buffer for each ingress, all frames stored, by turns in a stream of
// symbols. The ingress has written the descriptor in front of the frame.
//
// The next frame is of the first ingress that has one, counted from the one behind the last sender.
//
// Timing: a symbol every 5 cycles at most (200 Mbit/s): the next is read from block RAM when the
// one before has been accepted, in a cycle with punt_valid and punt_ready.

`default_nettype none

module cpu_egress #(
    parameter PORTS = 4,
    parameter BUFFER_BYTES = 2048
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    input  wire logic [PORTS-1:0]        announce,
    input  wire logic [PORTS-1:0]        write,
    input  wire logic [PORTS-1:0][8:0]   symbols,     // axon::symbol_t of each
    output logic [PORTS-1:0]             full_drop,
    output logic [PORTS-1:0]             bad_drop,
    output logic                         punt_valid,
    output axon::symbol_t                punt_symbol,
    input  wire logic                    punt_ready,
    output logic [PORTS-1:0][$clog2(BUFFER_BYTES):0] occupancies
);
    logic [PORTS-1:0] has_frame, take, leaving, read_valid;
    logic [PORTS-1:0][8:0] read_symbol;
    logic read;

    logic cpu_clk;
    logic [PORTS-1:0] buffer_clk, is_busy;
    assign is_busy = announce | write | has_frame | leaving;
    clock_gate #(.CLOCKS(PORTS + 1)) gate (
        .clk, .is_active({is_busy != '0 || punt_valid, is_busy}), .gated({cpu_clk, buffer_clk})
    );

    for (genvar at = 0; at < PORTS; at++) begin : g_ingress
        /* verilator lint_off PINCONNECTEMPTY */ // no priorities; the end is in the symbol
        buffer #(.BYTES(BUFFER_BYTES)) buffer_of_ingress (
            .clk(buffer_clk[at]), .rst, .announce(announce[at]), .frame_priority(3'd0),
            .is_stored(1'b1), .paused(8'd0),
            .write(write[at]), .write_symbol(symbols[at]), .full_drop(full_drop[at]),
            .bad_drop(bad_drop[at]), .has_frame(has_frame[at]), .is_blocked(),
            .take(take[at]), .read(read), .read_valid(read_valid[at]),
            .read_symbol(read_symbol[at]), .frame_out(),
            .occupancy(occupancies[at])
        );
        /* verilator lint_on PINCONNECTEMPTY */
    end

    // Turns. `is_after` are the inputs behind the last sender; they precede the others.
    logic [PORTS-1:0] is_after, candidates;
    logic is_idle;
    always_comb begin
        candidates = (has_frame & is_after) != '0 ? has_frame & is_after : has_frame;
        take = is_idle ? candidates & -candidates : '0;
    end

    // A read is in flight for 3 cycles; the first comes 4 cycles after the take.
    axon::symbol_t symbol;
    logic accepts, is_last;
    logic [2:0] count;
    always_comb begin
        symbol = '0;
        for (int unsigned at = 0; at < PORTS; at++) symbol |= read_symbol[at] & {9{leaving[at]}};
        read = !is_idle && count == 3'd1;
        accepts = punt_valid && punt_ready;
        is_last = accepts && punt_symbol.is_end;
    end
    always_ff @(posedge cpu_clk) begin
        if (is_idle) leaving <= take;
        if (take != '0) is_after <= ~(take | (take - 1'b1));
        is_idle <= is_idle ? take == '0 : is_last;
        count <= take != '0 ? 3'd4 : accepts ? 3'd1 : count - 3'(count != 3'd0);
        if (read_valid != '0) punt_symbol <= symbol;
        punt_valid <= read_valid != '0 || (punt_valid && !punt_ready);
        if (rst) begin
            {is_after, leaving} <= '0;
            is_idle <= 1'b1;
            punt_valid <= 1'b0;
        end
    end
endmodule
