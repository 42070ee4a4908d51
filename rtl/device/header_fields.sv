// Fixed part of the Axon header (thesis section 3.1, figure 3.1), gathered while it arrives.
//
// The length must agree with the hop counts: header_bytes = 6 + hops with hops of 8 bits,
// 6 + 2 * hops with 16 bits, 6 + hops / 2 (rounded down) with 4 bits, of which the first hop is in
// byte 5. So the number of reverse hops that the length leaves room for is computed when the
// forward count is complete, and compared with the reverse count when that arrives.
//
// Whether the frame is as long as its header is not known yet; the rewriter sees that at the end.
//
// Timing: byte k is in `head` in cycle t0 + k. Hops of 8 and 16 bits: all is registered by
// t0 + 6, `hop_valid` in t0 + 6 or t0 + 7. Hops of 4 bits: `hop_valid` in t0 + 5, and the reverse
// count, `is_valid` and the hop depend on `head_data` in that cycle. A packet without a hop is
// decided on in the same cycle as one with a hop.

`default_nettype none

module header_fields #(
    parameter int unsigned HOP_BITS = 8 // 4, 8 or 16
) (
    input  wire logic            clk,
    input  wire logic            head_valid,
    input  wire logic [7:0]      head_data,
    input  wire logic [3:0]      head_index, // of the byte in head_data; stays at 15
    output axon::header_fields_t header,
    output logic                 is_axon,    // after byte 0: the type is not 0
    output logic                 is_valid,   // with hop_valid: type and length are correct
    output logic                 hop_valid,
    output logic [HOP_BITS-1:0]  hop         // with hop_valid: the first hop, if there is one
);
    localparam logic [3:0] HOP_INDEX = HOP_BITS == 4 ? 4'd5 : HOP_BITS == 8 ? 4'd6 : 4'd7;

    logic [3:0]  packet_type;
    logic        is_type;           // one of the five
    logic [15:0] header_bytes;
    logic [11:0] forward_count;
    logic [7:0]  reverse_high;
    logic [3:0]  reverse_low;
    logic [2:0]  frame_priority;

    always_ff @(posedge clk) if (head_valid) case (head_index)
        4'd0: begin
            packet_type <= head_data[7:4];
            is_axon <= head_data[7:4] != 4'd0;
            is_type <= head_data[7:4] >= axon::TYPE_ETHERNET
                && head_data[7:4] <= axon::TYPE_CONGESTION;
            header_bytes[15:12] <= head_data[3:0];
        end
        4'd1: header_bytes[11:4] <= head_data;
        4'd2: begin
            header_bytes[3:0] <= head_data[7:4];
            forward_count[11:8] <= head_data[3:0];
        end
        4'd3: forward_count[7:0] <= head_data;
        4'd4: reverse_high <= head_data;
        4'd5: begin
            reverse_low <= head_data[7:4];
            frame_priority <= HOP_BITS == 4 ? 3'd0 : head_data[3:1];
        end
        default: ;
    endcase

    // Reverse hops that the length leaves room for. With 4 bits, the place for the last one may
    // be padding. Negative numbers and those above 4095 equal no count.
    logic signed [17:0] hop_bytes, room, room_padded;
    always_ff @(posedge clk) begin
        if (head_valid && head_index == 4'd3) hop_bytes <= 18'(header_bytes) - 18'd6;
        if (head_valid && head_index == 4'd4) begin
            room <= (HOP_BITS == 4 ? 18'({hop_bytes[16:0], 1'b1})
                : HOP_BITS == 8 ? hop_bytes : hop_bytes >>> 1) - 18'(forward_count);
            room_padded <= 18'({hop_bytes[16:0], 1'b0}) - 18'(forward_count);
        end
    end

    function automatic logic equals(input logic [17:0] place, input logic [11:0] count);
        equals = place == {6'd0, count};
    endfunction

    logic is_agreed, was_agreed;
    always_comb begin
        is_agreed = is_type && equals(room, {reverse_high, head_data[7:4]})
            && !(HOP_BITS == 16 && hop_bytes[0]);
        if (HOP_BITS == 4)
            is_agreed = is_type && (equals(room, {reverse_high, head_data[7:4]})
                || equals(room_padded, {reverse_high, head_data[7:4]}));
    end
    always_ff @(posedge clk) if (head_valid && head_index == 4'd5) was_agreed <= is_agreed;

    logic [7:0] previous;
    always_ff @(posedge clk) if (head_valid) previous <= head_data;

    always_comb begin
        hop_valid = head_valid && head_index == HOP_INDEX;
        hop = HOP_BITS'({previous, head_data});
        is_valid = HOP_BITS == 4 ? is_agreed : was_agreed;
        header.packet_type = axon::packet_type_t'(packet_type);
        header.frame_priority = HOP_BITS == 4 ? 3'd0 : frame_priority;
        header.header_bytes = header_bytes;
        header.forward_count = forward_count;
        header.reverse_count = {reverse_high, HOP_BITS == 4 ? head_data[7:4] : reverse_low};
    end
endmodule
