// Address resolution among the frames of hosts, which ends at the edge if its answer would be a
// masqueraded address: ARP, and ICMPv6 with a hop limit of 255, of which neighbour discovery is
// (RFC 4861 clause 7.1). A superset of `is_resolution` in crates/plane/src/axon/ethernet.rs but for
// neighbour discovery with another hop limit, which no host accepts.
//
// The EtherType is that behind a tag of VLAN 0, if there is one.
//
// Timing: byte k in `head` in cycle t0 + k. `is_known` from t0 + 14 on, for IPv6 t0 + 22, four
// cycles more behind a tag, until the first byte of the next frame.

`default_nettype none

module resolution (
    input  wire logic       clk,
    input  wire logic       rst,
    input  wire logic       head_valid,
    input  wire logic [7:0] head_data,
    input  wire logic [3:0] head_index, // of the byte in head_data; stays at 15
    output logic            is_resolution, // with is_known
    output logic            is_known
);
    // Places of bytes behind the addresses, or behind the tag.
    localparam logic [3:0] TYPE_LOW = 4'd1, TAG_LOW = 4'd3, NEXT_HEADER = 4'd8, HOP_LIMIT = 4'd9;

    logic [3:0] place;
    logic [7:0] previous;
    logic       is_behind, is_tag, was_tag, is_ipv6; // the addresses have come
    always_ff @(posedge clk) begin
        if (head_valid) begin
            previous <= head_data;
            if (head_index == 4'd0) begin
                {is_behind, is_tag, was_tag, is_ipv6} <= '0;
                {is_known, is_resolution} <= '0;
            end
            if (head_index == 4'd11) begin
                is_behind <= 1'b1;
                place <= 4'd0;
            end
            if (is_behind && !is_known && head_index != 4'd0) begin
                place <= place + 4'd1;
                if (place == TYPE_LOW) begin
                    is_ipv6 <= {previous, head_data} == 16'h86dd;
                    is_tag <= {previous, head_data} == 16'h8100 && !was_tag;
                    is_resolution <= {previous, head_data} == 16'h0806;
                    is_known <= {previous, head_data} != 16'h86dd
                        && ({previous, head_data} != 16'h8100 || was_tag);
                end
                if (is_tag && place == TAG_LOW) begin
                    is_known <= {previous[3:0], head_data} != 12'd0;
                    {is_tag, was_tag} <= 2'b01;
                    place <= 4'd0;
                end
                if (is_ipv6 && place == NEXT_HEADER) is_resolution <= head_data == 8'd58;
                if (is_ipv6 && place == HOP_LIMIT) begin
                    is_resolution <= is_resolution && head_data == 8'd255;
                    is_known <= 1'b1;
                end
            end
        end
        if (rst) {is_behind, is_known, is_resolution} <= '0;
    end

`ifdef FORMAL
    // One frame of FRAME_BYTES, arbitrary, again and again with pauses; each may end before.
    localparam int unsigned FRAME_BYTES = 28;
    (* anyconst *) logic [8*FRAME_BYTES-1:0] f_frame; // byte 0 in the low bits
    (* anyseq *) logic                       f_comes, f_ends;
    function automatic logic [7:0] frame_byte(input int unsigned at);
        frame_byte = f_frame[8*at +: 8];
    endfunction
    logic        f_is_tagged, f_is_ipv6, f_is_resolution;
    logic [15:0] f_type;
    logic [4:0]  f_count; // bytes of the frame before this cycle
    always_comb begin
        f_is_tagged = frame_byte(12) == 8'h81 && frame_byte(13) == 8'h00
            && frame_byte(14) << 4 == 8'd0 && frame_byte(15) == 8'd0;
        f_type = f_is_tagged ? {frame_byte(16), frame_byte(17)} : {frame_byte(12), frame_byte(13)};
        f_is_ipv6 = f_type == 16'h86dd;
        f_is_resolution = f_type == 16'h0806 || (f_is_ipv6
            && (f_is_tagged ? {frame_byte(24), frame_byte(25)} : {frame_byte(20), frame_byte(21)})
                == 16'h3aff);
    end
    initial assume (rst);
    always_ff @(posedge clk) begin
        if (head_valid) f_count <= f_count + 5'd1;
        if (f_count == 5'(FRAME_BYTES) || f_ends) f_count <= 5'd0;
        if (rst) f_count <= 5'd0;
    end
    always_comb begin
        assume (head_valid == (!rst && f_count != 5'(FRAME_BYTES) && !f_ends
            && (f_count != 5'd0 || f_comes)));
        assume (head_index == (f_count < 5'd15 ? 4'(f_count) : 4'd15));
        assume (!head_valid || head_data == frame_byte(32'(f_count)));
    end
    always_comb if (!rst && f_count != 5'd0) begin
        a_verdict: assert (!is_known || is_resolution == f_is_resolution);
        a_in_time: assert (is_known || f_count < (f_is_tagged ? 5'd18 : 5'd14)
            + (f_is_ipv6 ? 5'd8 : f_type == 16'h8100 && !f_is_tagged ? 5'd2 : 5'd0));
        c_tagged: cover (is_known && is_resolution && f_is_tagged && f_is_ipv6);
    end
`endif
endmodule
