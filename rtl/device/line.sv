// Delay line between the MAC and the rewriter: the symbols of a frame wait here until the ingress
// has decided on the frame, and while something is put in front of it.
//
// A ring of 64 symbols in LUT RAM, followed by a window of registers: the next symbol to leave and
// the one or two after it, which the rewriter needs to move hops. The window refills itself, one
// symbol a cycle.
//
// When the ring is full, the rest of the frame is cut off and its end says DROP_QUEUE_FULL. Three
// places are kept for ends: those of the at most two frames whose end can be in the ring. That the
// ring is full is known a cycle late, so it counts as full one symbol early.
//
// An end holds, beside the bit that says that the frame is bad, the reason in bits 5 to 1.
//
// Timing: a symbol written in cycle t is in the last place of the window in t + 2, and in place 0
// in t + 2 + DEPTH - 1 at the earliest.

`default_nettype none

module line #(
    parameter int unsigned HOP_BITS = 8 // 4, 8 or 16
) (
    input  wire logic          clk,
    input  wire logic          rst,
    input  wire logic          write,
    input  wire axon::symbol_t write_symbol,
    output logic [2:0]         window_valid, // bit 0: symbol_0
    output axon::symbol_t      symbol_0,     // the next to leave
    output axon::symbol_t      symbol_1,
    output logic [7:0]         data_2,       // only with hops of 16 bits
    input  wire logic          advance       // symbol_0 leaves
);
    logic [8:0] ring [0:63];
    logic [6:0] write_at, read_at, used;
    logic       is_cut, is_full, stores, pops, is_filled;

    // The write side.
    axon::symbol_t stored;
    always_comb begin
        used = write_at - read_at;
        stores = write && (write_symbol.is_end || (!is_cut && !is_full));
        stored = write_symbol;
        if (write_symbol.is_end && is_cut) stored.data = {2'b00, axon::DROP_QUEUE_FULL, 1'b1};
    end
    always_ff @(posedge clk) begin
        if (stores) begin
            ring[write_at[5:0]] <= stored;
            write_at <= write_at + 7'd1;
        end
        is_full <= used[6] || (used | 7'd3) == 7'd63; // 60: one may be added meanwhile
        if (write) is_cut <= !write_symbol.is_end && (is_cut || !stores);
        if (rst) begin
            write_at <= 7'd0;
            is_cut <= 1'b0;
        end
    end

    // The window: each place takes the symbol of the place behind it as soon as it is free.
    logic          free_0, free_1, free_2;
    axon::symbol_t symbol_2;
    assign is_filled = write_at != read_at;
    assign data_2 = symbol_2.data;
    always_comb begin
        free_0 = advance || !window_valid[0];
        free_1 = free_0 || !window_valid[1];
        free_2 = free_1 || !window_valid[2];
        pops = is_filled && (HOP_BITS == 16 ? free_2 : free_1);
    end
    always_ff @(posedge clk) begin
        if (pops) read_at <= read_at + 7'd1;
        if (free_0) begin
            window_valid[0] <= window_valid[1];
            symbol_0 <= symbol_1;
        end
        if (free_1) begin
            window_valid[1] <= HOP_BITS == 16 ? window_valid[2] : is_filled;
            symbol_1 <= HOP_BITS == 16 ? symbol_2 : ring[read_at[5:0]];
        end
        if (HOP_BITS == 16) begin
            if (free_2) begin
                window_valid[2] <= is_filled;
                symbol_2 <= ring[read_at[5:0]];
            end
        end else begin
            window_valid[2] <= 1'b0;
            symbol_2 <= '0;
        end
        if (rst) begin
            read_at <= 7'd0;
            window_valid <= 3'd0;
        end
    end
endmodule
