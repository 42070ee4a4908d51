// Last steps of a frame at its ingress: removes the header of a frame that is stripped, and xors
// the correction into the FCS.
//
// The rest of a stripped frame begins at byte `shift` of a word, so each of its words is made of
// the upper bytes of one word and the lower bytes of the next. The last one comes with the last
// word of the frame, or in the cycle after. The FCS moves with it: it begins in lane `fcs_lane`
// of a word and may go on in the next.
//
// Timing: one cycle from a word to `word`.

`default_nettype none

module finish_10g (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            valid,
    input  wire axon_10g::word_t word_in,
    input  wire logic            strips,      // stays until the cycle after the last word
    input  wire logic            begins_rest, // STRIP: the word after that in which the rest begins
    input  wire logic [2:0]      shift,
    input  wire logic            begins_fcs,  // with valid: the FCS begins in this word
    input  wire logic [2:0]      fcs_lane,
    input  wire logic [31:0]     correction,  // one cycle after begins_fcs, stays
    output logic                 word_valid,
    output axon_10g::word_t      word
);
    // The words of the rest.
    axon_10g::word_t previous, rest, chosen, plain;
    logic is_rest, was_rest, ends_now;
    always_comb begin
        is_rest = strips && (begins_rest || was_rest);
        ends_now = word_in.is_last && word_in.count != 3'd0 && word_in.count <= shift;
        rest.is_last = previous.is_last || ends_now;
        rest.is_bad = previous.is_last ? previous.is_bad : word_in.is_bad;
        rest.count = previous.is_last ? previous.count - shift
            : ends_now ? word_in.count - shift : 3'd0;
        rest.data = 64'({word_in.data, previous.data} >> {shift, 3'd0});
        chosen = strips ? rest : word_in;
    end

    // Where the FCS is in them.
    logic       begins, is_late, begins_now, goes_on;
    logic [2:0] lane, lane_q, lane_now;
    logic [7:0] is_fcs, is_fcs_next;
    always_comb begin
        begins = valid && begins_fcs;
        begins_now = (begins && !(strips && fcs_lane >= shift)) || is_late;
        lane = fcs_lane - (strips ? shift : 3'd0);
        lane_now = begins ? lane : lane_q;
        for (int unsigned at = 0; at < 8; at++) is_fcs_next[at] =
            (begins_now && 4'(at) >= {1'b0, lane_now} && 4'(at) < {1'b0, lane_now} + 4'd4)
            || (goes_on && !plain.is_last && 4'(at) + 4'd4 < {1'b0, lane_q});
    end

    always_ff @(posedge clk) begin
        previous <= word_in;
        was_rest <= is_rest && !rest.is_last && !rst;
        word_valid <= (strips ? is_rest : valid) && !rst;
        plain <= chosen;
        lane_q <= lane_now;
        is_late <= begins && strips && fcs_lane >= shift && !rst;
        goes_on <= begins_now && !rst;
        is_fcs <= is_fcs_next;
    end

    // The bytes of the correction by lane modulo 4.
    logic [31:0] rotated;
    always_comb begin
        rotated = 32'(({correction, correction} << {lane_q[1:0], 3'd0}) >> 32);
        word = plain;
        for (int unsigned at = 0; at < 8; at++)
            word.data[8*at+:8] = plain.data[8*at+:8] ^ (is_fcs[at] ? rotated[8*(at%4)+:8] : 8'd0);
    end
endmodule
