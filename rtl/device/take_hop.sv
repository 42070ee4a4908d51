// One byte of an Axon header after its hop is taken (thesis section 3.1), as `advance` and
// `set_type` in crates/wire/src/header.rs: one forward hop less, one reverse hop more, each
// forward hop moves up by one, and the ingress port takes the last forward place. The rest stays.
//
// Timing: combinational. The byte depends on the byte as it came and the one or two after it, and
// on its place in the header, which is counted here.

`default_nettype none

module take_hop #(
    parameter int unsigned HOP_BITS = 8 // 4, 8 or 16
) (
    input  wire logic          clk,
    input  wire logic          start,         // the next byte is the first of a frame
    input  wire logic          advance,       // data_0 leaves
    input  wire axon::output_t port,          // of the ingress; axon::CPU for the control plane
    input  wire logic          takes_hop,
    input  wire logic          becomes_error,
    input  wire logic [11:0]   forward_count, // before
    input  wire logic [11:0]   reverse_count,
    input  wire logic [7:0]    data_0,        // the byte as it came
    input  wire logic [7:0]    data_1,        // the next
    input  wire logic [7:0]    data_2,        // the one after it
    output logic [7:0]         data,
    output logic [2:0]         position       // 0 to 5; then 6, or 6 and 7 in turn with 16 bits
);
    localparam logic [15:0] CONTROL = 16'hffff;

    logic [15:0] ingress;
    logic [11:0] hops_left;                  // forward hops from this byte on
    logic [11:0] hops_after;                 // from the next
    logic [11:0] hops_less;
    logic [11:0] forward_after, reverse_after;
    logic        is_hops;
    logic        is_last, is_inner;          // hops_left is 1, is more: registers beside it
    logic [1:0]  used;                       // hops that end in this byte
    always_comb begin
        ingress = port == axon::CPU ? CONTROL : 16'(port);
        hops_less = hops_left - 12'd1;
        reverse_after = reverse_count + 12'd1;
        is_hops = position >= 3'd6;
        used = HOP_BITS == 4 ? (is_hops ? 2'd2 : position == 3'd5 ? 2'd1 : 2'd0)
            : HOP_BITS == 8 ? {1'b0, is_hops} : {1'b0, position == 3'd7};
        hops_after = hops_left;
        if (used == 2'd2) hops_after = is_inner ? hops_left - 12'd2 : 12'd0;
        else if (used == 2'd1 && (is_inner || is_last)) hops_after = hops_less;
    end
    always_ff @(posedge clk) begin
        forward_after <= forward_count - 12'd1; // of a frame whose byte 2 comes later
        if (start) begin
            position <= 3'd0;
            hops_left <= forward_count;
            is_last <= forward_count == 12'd1;
            is_inner <= forward_count[11:1] != 11'd0;
        end else if (advance) begin
            position <= position == 3'd7 || (position == 3'd6 && HOP_BITS != 16)
                ? 3'd6 : position + 3'd1;
            hops_left <= hops_after;
            is_last <= hops_after == 12'd1;
            is_inner <= hops_after[11:1] != 11'd0;
        end
    end

    logic [7:0] moved; // in the forward list
    always_comb begin
        moved = data_0;
        if (HOP_BITS == 4) begin
            if (is_hops) begin
                if (is_inner) moved[7:4] = data_0[3:0];
                else if (is_last) moved[7:4] = ingress[3:0];
                if (hops_left > 12'd2) moved[3:0] = data_1[7:4];
                else if (hops_left == 12'd2) moved[3:0] = ingress[3:0];
            end else begin
                moved[3:0] = is_inner ? data_1[7:4] : ingress[3:0];
            end
        end else if (HOP_BITS == 8) begin
            if (is_inner) moved = data_1;
            else if (is_last) moved = ingress[7:0];
        end else begin
            if (is_inner) moved = data_2;
            else if (is_last) moved = position[0] ? ingress[7:0] : ingress[15:8];
        end
    end

    always_comb begin
        data = data_0;
        if (takes_hop) case (position)
            3'd0, 3'd1: ;
            3'd2: data[3:0] = forward_after[11:8];
            3'd3: data = forward_after[7:0];
            3'd4: data = reverse_after[11:4];
            3'd5: data = {reverse_after[3:0], HOP_BITS == 4 ? moved[3:0] : data_0[3:0]};
            default: data = moved;
        endcase
        if (becomes_error && position == 3'd0) data[7:4] = axon::TYPE_ERROR;
    end
endmodule
