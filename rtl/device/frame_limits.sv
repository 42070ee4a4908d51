// Limit on the length of an Ethernet frame, as `fault` in crates/plane/src/axon/ethernet.rs:
// frame_bytes_max bytes without FCS, and four more each for a VLAN tag (IEEE 802.1Q) and a CN-TAG
// behind it.
//
// Timing: `is_long` holds for the bytes of the cycles before; the four bytes of a tag count from two
// cycles after its EtherType, so frame_bytes_max is at least 18.

`default_nettype none

module frame_limits (
    input  wire logic        clk,
    input  wire logic        start,           // the next byte is the first of a frame
    input  wire logic        data_valid,
    input  wire logic [7:0]  data,
    input  wire logic [13:0] frame_bytes_max,
    output logic             is_long
);
    logic [14:0] bytes;
    logic [15:0] limit;
    logic [7:0]  previous;
    logic        is_tagged, is_cn_tagged;
    logic        is_vlan_type, is_cn_type;
    always_comb begin
        is_vlan_type = {previous, data} == 16'h8100 || {previous, data} == 16'h88a8;
        is_cn_type = {previous, data} == 16'h22e9;
        is_long = {1'b0, bytes} > limit;
    end
    always_ff @(posedge clk) begin
        limit <= 16'(frame_bytes_max)
            + {12'd0, is_tagged && is_cn_tagged, is_tagged ^ is_cn_tagged, 2'b00};
        if (start) begin
            bytes <= 15'd0;
            is_tagged <= 1'b0;
            is_cn_tagged <= 1'b0;
        end else if (data_valid) begin
            if (!bytes[14]) bytes <= bytes + 15'd1;
            if (bytes == 15'd13) is_tagged <= is_vlan_type;
            if (bytes == 15'd13 || (bytes == 15'd17 && is_tagged)) is_cn_tagged <= is_cn_type;
        end
        if (data_valid) previous <= data;
    end
endmodule
