// Rewriter: takes a frame out of the delay line and gives it to its output, changed as its decision
// says (thesis sections 3.1 and 3.3).
//
// HOP and RAW copy the frame through take_hop. STRIP skips the header. PUSH puts the header of a
// route entry in front, or the default header (no forward hop, the ingress port as the only reverse
// hop) for a frame without a route; the entry may hold another destination. In front of a frame for
// the CPU are two bytes: ingress port and reason. A drop swallows the frame; MAC control is
// shown to the flow control meanwhile. Each frame has one fate, told with its end: see frame_fate.
//
// Timing: with a new decision in `decision` and `begins` in cycle t, `announce` is in t and the
// first byte at the output in t + 2, then one byte a cycle: byte k + 2 of a frame comes into the
// window before byte k leaves. STRIP announces one cycle before its first byte, from a register.
// PUSH takes one cycle more, for the block RAM needs a register behind it: its first bytes never
// wait for the line, since twelve bytes of a frame have come when its route is found.

`default_nettype none

module rewrite #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8 // 4, 8 or 16
) (
    input  wire logic            clk,
    input  wire logic            rst,
    input  wire axon::output_t   port,            // of the ingress
    input  wire logic [13:0]     frame_bytes_max, // of an Ethernet frame of hosts
    input  wire logic            decision_valid,
    input  wire axon::decision_t decision,
    input  wire logic [PORTS:0]  begins,          // see decisions
    output logic                 decision_done,
    input  wire logic [2:0]      window_valid,    // of the delay line
    input  wire axon::symbol_t   symbol_0,
    input  wire axon::symbol_t   symbol_1,
    input  wire logic [7:0]      data_2,
    output logic                 advance,
    output logic [1:0]           memory_place,    // of routes
    output logic [4:0]           memory_offset,
    input  wire logic [7:0]      memory_data,
    output logic [PORTS-1:0]     announce,
    output logic                 cpu_announce,
    output logic [2:0]           frame_priority,  // with announce
    output logic [PORTS-1:0]     write,
    output logic                 cpu_write,
    output logic                 mac_control_valid,
    output axon::symbol_t        symbol,          // with write, cpu_write, mac_control_valid
    output logic                 drop_valid,
    output axon::drop_t          drop,
    output logic                 punt_valid,
    output axon::punt_t          punt
);
    typedef enum logic [2:0] {IDLE, SKIP, DESCRIPTOR, FETCH, HEADER, FRAME, SWALLOW} state_t;
    state_t           state;
    logic             is_second; // in DESCRIPTOR: the second byte
    logic [PORTS-1:0] announces; // STRIP: the header has been skipped

    // What the decision asks for.
    logic       is_pushed, to_cpu;
    logic [4:0] pushed_bytes;
    assign is_pushed = decision.operation == axon::PUSH;
    assign to_cpu = decision.to == axon::CPU;

    // The line moves when all that a byte depends on is there.
    logic is_end, is_frame, is_last_skipped;
    always_comb begin
        is_end = symbol_0.is_end;
        is_frame = state == SKIP || state == FRAME || state == SWALLOW;
        advance = is_frame && window_valid[0] && (is_end || (window_valid[1]
            && (HOP_BITS != 16 || symbol_1.is_end || window_valid[2])));
        decision_done = advance && is_end;
    end

    // Announcement.
    logic [PORTS-1:0] outputs;
    always_comb for (int unsigned at = 0; at < PORTS; at++) outputs[at] = decision.to == 4'(at);
    assign {cpu_announce, announce} = begins | {1'b0, announces};
    assign frame_priority = decision.frame_priority;

    // The byte that is emitted.
    logic [7:0] header_data, route_data, hop_data, data;
    logic [2:0] position;
    logic       is_last_pushed;
    pushed_header #(.HOP_BITS(HOP_BITS)) header (
        .clk, .port, .is_miss(to_cpu && decision.punt == axon::PUNT_MISS),
        .header_bytes(decision.header.header_bytes[4:0]), .place(decision.place),
        .asks_first(state == IDLE || (state == DESCRIPTOR && !is_second)),
        .memory_place, .memory_offset, .memory_data, .pushed_bytes, .header_data,
        .is_last(is_last_pushed), .route_data
    );
    take_hop #(.HOP_BITS(HOP_BITS)) take_hop_of_byte (
        .clk, .start(state == IDLE), .advance, .port, .takes_hop(decision.operation == axon::HOP),
        .becomes_error(decision.becomes_error), .forward_count(decision.header.forward_count),
        .reverse_count(decision.header.reverse_count), .data_0(symbol_0.data),
        .data_1(symbol_1.data), .data_2, .data(hop_data), .position
    );
    always_comb case (state)
        DESCRIPTOR: data = is_second ? {5'd0, decision.punt} : {4'd0, port};
        HEADER: data = header_data;
        default: data = is_pushed && decision.rewrites_destination && position < 3'd6
            ? route_data : hop_data;
    endcase

    // Its end.
    logic is_bad, emits;
    frame_fate fate (
        .clk, .rst, .is_idle(state == IDLE), .skips(state == SKIP), .has_header(!is_pushed),
        .header_bytes(decision.header.header_bytes), .advance, .symbol_0, .is_last_skipped,
        .frame_bytes_max, .is_limited(decision.is_limited), .is_dropped(decision.is_drop),
        .decided_drop(decision.drop), .to_cpu, .decided_punt(decision.punt),
        .is_bad, .drop_valid, .drop, .punt_valid, .punt
    );
    assign emits = state == DESCRIPTOR || state == HEADER || (state == FRAME && advance);
    always_ff @(posedge clk) begin
        write <= emits ? outputs : '0;
        cpu_write <= emits && to_cpu;
        mac_control_valid <= state == SWALLOW && advance && decision.drop == axon::DROP_MAC_CONTROL;
        symbol.is_end <= is_frame && is_end;
        symbol.data <= is_frame && is_end ? {7'd0, is_bad} : data;
        if (rst) {write, cpu_write, mac_control_valid} <= '0;
    end

    // The way of a frame.
    state_t first_state; // after the descriptor or the fetch
    assign first_state = is_pushed && pushed_bytes != 5'd0 ? HEADER : FRAME;
    always_ff @(posedge clk) begin
        is_second <= state == DESCRIPTOR;
        announces <= is_last_skipped && !rst ? outputs : '0;
        case (state)
            IDLE: if (decision_valid) state <= decision.is_drop ? SWALLOW
                : decision.operation == axon::STRIP ? SKIP
                : to_cpu ? DESCRIPTOR : is_pushed ? FETCH : FRAME;
            DESCRIPTOR: if (is_second) state <= first_state;
            FETCH: state <= first_state;
            HEADER: if (is_last_pushed) state <= FRAME;
            default: begin // SKIP, FRAME, SWALLOW
                if (is_last_skipped) state <= FRAME;
                if (decision_done) state <= IDLE;
            end
        endcase
        if (rst) state <= IDLE;
    end

`ifdef FORMAL
    // One frame of at most FRAME_BYTES, one decision and one route entry, all arbitrary, again and
    // again; the byte at one arbitrary position of what comes out is compared with a specification.
`ifdef FORMAL_HOP
    localparam int unsigned FRAME_BYTES = HOP_BITS == 16 ? 11 : 9;
`elsif FORMAL_PUSH
    localparam int unsigned FRAME_BYTES = 15;
`else
    localparam int unsigned FRAME_BYTES = 21;
`endif
    localparam int unsigned FIRST_BIT = HOP_BITS == 4 ? 44 : 48;
    (* anyconst *) logic [8*FRAME_BYTES-1:0] f_frame; // byte 0 in the low bits
    (* anyconst *) logic [4:0]               f_length;
    (* anyconst *) logic                     f_is_bad;
    (* anyconst *) axon::decision_t          f_decision;
    (* anyconst *) logic [8*32-1:0]          f_entry;
    (* anyconst *) logic [5:0]               f_position;
    (* anyconst *) axon::output_t            f_port;
    (* anyconst *) logic [13:0]              f_limit;
    (* anyconst *) logic [4:0]               f_early; // symbols in the line when it is decided
    (* anyseq *) logic                       f_comes;

    function automatic logic [7:0] frame_byte(input logic [5:0] at);
        frame_byte = at < FRAME_BYTES ? f_frame[8*at +: 8] : 8'd0;
    endfunction
    function automatic logic [HOP_BITS-1:0] hop_of(input logic [11:0] index);
        if (HOP_BITS == 4) hop_of = HOP_BITS'(index[0]
            ? frame_byte(6'd5 + 6'((index + 1) >> 1)) >> 4 : frame_byte(6'd5 + 6'(index >> 1)));
        else if (HOP_BITS == 8) hop_of = HOP_BITS'(frame_byte(6'd6 + 6'(index)));
        else hop_of = HOP_BITS'({
            frame_byte(6'd6 + 6'(index << 1)), frame_byte(6'd7 + 6'(index << 1))
        });
    endfunction

    // Fields of the frame's header, and hop number `index` after the step.
    logic [11:0] f_forward, f_reverse;
    assign f_forward = {f_frame[19:16], f_frame[31:24]};
    assign f_reverse = {f_frame[39:32], f_frame[47:44]};
    function automatic logic [HOP_BITS-1:0] moved_hop(input logic [11:0] index);
        if (index + 1 < f_forward) moved_hop = hop_of(index + 1);
        else if (index + 1 == f_forward)
            moved_hop = f_port == axon::CPU ? '1 : HOP_BITS'(f_port);
        else moved_hop = hop_of(index);
    endfunction
    function automatic logic [7:0] moved_byte(input logic [5:0] at);
        logic [15:0] hop;
        hop = 16'd0;
        if (HOP_BITS == 4)
            moved_byte = {4'(moved_hop(12'(2 * at - 11))), 4'(moved_hop(12'(2 * at - 10)))};
        else if (HOP_BITS == 8) moved_byte = 8'(moved_hop(12'(at - 6)));
        else begin
            hop = 16'(moved_hop(12'((at - 6) >> 1)));
            moved_byte = at[0] ? hop[7:0] : hop[15:8];
        end
    endfunction
    function automatic logic [7:0] hopped_byte(input logic [5:0] at);
        logic [11:0] forward_after, reverse_after;
        forward_after = f_forward - 1;
        reverse_after = f_reverse + 1;
        hopped_byte = frame_byte(at);
        if (f_decision.operation == axon::HOP) begin
            if (at == 2) hopped_byte[3:0] = forward_after[11:8];
            if (at == 3) hopped_byte = forward_after[7:0];
            if (at == 4) hopped_byte = reverse_after[11:4];
            if (at == 5) hopped_byte[7:4] = reverse_after[3:0];
            if (at == 5 && HOP_BITS == 4) hopped_byte[3:0] = 4'(moved_hop(12'(at - 5)));
            if (at >= 6 && at < f_decision.header.header_bytes) hopped_byte = moved_byte(at);
        end
        if (f_decision.becomes_error && at == 0) hopped_byte[7:4] = axon::TYPE_ERROR;
    endfunction

    // The default header, as a number: length 6 to 8, no forward hop, one reverse hop.
    logic [63:0] f_default;
    assign f_default = HOP_BITS == 4 ? {48'h1000_6000_0010 | 48'(f_port), 16'd0}
        : HOP_BITS == 8 ? {48'h1000_7000_0010, 4'd0, f_port, 8'd0}
        : {48'h1000_8000_0010, 12'd0, f_port};

    logic       f_is_miss, f_to_cpu, f_is_push;
    logic [5:0] f_pushed, f_header, f_prefix, f_total;
    logic [7:0] f_expected;
    always_comb begin
        f_to_cpu = f_decision.to == axon::CPU;
        f_is_push = f_decision.operation == axon::PUSH;
        f_is_miss = f_to_cpu && f_decision.punt == axon::PUNT_MISS;
        f_header = f_decision.header.header_bytes[5:0];
        f_pushed = !f_is_push ? 6'd0 : f_is_miss
            ? (HOP_BITS == 4 ? 6'd6 : HOP_BITS == 8 ? 6'd7 : 6'd8) : f_header;
        f_prefix = f_pushed + (f_to_cpu ? 6'd2 : 6'd0);
        f_total = f_prefix + 6'(f_length)
            - (f_decision.operation == axon::STRIP ? f_header : 6'd0);
        f_expected = 8'd0;
        if (f_to_cpu && f_position == 0) f_expected = {4'd0, f_port};
        else if (f_to_cpu && f_position == 1) f_expected = {5'd0, f_decision.punt};
        else if (f_position < f_prefix) begin
            f_expected = f_is_miss ? f_default[8*(7 - (f_position - 6'd2)) +: 8]
                : f_entry[8*(f_position - (f_prefix - f_pushed)) +: 8];
        end else if (f_is_push && f_decision.rewrites_destination && f_position - f_prefix < 6)
            f_expected = f_entry[8*(24 + f_position - f_prefix) +: 8];
        else if (f_decision.operation == axon::STRIP)
            f_expected = frame_byte(f_position + f_header);
        else f_expected = hopped_byte(f_position - f_prefix);
    end

    // Is the frame too short for its headers, or too long?
    logic       f_is_short, f_is_long;
    logic [15:0] f_type;
    logic [5:0] f_ethernet; // where the Ethernet frame begins
    logic [5:0] f_extra;
    always_comb begin
        f_ethernet = f_decision.operation == axon::STRIP ? f_header : 6'd0;
        f_is_short = f_is_push ? f_length < 14
            : f_decision.operation == axon::STRIP ? f_length < f_header + 14 : f_length < f_header;
        f_extra = 0;
        f_type = {frame_byte(f_ethernet + 12), frame_byte(f_ethernet + 13)};
        if (f_length >= f_ethernet + 14 && (f_type == 16'h8100 || f_type == 16'h88a8)) f_extra = 4;
        if (f_length >= f_ethernet + 14 + f_extra && {frame_byte(f_ethernet + 12 + f_extra),
            frame_byte(f_ethernet + 13 + f_extra)} == 16'h22e9)
            f_extra = f_extra + 4;
        f_is_long = f_decision.is_limited && f_length >= f_ethernet
            && 20'(f_length - f_ethernet) > 20'(f_limit) + f_extra;
    end

    // The frame arrives.
    logic [5:0] f_at, f_arrived, f_written;
    logic       f_was_done;
    always_ff @(posedge clk) begin
        // A frame comes without a pause.
        if ((f_comes || f_arrived != 0) && f_arrived <= 6'(f_length)) f_arrived <= f_arrived + 1;
        if (advance) f_at <= f_at + 1;
        if (decision_done) begin
            f_at <= 0;
            f_arrived <= 6'(f_early);
        end
        f_was_done <= decision_done && !rst;
        if (rst) begin
            f_at <= 0;
            f_arrived <= 6'(f_early);
        end
    end
    function automatic axon::symbol_t symbol_at(input logic [5:0] at);
        symbol_at = at == 6'(f_length) ? {1'b1, 2'b00, axon::DROP_BAD_FCS, f_is_bad}
            : {1'b0, frame_byte(at)};
    endfunction
    logic [PORTS:0] f_begins;
    initial assume (rst);
    logic [4:0] f_offset;
    always_ff @(posedge clk) f_offset <= memory_offset;
    always_comb begin
        assume (f_length <= FRAME_BYTES);
        assume (port == f_port && frame_bytes_max == f_limit);
        assume (decision == f_decision);
        assume (decision_valid);
        f_begins = '0;
        if (state == IDLE && !f_decision.is_drop && f_decision.operation != axon::STRIP)
            f_begins = {f_to_cpu, f_to_cpu ? PORTS'(0) : PORTS'(1) << f_decision.to};
        assume (begins == f_begins);
        assume (f_early <= f_length + 1);
        assume (f_limit >= 18);
`ifdef FORMAL_HOP
        assume (f_decision.operation == axon::HOP || f_decision.operation == axon::RAW);
`elsif FORMAL_STRIP
        assume (f_decision.operation == axon::STRIP && f_header <= 7);
`elsif FORMAL_PUSH
        assume (f_is_push && f_header <= 7);
`endif
        assume (window_valid[0] == (f_at < f_arrived));
        assume (window_valid[1] == (f_at + 1 < f_arrived));
        assume (window_valid[2] == (f_at + 2 < f_arrived));
        assume (symbol_0 == symbol_at(f_at));
        assume (symbol_1 == symbol_at(f_at + 1));
        assume (data_2 == frame_byte(f_at + 2));
        assume (memory_data == f_entry[8*f_offset +: 8]);
        // Decisions as they are made. A frame with a route has ten bytes in the line by then.
        if (f_is_push) assume (f_early >= (f_length < 10 ? f_length + 1 : 10));
        if (f_is_push) assume (f_decision.header.header_bytes == 0
            || (f_decision.header.header_bytes >= 6 && f_decision.header.header_bytes <= 24));
        assume (!f_is_push || !f_decision.becomes_error);
        assume (f_decision.operation != axon::STRIP || (!f_to_cpu && !f_decision.becomes_error));
        // A header of one byte is malformed, whatever the length of the frame.
        assume (f_decision.header.header_bytes < 40 && f_decision.header.header_bytes != 1);
        assume (f_decision.to < PORTS || f_to_cpu);
        if (f_decision.operation == axon::HOP) begin
            assume (f_decision.header.forward_count == f_forward && f_forward != 0);
            assume (f_decision.header.reverse_count == f_reverse && f_reverse != 4095);
            assume (f_decision.header.header_bytes
                == (FIRST_BIT + HOP_BITS * (f_forward + f_reverse) + 7) / 8);
        end
        if (f_decision.operation == axon::STRIP) assume (f_decision.header.header_bytes >= 6);
    end

    // What comes out.
    logic f_writes, f_announced, f_seen;
    logic f_leaves; // the frame gets an output
    assign f_writes = write != '0 || cpu_write;
    assign f_leaves = !f_decision.is_drop
        && !(f_decision.operation == axon::STRIP && f_length < f_header);
    always_ff @(posedge clk) begin
        if (f_writes) f_written <= symbol.is_end ? 0 : f_written + 1;
        if (announce != '0 || cpu_announce) f_announced <= 1'b1;
        if (f_was_done) f_announced <= announce != '0 || cpu_announce;
        if (rst) begin
            f_written <= 0;
            f_announced <= 1'b0;
        end
    end
    always_ff @(posedge clk) if (!rst) begin
        a_same_output: assert (!f_writes || {cpu_write, write}
            == {f_to_cpu, f_to_cpu ? PORTS'(0) : PORTS'(1) << f_decision.to});
        if (f_writes) a_announced: assert (f_announced);
        if (f_writes) a_leaves: assert (f_leaves);
        if (f_writes && !symbol.is_end && f_position == f_written && !f_is_short)
            a_byte: assert (symbol.data == f_expected);
        if (f_writes && symbol.is_end) begin
            a_end_once: assert (f_was_done);
            a_bad: assert (symbol.data == {7'd0, f_is_bad || f_is_short || f_is_long});
            if (!f_is_short) a_count: assert (f_written == f_total);
        end
        if (f_was_done) begin
            a_end: assert ((f_writes && symbol.is_end) == f_leaves);
            a_drop: assert (drop_valid
                == (f_decision.is_drop || f_is_bad || f_is_short || f_is_long));
            a_punt: assert (punt_valid == (f_leaves && f_to_cpu && !drop_valid));
        end else begin
            a_silent: assert (!drop_valid && !punt_valid);
        end
        c_strip: cover (f_was_done && f_decision.operation == axon::STRIP && !drop_valid);
        c_hop: cover (f_was_done && f_decision.operation == axon::HOP && !drop_valid);
        c_push: cover (f_was_done && f_is_push && !drop_valid && f_decision.rewrites_destination
            && !f_is_miss);
        c_second: cover (f_was_done && f_seen && !drop_valid);
    end
    always_ff @(posedge clk) f_seen <= !rst && (f_seen || f_was_done);
`endif
endmodule
