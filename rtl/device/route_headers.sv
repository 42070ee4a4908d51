// Headers of route entries on their way to the rewriter. The block RAMs that hold them are those of
// the lookup, which is at rest after the address of a frame. So the 32 bytes of the winner are
// fetched at once, in 4 cycles, to one of 4 places in LUT RAM: at most two frames wait there for
// the rewriter, and a third may be looked up.
//
// Timing: `starts` in cycle t, `done` with `entry` and `has_header` in t + 1, when the first of 4
// addresses is put out; `words` comes a cycle after its address. Bytes may be asked for from t + 2
// on, one in each cycle: from byte 0, or without a header from byte 24. `memory_data` is one cycle
// after its address.

`default_nettype none

module route_headers (
    input  wire logic        clk,
    input  wire logic        rst,
    // From the lookup.
    input  wire logic        starts,
    input  wire logic        done,
    input  wire logic [4:0]  entry,
    input  wire logic        has_header,
    input  wire logic        keeps,         // `place` has been taken, the next frame gets another
    output logic [1:0]       place,         // of the entry that is found
    // Block RAM.
    output logic             fetches,
    output logic [6:0]       fetch_address, // {entry, word}
    input  wire logic [63:0] words,         // byte 0 in the low bits
    // To the rewriter.
    input  wire logic [1:0]  memory_place,
    input  wire logic [4:0]  memory_offset,
    output logic [7:0]       memory_data
);
    logic [63:0] headers [0:15];
    logic [1:0]  step, word, fetch_place, stored_word;
    logic        stores;
    logic [6:0]  asked;
    assign word = step ^ {2{!has_header}}; // the last first, if there is no header
    assign fetch_address = {entry, word};
    assign memory_data = headers[asked[6:3]][8*asked[2:0] +: 8];
    always_ff @(posedge clk) begin
        fetches <= (starts || (fetches && step != 2'd3)) && !rst;
        step <= fetches ? step + 2'd1 : 2'd0;
        stores <= fetches;
        stored_word <= word;
        if (done) fetch_place <= place;
        if (stores) headers[{fetch_place, stored_word}] <= words;
        asked <= {memory_place, memory_offset};
        if (keeps) place <= place + 2'd1;
        if (rst) place <= 2'd0;
    end
endmodule
