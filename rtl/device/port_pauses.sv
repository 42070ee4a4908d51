// Pauses that the peer of a port requests: PAUSE (IEEE 802.3 annex 31B) for all priorities, PFC
// (IEEE 802.1Q clause 36, 802.3 annex 31D) for each one; as `PauseState` in
// crates/plane/src/qos/flow_control.rs.
//
// The MAC control frame is checked while it passes and takes effect with its good end. Checked are
// those of `MacControl::parse`: at least 60 bytes, opcode, destination (the group address; for
// PAUSE also that of the port), a source that is no group. The EtherType has been checked by the
// ingress. The high byte of the enable vector and bytes behind the fields are ignored.
//
// Each priority has a timer. A frame replaces the remaining time of its priorities, 0 ends a pause.
// A time without its bit in the enable vector, and a frame that the settings do not allow, change
// nothing. Loss of the carrier, and a setting that takes a priority away, end pauses.
//
// The timers are a small memory; each cycle serves one priority, so each priority is served every
// 8 cycles, one eighth of a quantum: 512 bit times are 64 cycles.
//
// Timing, good end at `symbol` in cycle 0: `paused` has its new value in cycles 2 to 9, from then
// on for exactly 64 cycles for each quantum. A buffer follows one cycle later, so that from cycle
// 10 on no frame of a paused priority is granted.

`default_nettype none

module port_pauses (
    input  wire logic          clk,
    input  wire logic          rst,
    input  wire logic          link_up,
    // Settings.
    input  wire logic          obeys_pause,
    input  wire logic [7:0]    obeys_pfc,   // by priority
    input  wire logic [47:0]   own_address, // first byte in the high bits
    // MAC control frames as they came, from the ingress.
    input  wire logic          mac_control_valid,
    input  wire axon::symbol_t symbol,
    output logic [7:0]         paused,      // priorities of which no frame may begin
    // Valid frames, obeyed or not: one cycle each.
    output logic               pause_received,
    output logic               pfc_received
);
    localparam logic [47:0] GROUP = 48'h0180_c200_0001;
    localparam logic [5:0]  BYTES_MIN = 6'd60;

    // The frame. `count` is the number of its bytes before this symbol, 60 at most.
    logic [5:0]  count;
    logic        is_byte, is_group_byte, is_own_byte, is_group, is_own, is_from_one;
    logic        is_pause, is_pfc;
    logic [15:0] word; // behind the opcode: the time of PAUSE, the enable vector of PFC
    logic [7:0]  times_high [0:7]; // of PFC
    logic [7:0]  times_low [0:7];
    logic [2:0]  time_index;
    logic        is_time;
    always_comb begin
        is_byte = mac_control_valid && !symbol.is_end;
        is_group_byte = symbol.data == 8'(GROUP >> 8 * (6'd5 - count));
        is_own_byte = symbol.data == 8'(own_address >> 8 * (6'd5 - count));
        is_time = is_byte && count >= 6'd18 && count < 6'd34;
        time_index = count[3:1] - 3'd1;
    end
    always_ff @(posedge clk) begin
        if (is_byte) begin
            if (count != BYTES_MIN) count <= count + 6'd1;
            if (count < 6'd6) begin
                is_group <= is_group_byte && (count == 6'd0 || is_group);
                is_own <= is_own_byte && (count == 6'd0 || is_own);
            end
            case (count)
                6'd6: is_from_one <= !symbol.data[0];
                6'd14: {is_pfc, is_pause} <= {symbol.data == 8'd1, symbol.data == 8'd0};
                6'd15: {is_pfc, is_pause} <= {is_pfc, is_pause} & {2{symbol.data == 8'd1}};
                6'd16: word[15:8] <= symbol.data;
                6'd17: word[7:0] <= symbol.data;
                default: ;
            endcase
        end
        if (is_time && !count[0]) times_high[time_index] <= symbol.data;
        if (is_time && count[0]) times_low[time_index] <= symbol.data;
        if (mac_control_valid && symbol.is_end) count <= 6'd0;
        if (rst) count <= 6'd0;
    end

    logic is_valid, is_valid_pause, is_valid_pfc;
    always_comb begin
        is_valid = mac_control_valid && symbol.is_end && !symbol.data[0] && count == BYTES_MIN
            && is_from_one;
        is_valid_pause = is_valid && is_pause && (is_group || is_own);
        is_valid_pfc = is_valid && is_pfc && is_group;
    end

    // The timers: cycles / 8 that are left. What a frame sets waits in `pending` for its turn; the
    // fields of the next frame come later than that.
    logic [2:0]  turn;
    logic [18:0] left [0:7];
    logic [18:0] left_next;
    logic [15:0] quanta;
    logic [7:0]  pending, obeys, turn_bit;
    logic        sets;
    always_comb begin
        obeys = {8{obeys_pause}} | obeys_pfc;
        turn_bit = 8'd1 << turn;
        sets = (pending & turn_bit) != 8'd0;
        quanta = is_pause ? word : {times_high[turn], times_low[turn]};
        left_next = sets ? {quanta, 3'd0} : left[turn] - 19'd1;
    end
    always_ff @(posedge clk) begin
        turn <= turn + 3'd1;
        left[turn] <= left_next;
        pending <= pending & ~turn_bit & obeys;
        if (is_valid_pause) pending <= {8{obeys_pause}};
        if (is_valid_pfc) pending <= word[7:0] & obeys_pfc;
        paused <= (left_next == 19'd0 ? paused & ~turn_bit : paused | (sets ? turn_bit : 8'd0))
            & obeys;
        pause_received <= is_valid_pause && !rst;
        pfc_received <= is_valid_pfc && !rst;
        if (rst || !link_up) {pending, paused} <= 16'd0;
        if (rst) turn <= 3'd0;
    end

`ifdef FORMAL
    // A plain specification for one priority: the bytes of the frame are kept and judged at its
    // end. f_cycle: cycles since the end of the last frame that set the time of the priority, with
    // f_quanta; a pause that is taken away counts as one of long ago.
    localparam logic [22:0] LONG_AGO = '1;
    (* anyconst *) logic [2:0]  f_priority;
    (* anyconst *) logic [47:0] f_own;
    logic f_past = 1'b0;
    logic [8*34-1:0] f_bytes; // byte 0 in the low bits
    logic [5:0]  f_count;
    logic [22:0] f_cycle, f_over;
    logic [23:0] f_next, f_served;
    logic [15:0] f_opcode, f_quanta;
    logic [47:0] f_destination;
    logic f_is_good, f_sets, f_was_pause, f_obeys, f_is_group, f_is_own;
    function automatic logic [7:0] f_byte(input logic [5:0] at);
        f_byte = 8'(f_bytes >> {3'd0, at, 3'd0});
    endfunction
    always_comb begin
        f_opcode = {f_byte(6'd14), f_byte(6'd15)};
        f_destination = {f_byte(6'd0), f_byte(6'd1), f_byte(6'd2), f_byte(6'd3), f_byte(6'd4),
            f_byte(6'd5)};
        f_is_good = mac_control_valid && symbol.is_end && !symbol.data[0] && f_count == 6'd60
            && !f_bytes[48];
        f_obeys = obeys_pause || obeys_pfc[f_priority];
        f_sets = f_is_good && ((f_opcode == 16'h0001 && obeys_pause
                && (f_destination == 48'h0180_c200_0001 || f_destination == own_address))
            || (f_opcode == 16'h0101 && obeys_pfc[f_priority]
                && f_destination == 48'h0180_c200_0001 && f_bytes[8*17 + 32'(f_priority)]));
        f_over = {1'b0, f_quanta, 6'd0};
    end
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (mac_control_valid && symbol.is_end) f_count <= 6'd0;
        else if (mac_control_valid) begin
            for (int unsigned at = 0; at < 34; at++)
                if (6'(at) == f_count) f_bytes[8*at +: 8] <= symbol.data;
            f_count <= f_count + 6'(f_count != 6'd60);
        end
        if (f_cycle != LONG_AGO) f_cycle <= f_cycle + 23'd1;
        if (f_sets) begin
            f_cycle <= 23'd1;
            f_was_pause <= f_opcode == 16'h0001;
            f_quanta <= f_opcode == 16'h0001 ? {f_byte(6'd16), f_byte(6'd17)}
                : {f_byte(6'd18 + {2'd0, f_priority, 1'b0}),
                    f_byte(6'd19 + {2'd0, f_priority, 1'b0})};
        end
        if (rst || !link_up || !f_obeys) begin
            f_cycle <= LONG_AGO;
            f_quanta <= 16'd0;
        end
        if (rst) f_count <= 6'd0;
    end

    // The prefix of the destination that has come.
    always_comb begin
        f_is_group = 1'b1;
        f_is_own = 1'b1;
        for (int unsigned at = 0; at < 6; at++) if (6'(at) < f_count) begin
            f_is_group &= f_bytes[8*at +: 8] == GROUP[8*(5 - at) +: 8];
            f_is_own &= f_bytes[8*at +: 8] == f_own[8*(5 - at) +: 8];
        end
        f_next = {1'b0, f_cycle} + 24'(3'(f_priority - turn)); // of its turn
        f_served = (f_next - 24'd1) >> 3; // turns before that, since the frame
    end
    always_comb begin
        if (!f_past) assume (rst);
        assume (own_address == f_own);
    end
    always_ff @(posedge clk) if (f_past) begin
        // Obeyed from cycle 9 on, at least for the time; over 9 cycles after the time at the latest.
        if (f_cycle >= 23'd9 && f_cycle <= f_over + 23'd1)
            a_obeyed: assert (paused[f_priority]);
        if (f_cycle >= f_over + 23'd10) a_over: assert (!paused[f_priority]);
        if (!$past(rst)) begin
            a_pause_received: assert (pause_received == $past(f_is_good && f_opcode == 16'h0001
                && (f_destination == 48'h0180_c200_0001 || f_destination == own_address)));
            a_pfc_received: assert (pfc_received == $past(f_is_good && f_opcode == 16'h0101
                && f_destination == 48'h0180_c200_0001));
        end
        // What the induction needs: the parser keeps what the specification keeps.
        i_count: assert (count == f_count && count <= 6'd60);
        if (count != 6'd0) i_address: assert (is_group == f_is_group && is_own == f_is_own);
        if (count > 6'd6) i_source: assert (is_from_one == !f_bytes[48]);
        if (count == 6'd15) i_opcode_high: assert (is_pause == (f_byte(6'd14) == 8'd0)
            && is_pfc == (f_byte(6'd14) == 8'd1));
        if (count > 6'd15) i_opcode: assert (is_pause == (f_opcode == 16'h0001)
            && is_pfc == (f_opcode == 16'h0101));
        if (count > 6'd16) i_word_high: assert (word[15:8] == f_byte(6'd16));
        if (count > 6'd17) i_word_low: assert (word[7:0] == f_byte(6'd17));
        if (count > 6'd18 + {2'd0, f_priority, 1'b0})
            i_high: assert (times_high[f_priority] == f_byte(6'd18 + {2'd0, f_priority, 1'b0}));
        if (count > 6'd19 + {2'd0, f_priority, 1'b0})
            i_low: assert (times_low[f_priority] == f_byte(6'd19 + {2'd0, f_priority, 1'b0}));
        // And the timer is that of the specification, in eighths.
        if (f_cycle < 23'd9) i_next_frame: assert (f_cycle != 23'd0 && 23'(count) < f_cycle);
        if (pending[f_priority]) begin
            i_pending: assert (f_next <= 24'd8 && f_obeys_past);
            i_time: assert (f_was_pause == is_pause
                && f_quanta == (is_pause ? word : {times_high[f_priority], times_low[f_priority]}));
        end else if (paused[f_priority]) begin
            i_left: assert (f_cycle != LONG_AGO && f_served != 24'd0
                && f_served <= {5'd0, f_quanta, 3'd0}
                && 24'(left[f_priority]) == {5'd0, f_quanta, 3'd0} - f_served + 24'd1);
        end else begin
            i_ended: assert (f_cycle == LONG_AGO || f_served > {5'd0, f_quanta, 3'd0});
        end
        c_pause: cover (paused == 8'hff);
        c_expires: cover (f_cycle == 23'd74 && f_quanta == 16'd1);
    end
    logic f_obeys_past;
    always_ff @(posedge clk) f_obeys_past <= f_obeys;
`endif
endmodule
