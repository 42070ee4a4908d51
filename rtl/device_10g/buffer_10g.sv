// Frames of one ingress at one output: a ring of words in block RAM (thesis sections 3.2.1 and
// 3.3.1), as buffer of the 1G device.
//
// A frame is open from `announce` until its last word is written. If it is announced while
// nothing waits it may be taken in that same cycle: then it is live, its words go past the RAM.
// Otherwise it may be taken from the second cycle after the announcement on, when its first word
// can be read. The open frame is dropped whole, and its words are taken back, if it has not been
// taken and the ring is full (full_drop) or its end is bad (bad_drop). Once taken it is never
// dropped: a bad end is passed on. A taken frame always fits, as it is read as fast as it is
// written. A take and a drop in the same cycle: the take wins.
//
// Timing: `has_frame` is combinational from `announce`. The first word of the taken frame is in
// `read_word` from the cycle after `take`; `read` goes on to the next one, in each cycle.
//
// Contract: the first word of a frame comes in the cycle after `announce`, the others in the
// cycles that follow. No `announce` while a frame is open, but with its last word, nor in two
// cycles in sequence. From the cycle after `take` on, `read` in each cycle until the last word;
// the next `take` after that.

`default_nettype none

module buffer_10g #(
    parameter int unsigned WORDS = 512 // capacity, a power of 2
) (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire logic            announce,
    input  wire logic            write,
    input  wire axon_10g::word_t write_word,
    output logic                 full_drop, // one cycle: a frame was dropped, no room
    output logic                 bad_drop,  // one cycle: it was dropped because it is bad
    output logic                 has_frame,
    input  wire logic            take,      // only with has_frame
    input  wire logic            read,
    output axon_10g::word_t      read_word
);
    localparam int unsigned ADDRESS = $clog2(WORDS);
    localparam int unsigned MARGIN = 8; // for a frame that is taken while the ring fills up
    typedef logic [ADDRESS:0] pointer_t; // one bit more than an address: full is not empty

    // Frames that wait to be taken, the open one included. `has_waiting`: one of them can be read.
    // `take` comes late in the cycle: all is computed for both of its values.
    pointer_t waiting, others_kept, others_taken, write_pointer, start, read_pointer, read_next;
    logic has_waiting, is_open, is_dropped, is_taken, is_live, is_full;
    logic is_untaken, is_head, receives, ends, overflows_else, is_bad_else, gives_up_else;
    logic takes_live, takes_open, overflows, is_bad, gives_up;
    always_comb begin
        is_untaken = is_open && !is_dropped && !is_taken;
        is_head = is_untaken && waiting == 1;
        receives = is_open && write && !is_dropped && !is_live;
        ends = is_open && write && write_word.is_last;
        has_frame = announce || has_waiting;
        takes_live = take && announce && waiting == '0;
        takes_open = take && is_head;
        // Unless the frame is taken in this cycle.
        overflows_else = receives && is_full && !is_taken;
        is_bad_else = ends && write_word.is_bad && is_untaken && !overflows_else;
        gives_up_else = overflows_else || is_bad_else;
        overflows = overflows_else && !takes_open;
        is_bad = is_bad_else && !takes_open;
        gives_up = gives_up_else && !takes_open;
        // Frames beside one that is announced now, after a take and without one.
        others_kept = waiting - pointer_t'(gives_up_else);
        others_taken = is_head || waiting == '0 ? '0 : waiting - 1'b1 - pointer_t'(gives_up_else);
    end

    always_ff @(posedge clk) begin
        waiting <= take ? others_taken + pointer_t'(announce && waiting != '0)
            : others_kept + pointer_t'(announce);
        has_waiting <= (take ? others_taken != '0 : others_kept != '0) && !rst;
        write_pointer <= gives_up ? start : write_pointer + pointer_t'(receives);
        is_open <= announce || (is_open && !ends);
        if (announce) begin
            start <= gives_up ? start : write_pointer + pointer_t'(receives);
            is_dropped <= 1'b0;
            is_taken <= takes_live;
            is_live <= takes_live;
        end else begin
            is_dropped <= is_dropped || overflows;
            is_taken <= is_taken || takes_open;
        end
        is_full <= pointer_t'(write_pointer - read_pointer) >= pointer_t'(WORDS - MARGIN);
        full_drop <= ends && (is_dropped || overflows) && !rst;
        bad_drop <= is_bad && !rst;
        if (rst) begin
            waiting <= '0;
            write_pointer <= '0;
            {is_open, is_live} <= '0;
        end
    end

    // The RAM shows the word at read_pointer, if it was written two cycles ago or earlier.
    (* ram_style = "block", no_rw_check *) logic [68:0] memory[WORDS];
    axon_10g::word_t memory_word;
    logic is_reading_live;
    assign read_next = read_pointer + pointer_t'(read && !is_reading_live);
    always_ff @(posedge clk) begin
        if (receives) memory[write_pointer[ADDRESS-1:0]] <= write_word;
        memory_word <= memory[read_next[ADDRESS-1:0]];
        read_pointer <= read_next;
        if (take) is_reading_live <= takes_live;
        if (rst) read_pointer <= '0;
    end
    assign read_word = is_reading_live ? write_word : memory_word;

`ifdef FORMAL
    // Environment: ages of the open frame and of the frame that leaves.
    logic f_past = 1'b0, f_reading, f_writes, f_announced;
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        f_reading <= (take || (f_reading && !(read && read_word.is_last))) && !rst;
        f_announced <= announce;
        f_writes <= !rst && (announce || (f_writes && !write_word.is_last));
    end
    always_comb begin
        assume (rst == !f_past);
        assume (write == f_writes);
        if (announce) assume (!f_announced && (!f_writes || write_word.is_last));
        assume (read == f_reading);
        if (take) assume (has_frame && !f_reading);
    end

    // A frame that is watched: one that is announced, its words numbered in `data`. It is kept or
    // dropped; if it is kept all its words come out, in order, and nothing else between them.
    (* anyseq *) logic f_watch;
    logic f_is_watched, f_is_open, f_is_out, f_is_dropped, f_was_taken;
    logic [7:0] f_ahead;   // frames that leave before it
    logic [15:0] f_in, f_out;
    logic f_drops;
    assign f_drops = f_is_open && ends && !keeps_it && (is_dropped || overflows || is_bad);
    logic keeps_it;
    assign keeps_it = is_taken || takes_open || is_live;
    always_ff @(posedge clk) begin
        if (announce && f_watch && !f_is_watched) begin
            f_is_watched <= 1'b1;
            f_is_open <= 1'b1;
            f_in <= '0;
            f_out <= '0;
            f_is_out <= takes_live;
            f_ahead <= 8'(take ? others_taken : others_kept);
            f_was_taken <= takes_live;
            f_is_dropped <= 1'b0;
        end else begin
            if (f_is_open && write) f_in <= f_in + 16'd1;
            if (f_is_open && ends) f_is_open <= 1'b0;
            if (f_drops || (f_is_open && overflows)) f_is_dropped <= 1'b1;
            if (f_is_watched && !f_was_taken && !f_is_dropped && take) begin
                if (f_ahead == 8'd0) {f_was_taken, f_is_out} <= 2'b11;
                else f_ahead <= f_ahead - 8'd1;
            end
            if (f_is_out && read) begin
                f_out <= f_out + 16'd1;
                if (read_word.is_last) f_is_out <= 1'b0;
            end
        end
        if (rst) {f_is_watched, f_is_open, f_is_out, f_was_taken, f_is_dropped} <= '0;
    end
    always_comb begin
        if (f_is_open && write) assume (write_word.data[15:0] == f_in);
        if (f_is_open && write) assume (f_in < 16'd1000);
    end
    logic f_last_seen, f_last_bad;
    logic [15:0] f_last;
    always_ff @(posedge clk) begin
        if (f_is_open && ends) begin
            f_last_seen <= 1'b1;
            f_last <= f_in;
            f_last_bad <= write_word.is_bad;
        end
        if (rst || !f_is_watched) f_last_seen <= 1'b0;
    end
    always_comb if (f_past && !rst) begin
        if (f_is_out && read) begin
            a_in_order: assert (read_word.data[15:0] == f_out);
            if (!f_is_open && f_last_seen)
                a_ends_where_it_ended: assert (read_word.is_last == (f_out == f_last));
            if (f_is_open && !(write && write_word.is_last && is_reading_live))
                a_ends_not_before: assert (!read_word.is_last);
        end
        if (f_was_taken) a_taken_is_not_dropped: assert (!f_is_dropped);
        if (f_is_dropped) a_dropped_is_not_taken: assert (!f_is_out);
        a_room: assert (pointer_t'(write_pointer - read_pointer) < pointer_t'(WORDS));
        if (full_drop) a_one_reason: assert (!bad_drop);
    end
    always_ff @(posedge clk) if (f_past && !rst) begin
        c_live: cover (f_is_out && read && read_word.is_last && is_reading_live);
        c_stored: cover (f_is_out && read && read_word.is_last && !is_reading_live && f_out > 3);
        c_full: cover (full_drop);
        c_bad: cover (bad_drop);
    end
`endif
endmodule
