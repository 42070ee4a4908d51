// Transmit half of a MAC on GMII, IEEE 802.3 clauses 35.2 and 4.2.8: puts preamble and SFD before a
// frame, pads it to 60 bytes, appends the FCS, keeps a gap of 12 bytes.
//
// A frame with a bad end leaves poisoned: every bit of its FCS is inverted, so that no receiver
// takes it. So does a frame of which a symbol was missing in the cycle in which it was needed; the
// byte in its place is sent with tx_er. A reset cuts a frame short.
//
// Timing, `start` in cycle 0: preamble in the output register in cycles 1 to 7, SFD in 8, byte k in
// 9 + k. `read` is high from cycle 4 until the cycle in which the end is at `symbol`; a symbol
// comes 4 cycles after its read: byte k is read in cycle 4 + k and used in 8 + k. The four reads
// before `read` falls are beyond the end. `ready` comes back in the 12th
// cycle after the last byte of the FCS.

`default_nettype none

module gmii_tx (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        start,       // only while ready: a frame begins
    output logic             ready,
    output logic             read,        // asks for the next symbol
    input  wire axon::symbol_t symbol,
    input  wire logic        symbol_valid,
    output logic [7:0]       txd,
    output logic             tx_en,
    output logic             tx_er,
    output logic             frame_done,  // with the last byte of the FCS, as both below
    output logic [13:0]      frame_bytes, // without FCS, with padding
    output logic             is_poisoned
);
    localparam logic [3:0] READ_AT = 4'd2;
    localparam logic [3:0] SFD_AT = 4'd6;
    localparam logic [3:0] FCS_LAST = 4'd3;
    localparam logic [3:0] GAP_LAST = 4'd11;

    // The state is of the byte that enters the output register at the end of the cycle. TAIL is
    // padding and FCS after the cycle of the end.
    typedef enum logic [2:0] {IDLE, PREAMBLE, BODY, TAIL, GAP} state_t;
    state_t state;
    logic [3:0] count; // bytes of the preamble, the FCS or the gap that are done

    logic is_end, is_missing, is_after, is_full, is_fcs, is_last, is_bad;
    assign is_end = state == BODY && symbol_valid && symbol.is_end;
    assign is_missing = state == BODY && !symbol_valid;
    assign is_after = state == TAIL || is_end;
    assign is_fcs = is_after && is_full;
    assign is_last = state == TAIL && is_full && count == FCS_LAST;
    assign is_bad = is_poisoned || (is_end && symbol.data[0]);

    always_ff @(posedge clk) begin
        count <= count + 4'd1;
        ready <= 1'b0;
        case (state)
            IDLE: begin
                state <= start ? PREAMBLE : IDLE;
                ready <= !start;
                count <= 4'd0;
            end
            PREAMBLE: begin
                if (count == SFD_AT) state <= BODY;
                if (count == READ_AT) read <= 1'b1;
            end
            BODY: begin
                if (is_end) begin
                    state <= TAIL;
                    read <= 1'b0;
                end
                count <= {3'd0, is_fcs};
            end
            TAIL: begin
                if (!is_full) count <= 4'd0;
                if (is_last) begin
                    state <= GAP;
                    count <= 4'd0;
                end
            end
            default: begin
                if (count == GAP_LAST) begin
                    state <= IDLE;
                    ready <= 1'b1;
                end
            end
        endcase
        if (rst) begin
            state <= GAP;
            count <= 4'd0;
            ready <= 1'b0;
            read <= 1'b0;
        end
    end

    // The byte of the frame or of its padding, and the CRC. While the FCS leaves, `crc` shifts.
    logic [7:0] data;
    logic [31:0] crc, crc_next;
    assign data = is_after || is_missing ? 8'd0 : symbol.data;
    crc32 step (.crc(crc), .data(data), .next(crc_next));

    always_ff @(posedge clk) begin
        frame_done <= is_last && !rst;
        if (state == PREAMBLE) begin
            crc <= '1;
            frame_bytes <= 14'd0;
            is_full <= 1'b0;
            is_poisoned <= 1'b0;
        end else if (state == BODY || state == TAIL) begin
            crc <= is_fcs ? {8'd0, crc[31:8]} : crc_next;
            is_poisoned <= is_bad || is_missing;
            if (!is_fcs) begin
                frame_bytes <= frame_bytes + 14'd1;
                is_full <= is_full || frame_bytes == 14'd59;
            end
        end
    end

    always_ff @(posedge clk) begin
        tx_er <= is_missing && !rst;
        tx_en <= ((state == IDLE && start) || state == PREAMBLE || state == BODY || state == TAIL)
            && !rst;
        case (state)
            IDLE:     txd <= start ? 8'h55 : 8'd0;
            PREAMBLE: txd <= count == SFD_AT ? 8'hd5 : 8'h55;
            GAP:      txd <= 8'd0;
            default:  txd <= is_fcs ? crc[7:0] ^ {8{!is_bad}} : data;
        endcase
    end

`ifdef FORMAL
    // The environment: a reset at first, `start` only while ready. Symbols are free.
    logic f_past = 1'b0;
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (!f_past) assume (rst);
        assume (!start || ready);
    end

    // An observer of the pins. f_sent: bytes of the event before the one in txd, up to 9; f_low:
    // cycles without tx_en before this one, up to 12; f_length: bytes of frame and padding, up to
    // 60; f_crc: CRC of them; f_fcs: bytes of FCS up to the one in txd.
    logic [3:0] f_sent, f_low;
    logic [5:0] f_length;
    logic [2:0] f_fcs;
    logic [31:0] f_crc, f_crc_next;
    logic f_is_bad; // since the start: a bad end, or a missing symbol
    logic f_in_frame;
    assign f_in_frame = tx_en && f_sent >= 4'd8 && f_fcs == 3'd0;
    crc32 f_step (.crc(f_crc), .data(txd), .next(f_crc_next));
    always_ff @(posedge clk) begin
        f_sent <= !tx_en || rst ? 4'd0 : f_sent == 4'd9 ? f_sent : f_sent + 4'd1;
        f_low <= tx_en || rst ? 4'd0 : f_low == 4'd12 ? f_low : f_low + 4'd1;
        f_fcs <= is_fcs && !rst ? f_fcs + 3'd1 : 3'd0;
        if (!tx_en) f_crc <= '1;
        else if (f_in_frame) f_crc <= f_crc_next;
        if (!tx_en) f_length <= 6'd0;
        else if (f_in_frame && f_length != 6'd60) f_length <= f_length + 6'd1;
        if (start) f_is_bad <= 1'b0;
        else if (is_missing || (is_end && symbol.data[0])) f_is_bad <= 1'b1;
    end

    always_ff @(posedge clk) if (f_past && !rst && !$past(rst)) begin
        // Gap and start: 12 cycles at least; the first byte follows `start` at once.
        if (tx_en && f_sent == 4'd0) a_gap: assert (f_low == 4'd12);
        a_start: assert ($past(start) == (tx_en && f_sent == 4'd0));
        if (!ready) a_ready_in_12th: assert (state != GAP || f_low < 4'd12);
        // One run of tx_en: 7 times 0x55, 0xD5, the frame, and it falls after the FCS only.
        if (tx_en && f_sent < 4'd7) a_preamble: assert (txd == 8'h55 && !tx_er);
        if (tx_en && f_sent == 4'd7) a_sfd: assert (txd == 8'hd5 && !tx_er);
        if ($past(tx_en) && !tx_en) a_contiguous: assert ($past(frame_done));
        if ($past(frame_done)) a_falls: assert (!tx_en);
        if (frame_done) a_whole_fcs: assert (tx_en && f_fcs == 3'd4);
        if (f_fcs == 3'd4) a_done: assert (frame_done);
        if (!tx_en) a_quiet: assert (txd == 8'd0 && !tx_er && !frame_done);
        // The frame is the symbols in their order, then zeros up to 60 bytes.
        if ($past(state == BODY && symbol_valid && !symbol.is_end))
            a_data: assert (f_in_frame && txd == $past(symbol.data) && !tx_er);
        if (f_in_frame && !$past(state == BODY && symbol_valid && !symbol.is_end))
            a_padding: assert (txd == 8'd0 && ($past(is_missing) || f_length < 6'd60));
        a_error: assert (tx_er == $past(is_missing));
        // The FCS is right, or inverted if the end was bad or a symbol was missing, by is_poisoned.
        if (f_fcs != 3'd0) begin
            a_fcs: assert (txd == (8'(f_crc >> (8 * (f_fcs - 3'd1))) ^ {8{!is_poisoned}}));
            a_poison: assert (is_poisoned == f_is_bad);
            a_length: assert (f_length == 6'd60);
        end
        // `read` begins with the fourth cycle, and does not pause before the end has come.
        if ($past(read) && !read) a_read_until_end: assert ($past(is_end));
        if ($past(is_end)) a_read_ends: assert (!read);
        a_read_begins: assert ((read && !$past(read)) == (tx_en && f_sent == 4'd3));
        if (state == BODY) a_read_in_body: assert (read);
        // Relations that the induction needs.
        i_state: assert (state <= GAP);
        i_ready: assert (ready == (state == IDLE));
        i_sends: assert (tx_en == (state == PREAMBLE || state == BODY || state == TAIL
            || f_fcs == 3'd4));
        if (state == IDLE) i_idle: assert (!tx_en && f_low >= 4'd11 && !read);
        if (state == PREAMBLE) i_preamble: assert (count <= SFD_AT && f_sent == count
            && read == (count > READ_AT));
        if (state == BODY) i_body: assert (f_sent >= 4'd7 && (f_sent == 4'd7 || f_in_frame));
        if (state == TAIL) i_tail: assert (!read && f_sent >= 4'd8 && f_fcs == count[2:0]
            && count <= FCS_LAST && (is_full || count == 4'd0));
        if (state == GAP) i_gap: assert (!read && count <= GAP_LAST
            && (tx_en ? count == 4'd0 && f_fcs == 3'd4 : f_fcs == 3'd0 && f_low + 4'd1 >= count));
        if (state == IDLE || state == PREAMBLE || state == BODY) i_no_fcs: assert (f_fcs == 3'd0);
        if (state == BODY && f_sent == 4'd7)
            i_begin: assert (crc == '1 && f_crc == '1 && !is_full && frame_bytes == 14'd0);
        if (state == PREAMBLE || (tx_en && f_sent <= 4'd8))
            i_unused: assert (f_crc == '1 && f_length == 6'd0);
        if (state == PREAMBLE) i_good: assert (!f_is_bad);
        if (state == BODY || state == TAIL) i_poison: assert (is_poisoned == f_is_bad);
        if (f_in_frame) begin
            i_crc: assert (crc == f_crc_next);
            i_full: assert (is_full == (f_length >= 6'd59));
            i_length: assert (is_full || frame_bytes == 14'(f_length) + 14'd1);
        end
        if (f_fcs != 3'd0)
            i_shifted: assert (8'(crc) == 8'(f_crc >> (8 * f_fcs)) || f_fcs == 3'd4);
        if (state == TAIL && count != 4'd0)
            i_shift: assert (crc == f_crc >> (8 * count));
        c_good: cover (frame_done && !is_poisoned);
        c_poisoned: cover (frame_done && is_poisoned);
        c_full_load: cover (tx_en && f_sent == 4'd0 && $past(frame_done, 13));
    end
`endif
endmodule
