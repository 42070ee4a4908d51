// Fixed part of the Axon header and its first hop (thesis section 3.1, figure 3.1): all of it is
// in the first word of a frame, with hops of 8 or 16 bits.
//
// The length must agree with the hop counts: header_bytes = 6 + hops * bytes of a hop. Whether
// the frame is as long as its header is seen at its end.
//
// Timing: combinational.

`default_nettype none

module header_word #(
    parameter int unsigned HOP_BITS = 8 // 8 or 16
) (
    input  wire logic [63:0]     data,
    output axon::header_fields_t header,
    output logic                 is_valid,
    output logic [HOP_BITS-1:0]  hop
);
    localparam int unsigned HOP_BYTES = HOP_BITS / 8;

    logic [7:0][7:0] bytes;
    logic            is_type;
    assign bytes = data;
    always_comb begin
        header.packet_type = axon::packet_type_t'(bytes[0][7:4]);
        header.header_bytes = {bytes[0][3:0], bytes[1], bytes[2][7:4]};
        header.forward_count = {bytes[2][3:0], bytes[3]};
        header.reverse_count = {bytes[4], bytes[5][7:4]};
        header.frame_priority = bytes[5][3:1];
        hop = HOP_BITS'(HOP_BYTES == 1 ? {8'd0, bytes[6]} : {bytes[6], bytes[7]});
        is_type = bytes[0][7:4] >= axon::TYPE_ETHERNET && bytes[0][7:4] <= axon::TYPE_CONGESTION;
        is_valid = is_type && header.header_bytes == 16'd6
            + 16'(HOP_BYTES) * (16'(header.forward_count) + 16'(header.reverse_count));
    end
endmodule
