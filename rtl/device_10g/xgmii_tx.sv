// Sends frames on XGMII of 64 bits (IEEE 802.3 clause 46): the start in lane 0 or 4, the frame
// with its FCS as it is, TERMINATE, idle. A bad frame ends with a word of ERROR characters
// before the TERMINATE, whatever its FCS.
//
// The gap is 12 bytes on average, counted from TERMINATE, by deficit idle count (clause
// 46.3.1.4): a start must be in lane 0 or 4; it may come up to 3 bytes too early as long as the
// early bytes of all gaps, less the late ones, do not exceed 3. So a gap has 9 to 15 bytes.
//
// Words are made as for a start in lane 0; for one in lane 4 the last step moves them up by 4
// lanes.
//
// Timing: the word of preamble is in the output register in the cycle after `start`, the first
// word of the frame, which is in `word` in that cycle, in the next.

`default_nettype none

module xgmii_tx (
    input  wire logic            clk,
    input  wire logic            rst,
    output logic                 ready, // a frame may start
    input  wire logic            start, // only with ready
    output logic                 read,  // registered: `word` is taken
    input  wire axon_10g::word_t word,  // in each cycle from the one after `start` to the last
    output logic [63:0]          txd,
    output logic [7:0]           txc
);
    localparam logic [63:0] IDLES = {8{axon_10g::IDLE}};

    typedef enum logic [1:0] {GAP, FRAME, TAIL} state_t; // TAIL: TERMINATE in a word of its own
    state_t      state;
    logic        is_ended; // TERMINATE was in the last word, in `ended_lane`
    logic [2:0]  ended_lane;
    logic [2:0]  gap;      // halves of words before a start is allowed, in GAP
    logic [1:0]  deficit;  // bytes by which starts were early
    logic        is_high;  // the frame starts in lane 4
    logic [31:0] held_data;
    logic [3:0]  held_control;

    // The gap in halves of words, from the word after TERMINATE on: 12 bytes and the half in which
    // TERMINATE is, less the early bytes. Bit by bit: a chain of carries would be slow.
    logic [2:0] gap_now;
    logic [1:0] deficit_next;
    logic       carry, is_late; // early bytes would be more than 3: the start is 4 bytes later
    always_comb begin
        carry = deficit[0] & ended_lane[0];
        deficit_next = {deficit[1] ^ ended_lane[1] ^ carry, deficit[0] ^ ended_lane[0]};
        is_late = (deficit[1] & ended_lane[1]) | (carry & (deficit[1] | ended_lane[1]));
        gap_now = gap;
        if (is_ended) case ({is_high, ended_lane[2], is_late})
            3'b000: gap_now = 3'd1;
            3'b001, 3'b010, 3'b100: gap_now = 3'd2;
            3'b111: gap_now = 3'd4;
            default: gap_now = 3'd3;
        endcase
        ready = state == GAP && gap_now[2:1] == 2'd0;
    end

    // The word to send, and what follows.
    logic        ends_full, terminates, is_high_now;
    logic [2:0]  lane; // of TERMINATE
    logic [63:0] data;
    logic [7:0]  control;
    always_comb begin
        ends_full = word.is_bad || word.count == 3'd0;
        terminates = state == TAIL || (state == FRAME && word.is_last && !ends_full);
        lane = state == TAIL ? 3'd0 : word.count;
        is_high_now = start ? gap_now[0] : is_high;
        data = start ? axon_10g::PREAMBLE : IDLES;
        control = start ? 8'h01 : 8'hff;
        if (state == FRAME) begin
            data = word.data;
            control = 8'h00;
            if (word.is_last && word.is_bad) begin
                data = {8{axon_10g::ERROR}};
                control = 8'hff;
            end
        end
        if (terminates) for (int unsigned at = 0; at < 8; at++) if (3'(at) >= lane) begin
            data[8*at+:8] = 3'(at) == lane ? axon_10g::TERMINATE : axon_10g::IDLE;
            control[at] = 1'b1;
        end
    end

    assign read = state == FRAME;
    always_ff @(posedge clk) begin
        txd <= is_high_now ? {data[31:0], held_data} : data;
        txc <= is_high_now ? {control[3:0], held_control} : control;
        is_high <= is_high_now;
        held_data <= is_high_now ? data[63:32] : IDLES[31:0];
        held_control <= is_high_now ? control[7:4] : 4'hf;
        is_ended <= terminates;
        ended_lane <= lane;
        gap <= gap_now[2:1] == 2'd0 ? 3'd0 : gap_now - 3'd2;
        if (ready && !start) deficit <= 2'd0;
        else if (is_ended) deficit <= deficit_next;
        case (state)
            GAP: if (start) state <= FRAME;
            FRAME: if (word.is_last) state <= ends_full ? TAIL : GAP;
            default: state <= GAP;
        endcase
        if (rst) begin
            state <= GAP;
            {gap, deficit, is_ended, is_high} <= '0;
            held_data <= IDLES[31:0];
            held_control <= 4'hf;
            txd <= IDLES;
            txc <= 8'hff;
        end
    end
endmodule
