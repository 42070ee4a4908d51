// Ethernet header of a frame, gathered while it arrives: what a frame must be known by that may
// not be forwarded (IEEE 802.1Q table 8-1, IEEE 802.3 clause 31), as `HeaderKind::of_ethernet`.
//
// Timing: byte k is in `head` in cycle t0 + k. `is_multicast` is valid from t0 + 1,
// `is_link_local` from t0 + 6, `is_mac_control` and `verdict_valid` from t0 + 14, all until the
// first byte of the next frame.

`default_nettype none

module ethernet (
    input  wire logic       clk,
    input  wire logic       rst,
    input  wire logic       head_valid,
    input  wire logic [7:0] head_data,
    input  wire logic [3:0] head_index,     // of the byte in head_data; stays at 15
    output logic            is_multicast,
    output logic            is_link_local,  // destination 01-80-C2-00-00-00 to -0F
    output logic            is_mac_control, // EtherType 0x8808
    output logic            verdict_valid   // the header is complete
);
    logic is_prefix;      // the bytes so far are those of the link-local block
    logic is_type_high;   // byte 12 is 0x88

    always_ff @(posedge clk) begin
        if (head_valid) case (head_index)
            4'd0: begin
                is_multicast <= head_data[0];
                is_prefix <= head_data == 8'h01;
                is_link_local <= 1'b0;
                is_mac_control <= 1'b0;
                verdict_valid <= 1'b0;
            end
            4'd1: is_prefix <= is_prefix && head_data == 8'h80;
            4'd2: is_prefix <= is_prefix && head_data == 8'hc2;
            4'd3, 4'd4: is_prefix <= is_prefix && head_data == 8'h00;
            4'd5: is_link_local <= is_prefix && head_data[7:4] == 4'h0;
            4'd12: is_type_high <= head_data == 8'h88;
            4'd13: begin
                is_mac_control <= is_type_high && head_data == 8'h08;
                verdict_valid <= 1'b1;
            end
            default: ;
        endcase
        if (rst) begin
            is_link_local <= 1'b0;
            is_mac_control <= 1'b0;
            verdict_valid <= 1'b0;
        end
    end
endmodule
