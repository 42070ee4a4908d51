// The winner among the entries that match: the lowest of those for one source, or else the lowest
// of all.
//
// Two steps, for it is the longest way of a host's frame: first the lowest of each half of the
// table, of both kinds, by groups of four; then the choice among these. What the choice selects may
// be looked up for both halves meanwhile, at `half_entries`.
//
// Timing: `load` with `accepted` in cycle t, all outputs from t + 1 until the next `load`.

`default_nettype none

module route_winner (
    input  wire logic        clk,
    input  wire logic        load,
    input  wire logic [31:0] accepted,
    input  wire logic [31:0] by_source,
    output logic             hit,
    output logic             is_high,      // the winner is in the upper half
    output logic [1:0][3:0]  half_entries, // it would be this one of the half
    output logic [4:0]       entry
);
    typedef struct packed {
        logic       found;
        logic [3:0] index;
    } lowest_t;

    function automatic lowest_t lowest(input logic [15:0] bits);
        logic [3:0] found;
        logic [7:0] index; // two bits of each group
        for (int unsigned at = 0; at < 4; at++) begin
            found[at] = bits[4*at +: 4] != 4'd0;
            index[2*at +: 2] = bits[4*at] ? 2'd0 : bits[4*at+1] ? 2'd1 : bits[4*at+2] ? 2'd2 : 2'd3;
        end
        if (found[0]) lowest = {1'b1, 2'd0, index[1:0]};
        else if (found[1]) lowest = {1'b1, 2'd1, index[3:2]};
        else if (found[2]) lowest = {1'b1, 2'd2, index[5:4]};
        else lowest = {found[3], 2'd3, index[7:6]};
    endfunction

    lowest_t low_of_source, high_of_source, low_of_all, high_of_all;
    always_ff @(posedge clk) if (load) begin
        low_of_source <= lowest(accepted[15:0] & by_source[15:0]);
        high_of_source <= lowest(accepted[31:16] & by_source[31:16]);
        low_of_all <= lowest(accepted[15:0]);
        high_of_all <= lowest(accepted[31:16]);
    end

    logic is_of_source;
    always_comb begin
        is_of_source = low_of_source.found || high_of_source.found;
        hit = low_of_all.found || high_of_all.found;
        is_high = is_of_source ? !low_of_source.found : !low_of_all.found;
        half_entries[0] = is_of_source ? low_of_source.index : low_of_all.index;
        half_entries[1] = is_of_source ? high_of_source.index : high_of_all.index;
        entry = {is_high, is_high ? half_entries[1] : half_entries[0]};
    end
endmodule
