// Receive half of a MAC on GMII, IEEE 802.3 clauses 35.2 and 4.2.9: finds the frame after preamble
// and SFD, removes and checks the FCS, checks the length.
//
// A carrier event (rx_dv high) is a frame if it is 0x55, any number of times from one on, then
// 0xD5, and if rx_dv was low for 4 cycles before it. Other events are ignored until rx_dv falls;
// `no_start` counts them. After a reset the rest of an event is ignored without a count.
//
// Every frame gives exactly one end on `body`. The end is bad if the FCS is wrong, if rx_er was
// high while rx_dv was (clause 35.2.1.5 wants such a frame to fail its FCS: `is_bad_fcs`), if the
// frame has fewer than 64 bytes with its FCS, or if it is longer than bytes_max. A frame that is
// too long is cut: its end comes in place of the first byte too many, and its FCS is not checked.
//
// Timing, first byte of the preamble at the pins in cycle 0: byte k is at the pins in cycle 8 + k
// and in `head` in cycle 9 + k. `body` follows by four cycles, for a byte leaves when the fourth
// byte after it comes: so the FCS is never given out. The end has the place of the first byte of
// the FCS, without a pause: the cycle of head_end. All outputs are registers.
//
// The register `crc` lags by the byte in `head`. It needs no step for that byte to be checked: a
// step is one-to-one in `crc ^ data`, so this sum is compared with the one that gives the residue.

`default_nettype none

module gmii_rx (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic [7:0]  rxd,
    input  wire logic        rx_dv,
    input  wire logic        rx_er,
    input  wire logic [13:0] bytes_max,  // longest frame that is let in, without FCS

    output logic             head_valid, // each byte after the SFD, FCS included
    output logic [7:0]       head_data,
    output logic             head_first, // with the first byte
    output logic             head_end,   // one cycle: rx_dv has fallen

    output logic             body_valid, // the frame without FCS, and its end
    output axon::symbol_t    body,
    output logic             frame_done, // with the end in `body`, as all below
    output logic [13:0]      frame_bytes, // bytes given to `body`
    output logic             is_bad_fcs,
    output logic             is_runt,
    output logic             is_giant,
    output logic             no_start    // one cycle: a carrier event that is not a frame
);
    localparam logic [31:0] BEFORE_RESIDUE = 32'h00be_26ed; // one step before 32'hdebb_20e3

    typedef enum logic [1:0] {IDLE, PREAMBLE, FRAME, IGNORE} state_t;
    state_t state;
    logic [1:0] gap; // cycles of IDLE, up to 3; rx_dv was low for one more

    logic is_start, is_byte, is_over;
    assign is_start = state == PREAMBLE && rx_dv && rxd == 8'hd5;
    assign is_byte = state == FRAME && rx_dv;
    assign is_over = state == FRAME && !rx_dv;

    always_ff @(posedge clk) begin
        no_start <= 1'b0;
        if (!rx_dv) begin
            no_start <= state == PREAMBLE;
            state <= IDLE;
            gap <= state != IDLE ? 2'd0 : gap == 2'd3 ? gap : gap + 2'd1;
        end else if (is_start) begin
            state <= FRAME;
        end else if (state == IDLE || state == PREAMBLE) begin
            // `gap` stays at 3 in PREAMBLE.
            no_start <= rxd != 8'h55 || gap != 2'd3;
            state <= rxd == 8'h55 && gap == 2'd3 ? PREAMBLE : IGNORE;
        end
        if (rst) begin
            no_start <= 1'b0;
            state <= IGNORE;
        end
    end

    // Bytes on their way from `head` to `body`. `filled` is empty again when a frame begins: the
    // gap and the preamble are longer than it.
    logic [2:0][7:0] delay;
    logic [3:0] filled; // bit 0: of head, bits 1 to 3: of delay
    assign head_valid = filled[0];
    always_ff @(posedge clk) begin
        head_data <= rxd;
        delay[0] <= head_data;
        delay[1] <= delay[0];
        delay[2] <= delay[1];
        filled <= rst ? 4'd0 : {filled[2:0], is_byte};
        head_end <= is_over && !rst;
    end
    logic is_first;
    always_ff @(posedge clk) begin
        is_first <= is_start;
        head_first <= is_first && is_byte;
    end

    // FCS. A frame without a byte has no right one.
    logic [31:0] crc, crc_next;
    logic has_error, is_fcs_right;
    crc32 step (.crc(crc), .data(head_data), .next(crc_next));
    assign is_fcs_right = head_valid && (crc ^ {24'd0, head_data}) == BEFORE_RESIDUE;
    always_ff @(posedge clk) begin
        if (is_start) crc <= '1;
        else if (head_valid) crc <= crc_next;
        has_error <= rx_dv && (has_error || rx_er);
    end

    logic is_cut; // the end of this frame has been given
    logic gives, cuts, ends, is_short, is_bad;
    assign gives = is_byte && filled[3] && !is_cut && frame_bytes < bytes_max;
    assign cuts = is_byte && filled[3] && !is_cut && frame_bytes >= bytes_max;
    assign ends = is_over && !is_cut;
    assign is_short = frame_bytes[13:6] == 8'd0 && frame_bytes[5:2] != 4'hf; // below 60
    assign is_bad = cuts || is_short || has_error || !is_fcs_right;
    always_ff @(posedge clk) begin
        body_valid <= (gives || cuts || ends) && !rst;
        body.is_end <= cuts || ends;
        body.data <= cuts || ends ? {7'd0, is_bad} : delay[2];
        frame_done <= (cuts || ends) && !rst;
        is_bad_fcs <= ends && (has_error || !is_fcs_right);
        is_runt <= ends && is_short;
        is_giant <= cuts;
        is_cut <= !is_start && (is_cut || cuts);
        if (is_start) frame_bytes <= 14'd0;
        else if (gives) frame_bytes <= frame_bytes + 14'd1;
    end

`ifdef FORMAL
    // The environment: a reset at first, and a limit that does not change.
    logic f_past = 1'b0;
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (!f_past) assume (rst);
        if (f_past) assume ($stable(bytes_max));
    end

    // f_open: the frame that began with the last SFD has had no end. f_heads: bytes of it before
    // the one in `head`. f_byte: its byte number f_index, for any f_index, as it was in `head`.
    (* anyconst *) logic [13:0] f_index;
    logic f_open;
    logic [14:0] f_heads;
    logic [13:0] f_bodies;
    logic [7:0] f_byte;
    logic [14:0] f_bytes; // bytes so far
    logic f_dv, f_error;  // rx_dv before; an rx_er in this carrier event
    logic [2:0] f_low;    // cycles without rx_dv before this event, up to 4
    logic [2:0] f_quiet;  // cycles without a byte in `head` before this one, up to 7
    assign f_bytes = f_heads == '1 ? f_heads : f_heads + 15'(head_valid);
    always_ff @(posedge clk) begin
        if (rst) f_open <= 1'b0;
        else if (is_start) f_open <= 1'b1;
        else if (frame_done) f_open <= 1'b0;
        if (is_start) f_heads <= 15'd0;
        else if (head_valid && f_heads != '1) f_heads <= f_heads + 15'd1;
        if (is_start) f_bodies <= 14'd0;
        else if (body_valid && !body.is_end) f_bodies <= f_bodies + 14'd1;
        if (head_valid && f_heads == {1'b0, f_index}) f_byte <= head_data;
        f_quiet <= head_valid ? 3'd0 : f_quiet == 3'd7 ? f_quiet : f_quiet + 3'd1;
        f_dv <= rx_dv;
        f_error <= rx_dv && (f_error || rx_er);
        if (rst) f_low <= 3'd0;
        else if (!rx_dv) f_low <= f_dv ? 3'd1 : f_low == 3'd4 ? f_low : f_low + 3'd1;
    end

    always_ff @(posedge clk) if (f_past && !rst && !$past(rst)) begin
        // Exactly one end for each SFD, before the next one; nothing of a frame outlives it.
        if (frame_done) a_end_of_a_frame: assert (f_open && body_valid && body.is_end);
        if (body_valid) a_body_in_a_frame: assert (f_open && body.is_end == frame_done);
        if (is_start) a_end_before_next: assert (!f_open && !body_valid && filled == 4'd0);
        if (is_start) a_start_after_gap: assert (f_low == 3'd4);
        if (head_first) a_rest_after_a_frame: assert (head_valid && f_quiet >= 3'd6);
        if (head_end) a_end_by_head_end: assert (!f_open || frame_done);
        if (head_valid) a_head_in_a_frame: assert (state == FRAME || $past(state) == FRAME);
        a_one_flag_set: assert (frame_done || !(is_runt || is_giant || is_bad_fcs));
        // `body` is the frame: byte after byte, at most bytes_max of them.
        if (body_valid && !body.is_end) begin
            a_place: assert (head_valid && f_heads == 15'(f_bodies) + 15'd4);
            a_limit: assert (f_bodies < bytes_max);
            if (f_bodies == f_index) a_same_byte: assert (body.data == f_byte);
        end
        // An end is good if and only if nothing is wrong. `crc` holds all bytes in this cycle.
        if (frame_done) begin
            a_bytes: assert (frame_bytes == f_bodies);
            a_bad_residue: assert (body.data[0] || crc == 32'hdebb_20e3);
            a_bad_error: assert (body.data[0] || !$past(f_error));
            a_bad_length: assert (body.data[0] || f_bodies >= 14'd60 && f_bodies <= bytes_max);
            a_good: assert (!body.data[0] || is_bad_fcs || is_runt || is_giant);
            a_bad_fcs: assert (!is_bad_fcs || $past(f_error) || crc != 32'hdebb_20e3
                || !$past(head_valid));
            a_giant: assert (is_giant == (head_valid && f_heads >= {1'b0, bytes_max} + 15'd4));
            a_bad_giant: assert (body.data[0] || !is_giant);
        end
        if (head_valid && f_heads == 15'd0) a_crc_begins: assert (crc == '1);
        // Relations that the induction needs.
        i_open: assert (f_open == (frame_done || (state == FRAME && !is_cut)));
        if (frame_done) i_done: assert (state == FRAME || (state == IDLE && gap == 2'd0));
        if (state == PREAMBLE || state == FRAME) i_gap: assert (gap == 2'd3);
        if (state == PREAMBLE) i_low: assert (f_low == 3'd4);
        if (state == IDLE) i_idle: assert (!f_dv && f_low > {1'b0, gap});
        if (state != IGNORE) i_error: assert (has_error == f_error);
        if (state == PREAMBLE) i_drained: assert (filled == 4'd0);
        if (state == IDLE) i_drains: assert ((filled & ~(4'b1110 << gap)) == 4'd0);
        if (state == FRAME) begin
            i_filled: assert (filled == ~(4'b1111 << (f_bytes > 15'd4 ? 15'd4 : f_bytes)));
            i_first: assert (is_first == (f_bytes == 15'd0));
        end
        if (f_open) begin
            i_bodies: assert (frame_bytes == f_bodies + 14'(body_valid && !body.is_end));
            i_limit: assert (frame_bytes <= bytes_max);
        end
        if (f_open && !frame_done) begin
            i_bytes: assert (15'(frame_bytes) == (f_bytes > 15'd4 ? f_bytes - 15'd4 : 15'd0));
            for (int unsigned i = 0; i < 3; i++)
                if (filled[i + 1] && f_heads == 15'(f_index) + 15'(i) + 15'd1)
                    assert (delay[i] == f_byte);
        end
        c_good: cover (frame_done && !body.data[0]);
        c_giant: cover (frame_done && is_giant && f_bodies == 14'd3);
        c_next: cover (is_start && f_heads == 15'd5 && $past(frame_done, 6));
    end
`endif
endmodule
