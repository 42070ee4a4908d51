// Limit on the length of an Ethernet frame, as `fault` in crates/plane/src/axon/ethernet.rs:
// frame_bytes_max bytes without FCS, and four more each for a VLAN tag (IEEE 802.1Q) and a CN-TAG
// behind it.
//
// Timing: `is_long` holds for the bytes of the cycles before. The four bytes of a tag are added
// with the byte behind its EtherType, so frame_bytes_max is at least 18.

`default_nettype none

module frame_limits (
    input  wire logic        clk,
    input  wire logic        start,           // the next byte is the first of a frame
    input  wire logic        data_valid,
    input  wire logic [7:0]  data,
    input  wire logic [13:0] frame_bytes_max,
    output logic             is_long
);
    localparam logic [4:0] TYPE = 5'd13, TAGGED_TYPE = 5'd17; // last bytes of EtherTypes

    logic [15:0] allowed; // bytes that may still come; negative if the frame is too long
    logic [4:0]  index;   // of the byte, stays at 18
    logic [7:0]  previous;
    logic        is_tagged, is_vlan_tag, is_cn_tag;
    logic        is_extended; // the byte before was the last of a tag's EtherType
    always_comb begin
        is_vlan_tag = index == TYPE
            && ({previous, data} == 16'h8100 || {previous, data} == 16'h88a8);
        is_cn_tag = (index == TYPE || (index == TAGGED_TYPE && is_tagged))
            && {previous, data} == 16'h22e9;
        is_long = allowed[15];
    end
    always_ff @(posedge clk) begin
        if (start) begin
            allowed <= {2'b00, frame_bytes_max};
            index <= 5'd0;
            is_tagged <= 1'b0;
            is_extended <= 1'b0;
        end else if (data_valid) begin
            is_extended <= is_vlan_tag || is_cn_tag;
            allowed <= allowed + (is_extended ? 16'd3 : 16'hffff);
            if (index <= TAGGED_TYPE) index <= index + 5'd1;
            if (index == TYPE) is_tagged <= is_vlan_tag;
        end
        if (data_valid) previous <= data;
    end
endmodule
