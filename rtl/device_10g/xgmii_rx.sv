// Receives frames from XGMII of 64 bits (IEEE 802.3 clause 46): finds start and end, and aligns
// the frame so that its byte 0 is in lane 0 whether it starts in lane 0 or in lane 4.
//
// A start is the START character, six bytes of preamble and the start delimiter, in these
// places; any other START begins no frame (no_start). A frame ends with the first control
// character. Its end is good if that is TERMINATE and the frame is within the limit; a frame
// that does not end in time is cut at the word after `bytes_max` and FCS. A START within a frame
// ends it and may begin another.
//
// Timing: a word is in `head` in the cycle after its last byte was at the pins, which come from
// registers of the PCS. The end may come after the last word, with 0 bytes.

`default_nettype none

module xgmii_rx (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [63:0] rxd,
    input  wire logic [7:0]  rxc,
    input  wire logic [13:0] bytes_max,  // without FCS
    output logic             head_valid,
    output logic             head_first,
    output logic [63:0]      head_data,
    output logic [3:0]       head_bytes, // 0 to 8; fewer than 8: it ends here
    output logic             head_bad,   // if it ends here
    output logic             no_start    // one cycle: a start that begins no frame
);
    localparam logic [31:0] START_HALF = axon_10g::PREAMBLE[31:0];
    localparam logic [31:0] END_HALF = axon_10g::PREAMBLE[63:32];

    // Characters at the pins, and of the upper half of the word before.
    logic [7:0]  is_terminate, is_start;
    logic [31:0] high_data;
    logic [3:0]  high_control, high_terminate;
    logic        high_start;  // it begins with START
    logic        high_starts; // it is the first half of a start
    always_comb begin
        for (int unsigned lane = 0; lane < 8; lane++) begin
            is_terminate[lane] = rxc[lane] && rxd[8*lane+:8] == axon_10g::TERMINATE;
            is_start[lane] = rxc[lane] && rxd[8*lane+:8] == axon_10g::START;
        end
    end
    always_ff @(posedge clk) begin
        high_data <= rxd[63:32];
        high_control <= rxc[7:4];
        high_terminate <= is_terminate[7:4];
        high_start <= is_start[4] && !rst;
        high_starts <= rxc[7:4] == 4'b0001 && rxd[63:32] == START_HALF && !rst;
    end

    // Starts.
    logic starts_low, starts_high;
    always_comb begin
        starts_low = rxc == 8'b1 && rxd == axon_10g::PREAMBLE;
        starts_high = high_starts && rxc[3:0] == 4'b0 && rxd[31:0] == END_HALF;
    end
    // A START in another lane, or without the rest of its preamble.
    always_ff @(posedge clk) no_start <= !rst && ((is_start[0] && !starts_low)
        || (high_start && !starts_high)
        || is_start[3:1] != 3'd0 || is_start[7:5] != 3'd0);

    // The word of the frame that is complete now.
    logic        is_open, is_first, is_high, is_cut, ends;
    logic [10:0] count, count_max; // words
    logic [63:0] data;
    logic [7:0]  control, terminate;
    logic [3:0]  bytes;
    logic        is_terminated;
    always_comb begin
        data = is_high ? {rxd[31:0], high_data} : rxd;
        control = is_high ? {rxc[3:0], high_control} : rxc;
        terminate = is_high ? {is_terminate[3:0], high_terminate} : is_terminate;
        bytes = 4'd8;
        is_terminated = 1'b0;
        for (int lane = 7; lane >= 0; lane--) if (control[lane]) begin
            bytes = 4'(lane);
            is_terminated = terminate[lane];
        end
        is_cut = count == count_max && !control[0];
        ends = control != 8'd0 || is_cut;
    end

    always_ff @(posedge clk) begin
        count_max <= 11'((15'(bytes_max) + 15'd11) >> 3);
        is_open <= (is_open && !ends) || starts_low || starts_high;
        is_first <= starts_low || starts_high;
        if (starts_low || starts_high) is_high <= starts_high;
        count <= starts_low || starts_high ? 11'd0 : count + 11'd1;
        head_valid <= is_open;
        head_first <= is_first;
        head_data <= data;
        head_bytes <= is_cut ? 4'd0 : bytes;
        head_bad <= is_cut || !is_terminated;
        if (rst) begin
            is_open <= 1'b0;
            head_valid <= 1'b0;
        end
    end
endmodule
