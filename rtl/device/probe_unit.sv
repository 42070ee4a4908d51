// Probe unit (thesis 000 section 3.2.2): appends a record to each probe that asks for one, as
// crates/plane/src/probe.rs. Each port has one behind its receiver and one before its transmitter.
//
// A probe is an Axon packet of that type, or an Ethernet frame of type 0x88B6. Its head follows the
// header: version, options, 14 bytes more. No byte before the tail changes, so a probe may have
// begun to leave: the record takes the place of its end, and the end follows. A frame that is bad,
// is shorter than its head, or has no room for a record passes as it is.
//
//     record: unit, 0, port (2 bytes), queued bytes (4 bytes), time (8 bytes)
//
// Timing: combinational while a frame passes. The record begins in the cycle of the end of the
// frame, and the end comes in the 16th cycle after it. No symbol may come meanwhile: `cuts`, four
// cycles before one, cuts the record off if it does not end before, and the frame ends bad.

`default_nettype none

module probe_unit #(
    parameter logic IS_EGRESS = 1'b0
) (
    input  wire logic          clk,
    input  wire logic          rst,
    input  wire axon::output_t port,
    input  wire logic [63:0]   time_now,
    input  wire logic          stamps,      // the record shows the time of this cycle
    input  wire logic [13:0]   bytes_max,   // longest frame, with its record
    input  wire logic [15:0]   queued,      // bytes, taken five cycles after the end
    input  wire logic          is_axon,     // with byte 0: an Axon packet, not an Ethernet frame
    input  wire logic          is_served,   // with the end: an Ethernet frame that gets records
    input  wire logic          cuts,
    input  wire logic          valid,
    input  wire axon::symbol_t symbol,
    output logic               out_valid,
    output axon::symbol_t      out_symbol
);
    localparam logic [7:0]  VERSION = 8'd1;
    localparam logic [13:0] ETHERNET_BYTES = 14'd14, RECORD_BYTES = 14'd16;

    // The head, read as it passes.
    logic [13:0] index, head_at, room; // of this byte; of the head; for a frame without its record
    logic [4:0]  head_bytes;           // of the head so far, up to 16
    logic [2:0]  options;              // ingress, egress, queued bytes
    logic        is_packet, is_probe, is_known, is_version, has_room, begins_head;
    assign begins_head = is_known && index == head_at && head_bytes == 5'd0;
    always_ff @(posedge clk) begin
        room <= bytes_max - RECORD_BYTES;
        if (valid) begin
            index <= symbol.is_end ? 14'd0 : index + 14'd1;
            has_room <= index < room;
            is_known <= index >= 14'd5 && !symbol.is_end;
            if (begins_head) is_version <= symbol.data == VERSION;
            if (begins_head || (head_bytes != 5'd0 && !head_bytes[4]))
                head_bytes <= head_bytes + 5'd1;
            if (head_bytes == 5'd1) options <= is_version ? symbol.data[2:0] : 3'd0;
            case (index)
                14'd0: begin
                    is_packet <= is_axon;
                    is_probe <= !is_axon || symbol.data[7:2] == {axon::TYPE_PROBE, 2'd0};
                    head_at <= is_axon ? {symbol.data[1:0], 12'd0} : ETHERNET_BYTES;
                    head_bytes <= 5'd0;
                end
                14'd1: if (is_packet) head_at[11:4] <= symbol.data;
                14'd2: if (is_packet) head_at[3:0] <= symbol.data[7:4];
                14'd12: if (!is_packet) is_probe <= symbol.data == 8'h88;
                14'd13: if (!is_packet) is_probe <= is_probe && symbol.data == 8'hb6;
                default: ;
            endcase
        end
        if (rst) {index, is_known} <= '0;
    end

    // The record: byte `record_at` is in `record_data`; 16 is the end of the frame, 0 is no record.
    logic        asks, begins, is_cut;
    logic [4:0]  record_at;
    logic [7:0]  record_data, queued_low;
    logic [63:0] stamped;
    always_comb begin
        asks = is_probe && head_bytes[4] && has_room && options[IS_EGRESS ? 1 : 0]
            && (is_packet || is_served);
        begins = valid && symbol.is_end && !symbol.data[0] && asks;
        out_valid = valid || record_at != 5'd0;
        out_symbol = symbol;
        if (begins) out_symbol = {1'b0, 6'd0, IS_EGRESS, !IS_EGRESS}; // number of the unit
        if (record_at != 5'd0) out_symbol = {1'b0, record_data};
        if (record_at[4]) out_symbol = {1'b1, 8'd0};
        if (is_cut) out_symbol = {1'b1, 2'b00, axon::DROP_QUEUE_FULL, 1'b1};
    end
    always_ff @(posedge clk) begin
        if (begins) record_at <= 5'd1;
        else if (is_cut || record_at[4]) record_at <= 5'd0;
        else if (record_at != 5'd0) record_at <= record_at + 5'd1;
        is_cut <= cuts && record_at != 5'd0 && record_at < 5'd13 && !is_cut && !rst;
        record_data <= 8'd0;
        if (record_at == 5'd2) record_data <= {4'd0, port};
        if (IS_EGRESS && options[2] && record_at == 5'd5) {record_data, queued_low} <= queued;
        if (IS_EGRESS && options[2] && record_at == 5'd6) record_data <= queued_low;
        if (record_at >= 5'd7) begin
            record_data <= stamped[63:56];
            stamped <= stamped << 8;
        end
        if (stamps) stamped <= time_now;
        if (rst) record_at <= 5'd0;
    end

`ifdef FORMAL
    // One frame of at most FRAME_BYTES, arbitrary, again and again; the symbol at one arbitrary
    // position of what comes out is compared with a specification.
`ifdef FORMAL_ETHERNET
    localparam int unsigned FRAME_BYTES = 31;
`else
    localparam int unsigned FRAME_BYTES = 24;
`endif
    (* anyconst *) logic [8*FRAME_BYTES-1:0] f_frame; // byte 0 in the low bits
    (* anyconst *) logic [5:0]               f_length;
    (* anyconst *) logic                     f_is_bad, f_is_axon, f_is_served;
    (* anyconst *) logic [13:0]              f_bytes_max;
    (* anyconst *) logic [5:0]               f_position;
    (* anyconst *) logic [63:0]              f_time;
    (* anyconst *) axon::output_t            f_port;
    (* anyconst *) logic [15:0]              f_queued;
    (* anyseq *) logic                       f_comes;
    function automatic logic [7:0] frame_byte(input logic [15:0] at);
        frame_byte = at < FRAME_BYTES ? f_frame[8*at[4:0] +: 8] : 8'd0;
    endfunction

    logic [15:0] f_head;
    logic        f_asks;
    logic [7:0]  f_options;
    logic [127:0] f_record;
    always_comb begin
        f_head = f_is_axon ? {f_frame[3:0], f_frame[15:8], f_frame[23:20]} : 16'd14;
        f_options = frame_byte(f_head + 16'd1);
        f_asks = !f_is_bad && f_head < 16'd32 && 16'(f_length) >= f_head + 16'd16
            && frame_byte(f_head) == 8'd1 && f_options[IS_EGRESS ? 1 : 0]
            && 14'(f_length) + 14'd16 <= f_bytes_max
            && (f_is_axon ? f_frame[7:4] == 4'd3
                : f_is_served && frame_byte(16'd12) == 8'h88 && frame_byte(16'd13) == 8'hb6);
        f_record = {7'd0, IS_EGRESS, 8'd0, 12'd0, port, 16'd0,
            IS_EGRESS && f_options[2] ? f_queued : 16'd0, f_time};
        f_record[127:120] = IS_EGRESS ? 8'd2 : 8'd1;
    end

    logic [5:0] f_at, f_out;  // symbols of this frame that have come, and that have come out
    logic       f_within, f_busy;
    logic [2:0] f_cut_age;    // cycles since `cuts`, up to 7
    logic       f_was_cut;
    initial assume (rst);
    always_ff @(posedge clk) begin
        if (valid) f_at <= symbol.is_end ? 6'd0 : f_at + 6'd1;
        if (out_valid) f_out <= out_symbol.is_end ? 6'd0 : f_out + 6'd1;
        f_cut_age <= cuts ? 3'd1 : f_cut_age + 3'(f_cut_age != 3'd7);
        f_was_cut <= !rst && (is_cut || (f_was_cut && !(out_valid && out_symbol.is_end)));
        if (rst) begin
            {f_at, f_out} <= '0;
            f_cut_age <= 3'd7;
        end
    end
    always_comb begin
        f_within = f_at != 6'd0;
        f_busy = record_at != 5'd0;
        assume (f_length != 0 && f_length <= FRAME_BYTES);
`ifdef FORMAL_ETHERNET
        assume (!f_is_axon);
`else
        assume (f_is_axon);
`endif
        assume (f_bytes_max >= 14'd16 && bytes_max == f_bytes_max);
        assume (!f_is_axon || f_frame[7:4] != 4'd3 || f_head >= 16'd6);
        assume (is_axon == f_is_axon && is_served == f_is_served && time_now == f_time
            && queued == f_queued && port == f_port);
        assume (symbol == (f_at == f_length ? {1'b1, 7'd0, f_is_bad}
            : {1'b0, frame_byte(16'(f_at))}));
        // A frame comes without a pause; behind a record, or three cycles after `cuts`.
        assume (valid == (!rst && (f_within || (f_comes && (!f_busy || f_cut_age == 3'd4)))));
        assume (!cuts || (!f_within && !(f_cut_age < 3'd4)));
        assume (f_within || f_cut_age >= 3'd4 || !valid);
        assume (stamps == (valid && f_at == 6'd0));
    end
    always_ff @(posedge clk) if (!rst) begin
        a_valid: assert (!valid || !f_busy);
        if (out_valid && !is_cut) begin
            a_end: assert (out_symbol.is_end
                == (f_out == f_length + (f_asks ? 6'd16 : 6'd0)));
            if (f_out == f_position && !out_symbol.is_end)
                a_byte: assert (out_symbol.data == (f_out < f_length ? frame_byte(16'(f_out))
                    : f_record[8*(15 - 4'(f_out - f_length)) +: 8]));
            if (out_symbol.is_end) a_bad: assert (out_symbol.data[0] == f_is_bad);
        end
        if (is_cut) a_cut: assert (out_valid && out_symbol.is_end && out_symbol.data[0]);
        c_record: cover (out_valid && out_symbol.is_end && f_asks && !is_cut);
        c_cut: cover (is_cut);
    end
`endif
endmodule
