// Ingress of a 10G port whose peer is an Axon: takes a hop or strips the header, and gives the
// frame to the buffers of its output (thesis sections 3.1 and 3.3). FCS by difference: see
// crc_difference.
//
// A frame that comes in at a port of another kind is dropped; so is one for the control plane
// (punt_valid): this device has no port to a CPU. A frame ends bad if it ends without TERMINATE,
// is longer than the limit, has less than 64 bytes with its FCS (what is left, if it is
// stripped), or is shorter than its header. A wrong FCS is not looked for: it stays wrong.
//
// Timing: a word is in `head` in cycle t. In t + 1 the first one is decided on, and each is
// rewritten; t + 2: `announce` for the first, the correction of the FCS is computed; t + 3: it
// is xored in, and the word is given to the buffers with `write`, one word in each cycle. STRIP:
// announced so that the first word of the rest follows in the next cycle too.

`default_nettype none

module ingress_10g #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8, // 8 or 16
    parameter int unsigned PORT = 0
) (
    input  wire logic                  clk,
    input  wire logic                  rst,
    input  wire logic                  head_valid, // of xgmii_rx; fewer than 8 bytes: it ends
    input  wire logic                  head_first,
    input  wire logic [63:0]           head_data,
    input  wire logic [3:0]            head_bytes,
    input  wire logic                  head_bad,
    input  wire logic [PORTS-1:0][1:0] kinds,      // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]      ups,        // carrier
    input  wire logic [15:0]           route_bytes_max,
    output logic [PORTS-1:0]           announce,
    output logic [PORTS-1:0]           write,
    output axon_10g::word_t            word,       // with write
    output logic                       drop_valid, // one cycle: a frame was dropped
    output axon::drop_t                drop,
    output logic                       punt_valid, // one cycle: it was for the control plane
    output axon::punt_t                punt
);
    // The word that is decided on and rewritten. With zero bytes in the next one it is the last.
    logic        valid, is_first, is_bad_end, is_valid, is_last;
    logic [63:0] data;
    logic [3:0]  bytes, words; // words before it, 8 at most
    logic [13:0] hops_left;
    logic signed [16:0] header_left;
    axon::header_fields_t header, head_header;
    logic [HOP_BITS-1:0]  hop, head_hop;
    logic                 is_head_valid;

    header_word #(.HOP_BITS(HOP_BITS)) header_of_head (
        .data(head_data), .header(head_header), .is_valid(is_head_valid), .hop(head_hop)
    );
    always_ff @(posedge clk) begin
        valid <= head_valid && head_bytes != 4'd0 && !rst;
        is_first <= head_first;
        data <= head_data;
        bytes <= head_bytes;
        is_bad_end <= head_bad;
        if (head_first) begin
            words <= 4'd0;
            is_valid <= is_head_valid && head_bytes == 4'd8;
            header <= head_header;
            hop <= head_hop;
            hops_left <= 14'd6 + 14'(HOP_BITS / 8) * 14'(head_header.forward_count);
            header_left <= $signed({1'b0, head_header.header_bytes});
        end else begin
            words <= words[3] ? words : words + 4'd1;
            hops_left <= hops_left[13:3] == 11'd0 ? 14'd0 : hops_left - 14'd8;
            header_left <= header_left - 17'sd8;
        end
    end

    // The verdict, made with the first word and kept for the others.
    // The header in it is known here; entries and limits are for hosts' frames.
    /* verilator lint_off UNUSEDSIGNAL */
    axon::decision_t decision;
    /* verilator lint_on UNUSEDSIGNAL */
    logic [PORTS-1:0] outputs, outputs_q; // one at most
    logic strips, strips_q, is_axon, is_to_cpu;
    /* verilator lint_off PINCONNECTEMPTY */ // begins: a stripped frame begins here too
    forward #(.PORTS(PORTS), .HOP_BITS(HOP_BITS)) forward_packet (
        .header, .is_valid, .hop, .kinds, .ups, .route_bytes_max, .decision, .begins()
    );
    /* verilator lint_on PINCONNECTEMPTY */
    always_comb begin
        is_axon = kinds[PORT] == axon::PORT_AXON;
        is_to_cpu = !decision.is_drop && decision.to == axon::CPU;
        outputs = '0;
        for (int unsigned at = 0; at < PORTS; at++) outputs[at] = is_first ? is_axon
            && !decision.is_drop && decision.to == 4'(at) && ups[at] : outputs_q[at];
        strips = is_first ? decision.operation == axon::STRIP : strips_q;
    end

    logic is_bad, begins_fcs, begins_rest;
    logic [2:0] fcs_lane;
    frame_end frame_end_of_word (
        .bytes, .is_bad_end, .words, .header_left, .strips, .next_valid(head_valid && !head_first),
        .next_bytes(head_bytes), .next_bad(head_bad), .is_last, .is_bad, .begins_fcs, .fcs_lane,
        .begins_rest
    );

    logic [63:0] new_data, difference;
    logic [31:0] correction;
    take_hop_word #(.HOP_BITS(HOP_BITS)) take_hop (
        .port(4'(PORT)), .is_first, .strips, .forward_count(header.forward_count),
        .reverse_count(header.reverse_count), .hops_left, .header_left, .data,
        .next_data(head_data[15:0]), .new_data, .difference
    );
    crc_difference fcs_difference (
        .clk, .rst, .valid, .is_last, .difference, .has_fcs(begins_fcs), .fcs_lane, .correction
    );

    // The rest of the way.
    axon_10g::word_t word_1;
    logic valid_1, begins_1, begins_rest_1, word_valid;
    logic [2:0] lane_1, shift;
    logic [PORTS-1:0] outputs_2;
    always_ff @(posedge clk) begin
        if (is_first) begin
            outputs_q <= outputs;
            strips_q <= strips;
            shift <= header.header_bytes[2:0];
        end
        announce <= valid && !rst && (strips ? begins_rest : is_first) ? outputs : '0;
        begins_rest_1 <= valid && begins_rest;
        valid_1 <= valid && !rst;
        word_1 <= {is_bad && is_last, is_last, bytes[2:0], new_data};
        begins_1 <= begins_fcs;
        lane_1 <= fcs_lane;
        outputs_2 <= outputs_q;
    end
    finish_10g finish (
        .clk, .rst, .valid(valid_1), .word_in(word_1), .strips(strips_q),
        .begins_rest(begins_rest_1), .shift, .begins_fcs(begins_1), .fcs_lane(lane_1),
        .correction, .word_valid, .word
    );
    assign write = word_valid ? outputs_2 : '0;

    logic lacks_rest;
    assign lacks_rest = is_last && !is_first && strips_q && outputs_q != '0
        && header_left >= 17'sd0;
    fate_10g fate (
        .clk, .rst, .is_verdict(valid && is_first), .is_axon, .is_drop(decision.is_drop),
        .decided(decision.drop), .is_to_cpu, .has_output(outputs_q != '0),
        .reason(decision.punt), .lacks_rest(valid && lacks_rest), .drop_valid, .drop,
        .punt_valid, .punt
    );
endmodule
