// Frames of one ingress at one output: a ring of symbols in block RAM (thesis 000 sections 3.2.1
// and 3.3.1).
//
// A frame is open from `announce` until its end is written. Symbols written while no frame is open
// are not for this buffer. A cut-through frame may leave from its announcement on; a stored one
// when its good end has been written. The open frame is dropped whole, and its symbols are taken
// back, if it has not begun to leave and
//   - 32 frames wait at its announcement, or the ring is full but for 32 symbols (full_drop), or
//   - its end is bad (bad_drop).
// Once taken it is never dropped: a bad end is passed on. A taken frame always fits, because it is
// read as fast as it is written; the 32 symbols are the room that it needs until its first byte
// comes out. A take and a drop in the same cycle: the take wins.
//
// Timing: `has_frame` in the cycle after `announce` and exact in each cycle; `is_blocked` with it,
// but three cycles after a `take`, and one cycle after `paused`. A symbol may be read from the
// cycle after its write on; `read_symbol` comes 3 cycles after `read` (register, block RAM, output
// register). Reads have no effect without a taken frame or beyond its end: the end that comes out
// sets the read pointer behind itself. Drops are reported in the cycle after the end. `occupancy`
// is one cycle late.
//
// Contract: no `announce` while a frame is open, but in the cycle of its end. Byte 0 of a frame
// that is cut through is written at most 4 cycles after the announcement, then one symbol in each
// cycle. No `take` until the end of the frame taken before has come out. The first `read` is 4 to
// 12 cycles after `take`; a frame that is cut through is then read in each cycle.

`default_nettype none

module buffer #(
    parameter BYTES = 2048,      // capacity in symbols, a power of 2
    parameter FRAMES = 32        // frames that wait at most, a power of 2
) (
    input  wire logic          clk,
    input  wire logic          rst,
    input  wire logic          announce,       // a frame begins
    input  wire logic [2:0]    frame_priority, // with announce
    input  wire logic          is_stored,      // with announce: leaves only whole and good
    input  wire logic [7:0]    paused,         // priorities that must not leave
    input  wire logic          write,
    input  wire axon::symbol_t write_symbol,
    output logic               full_drop,
    output logic               bad_drop,
    output logic               has_frame,
    output logic               is_blocked,     // the priority of the head frame is paused
    input  wire logic          take,           // only with has_frame
    input  wire logic          read,
    output logic               read_valid,
    output axon::symbol_t      read_symbol,
    output logic               frame_out,      // the end is in read_symbol
    output logic [$clog2(BYTES):0] occupancy
);
    localparam ADDRESS = $clog2(BYTES);
    localparam INDEX = $clog2(FRAMES);
    localparam MARGIN = BYTES >= 64 ? 32 : 20; // 19 is enough; small rings are for proofs
    typedef logic [ADDRESS:0] pointer_t; // one bit more than an address: full is not empty

    // Write side. The open frame begins at `start`, and may have its place among those that wait.
    pointer_t write_pointer, next_pointer, start, out_pointer;
    logic is_open, is_dropped, is_visible, is_taken, is_full, has_no_slot;
    logic [INDEX:0] whole; // frames that wait and have ended; one that has not is `is_visible`
    logic receives, ends, is_bad, has_slot, fails, closes, joins_early, is_alone, take_open;
    logic keeps, gives_up, stays, has_else, has_taken;
    always_comb begin
        receives = is_open && write && !is_dropped;
        ends = is_open && write && write_symbol.is_end;
        is_bad = write_symbol.is_end && write_symbol.data[0];
        has_slot = is_open && !is_dropped && !is_taken;
        fails = receives && !is_taken && (is_full || is_bad);
        closes = receives && !is_taken && !is_full && write_symbol.is_end && !is_bad;
        stays = closes || (is_visible && !fails); // the open frame still waits
        // A stored frame joins those that wait at its end, a cut-through one at once.
        has_no_slot = whole[INDEX] || (&whole[INDEX-1:0] && has_slot);
        joins_early = announce && !is_stored && !has_no_slot;
        is_alone = is_visible && whole == '0;
        // has_frame without and with a take, which comes late in the cycle.
        has_else = joins_early || stays || whole != '0;
        has_taken = joins_early || (stays && whole != '0) || whole[INDEX:1] != '0;
        // A take of the open frame wins over its drop.
        take_open = take && is_alone;
        keeps = is_taken || take_open;
        gives_up = fails && !take_open;
        next_pointer = gives_up ? start : write_pointer + pointer_t'(receives);
    end

    // Whether the occupancy is BYTES - MARGIN or more. Bit by bit it is a few LUTs; with `>=` it
    // would be a carry chain.
    localparam pointer_t HIGH = pointer_t'(BYTES - MARGIN);
    logic is_high;
    always_comb begin
        is_high = 1'b1;
        for (int unsigned at = 0; at <= ADDRESS; at++)
            is_high = HIGH[at] ? is_high && occupancy[at] : is_high || occupancy[at];
    end

    always_ff @(posedge clk) begin
        write_pointer <= next_pointer;
        if (announce) start <= next_pointer;
        is_open <= announce || (is_open && !ends);
        is_dropped <= announce ? has_no_slot : is_dropped || gives_up;
        is_visible <= announce ? joins_early : is_visible && !gives_up && !ends && !take_open;
        is_taken <= !announce && keeps && !ends;
        full_drop <= ends && (is_dropped || (gives_up && is_full)) && !rst;
        bad_drop <= gives_up && !is_full && !rst;
        is_full <= is_high;
        occupancy <= write_pointer - out_pointer;
        if (rst) begin
            write_pointer <= '0;
            occupancy <= '0;
            is_open <= 1'b0;
            is_visible <= 1'b0;
            is_taken <= 1'b0;
        end
    end

    // Frames that wait, in order, and their priorities. `tail` is the place of the open frame,
    // whose priority is stored in the cycle after its announcement.
    logic [INDEX-1:0] head, tail;
    logic [2:0] priorities[FRAMES];
    logic [2:0] open_priority, head_priority;
    logic is_first_open, stores_priority, is_new; // is_new: announced in the cycle before
    assign stores_priority = is_new && !is_dropped;
    assign is_first_open = stores_priority && whole == '0;
    always_ff @(posedge clk) begin
        is_new <= announce;
        has_frame <= (take ? has_taken : has_else) && !rst;
        case ({closes, take})
            2'b10: whole <= whole + 1'b1;
            2'b01: if (whole != '0) whole <= whole - 1'b1;
            default: ;
        endcase
        if (take) head <= head + 1'b1;
        if (closes || take_open) tail <= tail + 1'b1;
        open_priority <= frame_priority;
        if (stores_priority) priorities[tail] <= open_priority;
        is_blocked <= announce && whole == '0 && !closes ? paused[frame_priority]
            : paused[is_first_open ? open_priority : head_priority];
        head_priority <= is_first_open ? open_priority : priorities[head];
        if (rst) begin
            whole <= '0;
            head <= '0;
            tail <= '0;
        end
    end

    // The symbols. A read and a write of the same address in one cycle: only beyond an end.
    (* ram_style = "block", no_rw_check *) logic [8:0] memory[BYTES];
    logic stores;
    axon::symbol_t stored_symbol, memory_symbol;
    logic [ADDRESS-1:0] write_address;
    pointer_t read_pointer;
    always_ff @(posedge clk) begin
        stores <= receives && !rst;
        stored_symbol <= write_symbol;
        write_address <= write_pointer[ADDRESS-1:0];
        if (stores) memory[write_address] <= stored_symbol;
        memory_symbol <= memory[read_pointer[ADDRESS-1:0]];
        read_symbol <= memory_symbol;
    end

    // Read side. A read moves the pointer on; two cycles later its symbol has come out, when
    // `behind`, the pointer of the cycle before, is the place after it: `out_pointer`, which frees
    // the room, follows it, and after an end so does the read pointer.
    logic is_reading, read_now, memory_valid;
    pointer_t behind;
    assign frame_out = read_valid && read_symbol.is_end;
    always_ff @(posedge clk) begin
        is_reading <= (is_reading || take) && !frame_out && !rst;
        read_now <= read && is_reading && !frame_out && !rst;
        memory_valid <= read_now && !frame_out && !rst;
        read_valid <= memory_valid && !frame_out && !rst;
        behind <= read_pointer;
        if (read_valid) out_pointer <= behind;
        if (frame_out) read_pointer <= behind;
        else if (read_now) read_pointer <= read_pointer + 1'b1;
        if (rst) begin
            read_pointer <= '0;
            out_pointer <= '0;
        end
    end

`ifdef FORMAL
    // The stream of accepted symbols is counted: f_position of them are written, f_read have come
    // out; those since f_committed are of the open frame and may be taken back. f_ends has a bit
    // for each end in the ring. `f_index` is any place in the stream, f_symbol what was written
    // there.
    (* anyconst *) pointer_t f_index;
    pointer_t f_committed, f_open_count, f_position, f_read, f_staged, f_waiting_out;
    logic [BYTES-1:0] f_ends;
    logic [BYTES-1:0] f_one;
    assign f_one = 1;
    axon::symbol_t f_symbol;
    logic f_past = 1'b0, f_ok2, f_ok3, f_cut, f_started, f_open_stored, f_writes, f_drops_end;
    logic [4:0] f_announce_age, f_take_age, f_lag;
    logic f_uses; // a symbol of the open frame comes out: it cannot be taken back
    assign f_uses = is_taken && read_valid;
    assign f_position = f_committed + f_open_count;
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (gives_up) f_open_count <= '0;
        else if (receives && ends) begin
            f_committed <= f_position + 1'b1;
            f_open_count <= '0;
            f_ends <= (frame_out ? f_ends & ~(f_one << out_pointer[ADDRESS-1:0]) : f_ends)
                | f_one << f_position[ADDRESS-1:0];
        end else begin
            f_committed <= f_committed + pointer_t'(f_uses);
            f_open_count <= f_open_count + pointer_t'(receives) - pointer_t'(f_uses);
        end
        if (frame_out && !(receives && ends && !gives_up))
            f_ends <= f_ends & ~(f_one << out_pointer[ADDRESS-1:0]);
        if (receives && f_position == f_index) f_symbol <= write_symbol;
        f_staged <= f_position;
        f_read <= f_read + pointer_t'(read_valid);
        f_ok2 <= f_ok1;
        f_ok3 <= f_ok2;
        // Ages for the contract.
        f_announce_age <= announce ? 5'd1 : f_announce_age + 5'(f_announce_age != 5'd31);
        f_take_age <= take ? 5'd1 : f_take_age + 5'(f_take_age != 5'd31);
        f_lag <= take ? 5'd1 : f_lag + 5'(!read_valid && f_lag != 5'd31);
        if (announce) f_open_stored <= is_stored;
        f_writes <= !announce && (f_writes || (is_open && write));
        if (take) f_cut <= take_open && !ends;
        f_started <= !take && (f_started || read);
        f_drops_end <= ends && (is_dropped || gives_up) && !rst;
        if (rst) begin
            {f_committed, f_open_count, f_read} <= '0;
            f_ends <= '0;
        end
    end

    // Places: of the read in hand, and whether the RAM has the symbol there.
    pointer_t f_place1, f_place2;
    logic f_ok1, f_is_dead;
    assign f_place2 = f_read + pointer_t'(read_valid);
    assign f_place1 = f_place2 + pointer_t'(memory_valid);
    assign f_ok1 = pointer_t'(f_place1 - f_read) < pointer_t'(f_position - f_read)
        && !(stores && f_staged == f_place1);
    assign f_is_dead = frame_out || (memory_valid && f_ok2 && memory_symbol.is_end);
    logic f_in_ring;
    pointer_t f_used;
    localparam pointer_t f_most = pointer_t'(BYTES - MARGIN + 2);
    assign f_used = f_position - f_read;
    assign f_in_ring = pointer_t'(f_index - f_read) < pointer_t'(f_position - f_read);
    // Ends of the frames that wait, in order, and of the frame that leaves.
    logic [2:0] f_priorities[FRAMES];
    logic [7:0] f_paused;
    logic [INDEX-1:0] f_slot;
    assign f_slot = tail + INDEX'(closes || take_open);
    always_ff @(posedge clk) begin
        if (announce && !has_no_slot) f_priorities[f_slot] <= frame_priority;
        f_paused <= paused;
    end
    pointer_t f_end[FRAMES], f_leaving_end;
    logic f_is_closed;      // f_leaving_end is known
    logic [INDEX:0] f_waiting; // with the open frame
    logic f_takes_whole, f_joins_whole;
    assign f_waiting = whole + (INDEX + 1)'(is_visible);
    assign f_takes_whole = take && !take_open;
    assign f_joins_whole = receives && ends && !gives_up && !keeps;
    always_ff @(posedge clk) begin
        for (int unsigned at = 0; at < FRAMES; at++) begin
            if (f_joins_whole && (INDEX + 1)'(at) == whole - (INDEX + 1)'(f_takes_whole))
                f_end[at] <= f_position;
            else if (f_takes_whole && at + 1 < FRAMES) f_end[at] <= f_end[(at + 1) % FRAMES];
        end
        if (f_takes_whole) f_leaving_end <= f_end[0];
        else if (receives && ends && keeps) f_leaving_end <= f_position;
        f_is_closed <= !rst && !frame_out
            && (f_is_closed || f_takes_whole || (receives && ends && keeps));
    end
    logic [BYTES-1:0] f_expected;
    logic f_ordered;
    pointer_t f_last;
    always_comb begin
        f_expected = f_is_closed ? f_one << f_leaving_end[ADDRESS-1:0] : '0;
        f_ordered = !f_is_closed || pointer_t'(f_leaving_end - f_read) < pointer_t'(BYTES);
        f_last = f_is_closed ? f_leaving_end : f_read - 1'b1;
        for (int unsigned at = 0; at < FRAMES; at++) if ((INDEX + 1)'(at) < whole) begin
            f_expected |= f_one << f_end[at][ADDRESS-1:0];
            f_ordered &= pointer_t'(f_end[at] - f_read) < pointer_t'(BYTES)
                && pointer_t'(f_end[at] - f_read) >= pointer_t'(f_last + 1'b1 - f_read);
            f_last = f_end[at];
        end
    end

    logic f_same_priorities;
    always_comb begin
        f_same_priorities = 1'b1;
        for (int unsigned at = 0; at < FRAMES; at++) if ((INDEX + 1)'(at) < f_waiting)
            f_same_priorities &= (stores_priority && tail == INDEX'(head + INDEX'(at))
                ? open_priority : priorities[INDEX'(head + INDEX'(at))])
                    == f_priorities[INDEX'(head + INDEX'(at))];
    end

    // The contract.
    always_comb begin
        if (!f_past) assume (rst);
        if (announce) assume (!is_open || ends);
        if (is_open && !f_open_stored && (f_writes || f_announce_age >= 5'd4)) assume (write);
        if (take) assume (has_frame && !is_reading);
        if (read && is_reading) assume (f_take_age >= 5'd4);
        if (is_reading && f_take_age >= 5'd12 && !f_started) assume (read);
        if (is_reading && f_cut && f_started) assume (read);
    end

    always_comb if (f_past && !rst) begin
        // Order and no loss.
        if (read_valid && f_read == f_index) begin
            a_written_before_read: assert (f_in_ring);
            a_same_symbol: assert (read_symbol == f_symbol);
        end
        a_no_underrun: assert (!read_valid || f_ok3);
        a_no_overflow: assert (pointer_t'(f_position - f_read) < pointer_t'(BYTES));
        a_only_while_taken: assert (!read_valid || is_reading);
        a_end_will_come: assert (!is_reading || is_taken || f_ends != 0);
        // Whole-frame drop: all of the open frame is taken back, and it is reported once.
        a_taken_back: assert (write_pointer == f_position && out_pointer == f_read);
        a_back_to_start: assert (!is_open || is_taken || start == f_committed);
        a_dropped_is_empty: assert (!is_open || !is_dropped || f_open_count == 0);
        a_taken_is_kept: assert (!is_taken || (is_open && !is_dropped && !is_visible));
        a_one_report: assert ((full_drop || bad_drop) == f_drops_end && !(full_drop && bad_drop));
        a_priority: assert (!has_frame || f_take_age <= 5'd2
            || is_blocked == f_paused[f_priorities[head]]);
        a_frames: assert (f_waiting <= (INDEX + 1)'(FRAMES) && has_frame == (f_waiting != 0));
        a_stored_waits: assert (!is_open || !f_open_stored || (!is_visible && !is_taken));
        a_no_whole_frame_lost: assert (f_ends == f_expected && f_ordered
            && (is_taken ? whole == 0 && !f_is_closed : f_last == f_committed - 1'b1));
        i_closed_frame: assert (f_is_closed == (is_reading && !is_taken));
        // What the induction needs.
        i_pointer: assert (read_pointer == f_place1 && (!read_valid || behind == f_read + 1'b1));
        i_end_out: assert (!is_reading || is_taken || f_committed != f_read);
        i_open: assert ((!is_visible && !is_taken) || (is_open && !is_dropped));
        i_closed: assert (is_open || f_open_count == 0);
        i_slot: assert (!has_slot || whole != (INDEX + 1)'(FRAMES));
        i_tail: assert (tail == INDEX'(head + INDEX'(whole)));
        i_priorities: assert (f_same_priorities);
        i_head_priority: assert (f_waiting == 0 || f_take_age == 5'd1 || is_first_open
            || head_priority == f_priorities[head]);
        i_open_priority: assert (!has_slot || is_visible || (stores_priority ? open_priority
            : priorities[tail]) == f_priorities[tail]);
        i_taken: assert (!is_taken || (is_reading && f_cut && f_waiting == 0 && f_ends == 0));
        i_ram: assert (!f_in_ring || (stores && f_staged == f_index
            ? stored_symbol == f_symbol : memory[f_index[ADDRESS-1:0]] == f_symbol));
        i_ram_ends: assert (f_memory_ends == f_ends);
        i_stage: assert (!stores || (write_address == f_staged[ADDRESS-1:0]
            && pointer_t'(f_staged - f_read) < pointer_t'(BYTES)
            && (f_staged == pointer_t'(f_position - 1'b1) || f_position == f_committed)));
        i_stored_end: assert (!stores || f_staged != pointer_t'(f_position - 1'b1)
            || stored_symbol.is_end == f_ends[write_address]);
        // The three stages of a read.
        i_chain: assert (is_reading || !(read_now || memory_valid || read_valid));
        i_place2: assert (!memory_valid || frame_out || f_ok2);
        i_place1: assert (!read_now || f_is_dead || f_ok1);
        i_symbol2: assert (!memory_valid || frame_out
            || memory_symbol.is_end == f_ends[f_place2[ADDRESS-1:0]]);
        i_data2: assert (!memory_valid || frame_out || f_place2 != f_index
            || (f_in_ring && memory_symbol == f_symbol));
        i_symbol3: assert (!read_valid || (f_position != f_read
            && read_symbol.is_end == f_ends[f_read[ADDRESS-1:0]]));
        i_data3: assert (!read_valid || f_read != f_index
            || (f_in_ring && read_symbol == f_symbol));
        // Times: the reader of a frame that is cut through stays behind its writer.
        i_writes: assert (!is_open || is_dropped || f_writes || f_open_count == 0);
        i_written: assert (!is_open || is_dropped || is_taken || !f_writes || f_open_count != 0);
        i_order: assert (is_taken ? f_committed == f_read
            : f_open_count <= pointer_t'(f_position - f_read));
        i_announced: assert (!is_open || f_open_stored || f_announce_age <= 5'd4 || f_writes);
        i_take_age: assert (!is_taken || f_take_age < f_announce_age || f_announce_age == 5'd31);
        i_waits: assert (!is_reading || f_started || (f_take_age <= 5'd12 && f_lag == f_take_age
            && f_place1 == f_read && !read_now));
        i_behind: assert (!is_taken || !f_started || pointer_t'(f_place1 - f_committed) + 1'b1
            + pointer_t'(read_now) <= f_open_count);
        // Room: f_most is the highest occupancy without a taken frame.
        i_occupancy: assert (f_used <= occupancy + 1'b1 && occupancy <= f_most + 7'd16);
        i_not_full: assert (is_full || f_used <= f_most - 1'b1);
        i_open_room: assert (is_taken || f_open_count <= f_most);
        i_taken_room: assert (!is_taken || f_used <= f_most + pointer_t'(f_lag));
        i_room: assert (f_used <= f_most + 7'd16);
        i_lag: assert (!is_reading || !f_cut || !f_started || frame_out
            || f_lag <= (read_valid ? 5'd15 : memory_valid ? 5'd14 : 5'd13));
        i_cut_valid: assert (!f_cut || !f_started || !read_valid || frame_out || memory_valid);
        i_cut_reads: assert (!is_reading || !f_cut || !f_started || read_now || frame_out);
    end
    logic [BYTES-1:0] f_memory_ends;
    always_comb for (int unsigned at = 0; at < BYTES; at++) begin
        f_memory_ends[at] = ADDRESS'(ADDRESS'(at) - f_read[ADDRESS-1:0])
                < pointer_t'(f_position - f_read) && !(stores && f_staged[ADDRESS-1:0]
                    == ADDRESS'(at) && f_position != f_staged)
            ? memory[at][8] : f_ends[at];
    end
    always_comb if (f_past && !rst) begin
        c_cut_through: cover (frame_out && f_cut && is_open);
        c_full: cover (full_drop);
        c_bad: cover (bad_drop && f_waiting == 1);
        c_take_wins: cover (fails && take_open);
        c_at_once: cover (announce && closes && !is_visible && take);
    end
`endif
endmodule
