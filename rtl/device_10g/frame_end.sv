// The end of a frame at its ingress, and the FCS, which is the 4 bytes before it.
//
// A frame is bad if its end is, if it has less than 64 bytes with its FCS (what is left, if it
// is stripped), or if it is shorter than its header and an FCS. A word is the last if it has
// fewer than 8 bytes, or the next has none.
//
// Timing: combinational.

`default_nettype none

module frame_end (
    input  wire logic [3:0]         bytes,       // of the word: 1 to 8
    input  wire logic               is_bad_end,  // if it is the last
    input  wire logic [3:0]         words,       // before it, 8 at most
    input  wire logic signed [16:0] header_left, // bytes from its first to the end of the header
    input  wire logic               strips,
    input  wire logic               next_valid,  // there is a next one, of the same frame
    input  wire logic [3:0]         next_bytes,  // 0 to 8
    input  wire logic               next_bad,
    output logic                    is_last,
    output logic                    is_bad,      // with is_last
    output logic                    begins_fcs,  // the FCS begins in this word
    output logic [2:0]              fcs_lane,    // with begins_fcs
    output logic                    begins_rest  // STRIP: the rest begins in the word before
);
    logic is_end, is_short;
    logic signed [16:0] bytes_signed;
    always_comb begin
        is_end = !bytes[3];
        is_last = is_end || (next_valid && next_bytes == 4'd0);
        begins_fcs = is_end ? bytes[2] : next_valid && next_bytes[3:2] == 2'd0;
        fcs_lane = is_end ? {1'b0, bytes[1:0]} : {1'b1, next_bytes[1:0]};
        bytes_signed = $signed({13'd0, bytes});
        is_short = words < 4'd7 || (words == 4'd7 && is_end);
        is_bad = (is_end ? is_bad_end : next_bad) || is_short
            || header_left + (strips ? 17'sd64 : 17'sd4) > bytes_signed;
        begins_rest = header_left < 17'sd0 && header_left >= -17'sd8;
    end
endmodule
