// FCS by difference: what the FCS of a changed frame differs by from that of the frame as it
// came (IEEE 802.3 clause 3.2.9). CRC is linear: of two frames of equal length, the xor of their
// CRCs is the CRC of their xor, from an initial state of 0. So the difference is fed through a
// CRC, and with it zeros to the last byte before the FCS; the result is xored into the FCS that
// came. A wrong FCS stays wrong, by construction.
//
// The word in which the FCS begins holds `fcs_lane` bytes of the frame, 0 to 7. The state is the
// one that a whole word leaves, taken back by the bytes that are not there: zeros can be taken
// back, as a step of the CRC has an inverse. The state that is kept is that of one byte before
// the end of the word, so that 7 - fcs_lane bytes remain to be taken back: 4, 2 and 1, or not.
//
// Each step is a matrix of bits; a row says which inputs an output is the xor of. The first two
// steps, feeding a word and taking back 4 bytes, are also one of their own, so that they are
// short.
//
// Timing: three cycles from a word to its correction. In cycle t the word comes, in t + 1 its
// own share is in a register, in t + 2 the correction. It stays until the next one.

`default_nettype none

module crc_difference (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        valid,
    input  wire logic        is_last,
    input  wire logic [63:0] difference,
    input  wire logic        has_fcs,   // the FCS begins in this word
    input  wire logic [2:0]  fcs_lane,
    output logic [31:0]      correction // byte 0 in bits 7:0
);
    typedef logic [32*64-1:0] matrix_t; // row by row
    localparam logic [31:0] POLYNOMIAL = 32'hedb8_8320; // reflected

    // Rows of feeding bits into a state of 0, or (a state is as good as the first 32 bits of a
    // word) of zeros; then of `bits_back` zeros that are taken back.
    function automatic matrix_t matrix(input integer bits_fed, input integer bits_back);
        logic [31:0] state;
        matrix_t rows;
        integer from, at, to;
        for (from = 0; from < 64; from = from + 1) begin
            state = from < 32 ? 32'd1 << from : 32'd0;
            for (at = 0; at < bits_fed; at = at + 1) begin
                if (at >= 32 && at == from) state = state ^ 32'd1;
                state = {1'b0, state[31:1]} ^ (state[0] ? POLYNOMIAL : 32'd0);
            end
            for (at = 0; at < bits_back; at = at + 1)
                state = {state[30:0], 1'b0}
                    ^ (state[31] ? {POLYNOMIAL[30:0], 1'b1} : 32'd0);
            for (to = 0; to < 32; to = to + 1) rows[64*to+from] = state[to];
        end
        matrix = rows;
    endfunction

    // Steps of zeros commute: the byte that is taken back in the state that is kept stays so.
    localparam matrix_t WORD = matrix(64, 8);
    localparam matrix_t ZEROS_8 = matrix(64, 0);
    localparam matrix_t ZEROS_4 = matrix(32, 0);
    localparam matrix_t BACK_4 = matrix(0, 32);
    localparam matrix_t BACK_2 = matrix(0, 16);
    localparam matrix_t BACK_1 = matrix(0, 8);

    // Share of the word.
    logic [31:0] share;
    logic        valid_q, is_last_q, has_fcs_q;
    logic [2:0]  fcs_lane_q;
    always_ff @(posedge clk) begin
        for (int unsigned to = 0; to < 32; to++) share[to] <= ^(WORD[64*to+:64] & difference);
        valid_q <= valid && !rst;
        is_last_q <= is_last;
        has_fcs_q <= has_fcs;
        fcs_lane_q <= fcs_lane;
    end

    // State, and what it was after `fcs_lane` bytes of the word.
    logic [31:0] state, state_next, back_4, back_2, back_1;
    always_comb begin
        for (int unsigned to = 0; to < 32; to++) begin
            state_next[to] = ^(ZEROS_8[64*to+:32] & state) ^ share[to];
            back_4[to] = fcs_lane_q[2] ? state_next[to]
                : ^{ZEROS_4[64*to+:32] & state, BACK_4[64*to+:32] & share};
        end
        for (int unsigned to = 0; to < 32; to++)
            back_2[to] = fcs_lane_q[1] ? back_4[to] : ^(BACK_2[64*to+:32] & back_4);
        for (int unsigned to = 0; to < 32; to++)
            back_1[to] = fcs_lane_q[0] ? back_2[to] : ^(BACK_1[64*to+:32] & back_2);
    end
    always_ff @(posedge clk) begin
        state <= valid_q && !is_last_q && !rst ? state_next : 32'd0;
        if (valid_q && has_fcs_q) correction <= back_1;
    end
endmodule
