// One word of an Axon frame after its hop is taken (thesis section 3.1), as `advance` in
// crates/wire/src/header.rs, and what the CRC of the frame that goes out differs by.
//
// HOP: one forward hop less, one reverse hop more, each forward hop moves up by one, and the
// ingress port takes the last forward place. The length stays; the difference is old xor new.
//
// STRIP: the header will be removed behind this module. The CRC of the rest alone follows from
// that of the whole frame: the register must be all ones where the rest begins, whatever the
// header has left in it. The state of a CRC register is xored with the next four bytes, so the
// difference is the header itself, with ones on its first four bytes (they undo the initial
// state) and on the four bytes behind it (they bring the new initial state).
//
// Timing: combinational. The word depends on the next one or two bytes too.

`default_nettype none

module take_hop_word #(
    parameter int unsigned HOP_BITS = 8 // 8 or 16
) (
    input  wire axon::output_t      port,         // of the ingress
    input  wire logic               is_first,     // the first word
    input  wire logic               strips,
    input  wire logic [11:0]        forward_count, // before
    input  wire logic [11:0]        reverse_count,
    input  wire logic [13:0]        hops_left,    // bytes to the end of the forward hops, 0 behind
    input  wire logic signed [16:0] header_left,  // bytes to the end of the header
    input  wire logic [63:0]        data,         // as it came
    input  wire logic [15:0]        next_data,    // the bytes behind it
    output logic [63:0]             new_data,
    output logic [63:0]             difference
);
    localparam int unsigned HOP_BYTES = HOP_BITS / 8;

    logic [7:0][7:0]  old, after, moved, ingress;
    logic [11:0]      forward_after, reverse_after;
    logic [7:0]       is_inner, is_list, is_header, is_ones;
    always_comb begin
        old = data;
        for (int unsigned lane = 0; lane < 8; lane++) begin
            moved[lane] = 8'({next_data, data} >> (8 * (lane + HOP_BYTES)));
            ingress[lane] = HOP_BYTES == 1 || lane % 2 == 1 ? 8'(port) : 8'd0;
            is_inner[lane] = hops_left > 14'(lane + HOP_BYTES);
            is_list[lane] = hops_left > 14'(lane);
            is_header[lane] = header_left > $signed(17'(lane));
            is_ones[lane] = (is_first && lane < 4) != (!is_header[lane]
                && header_left > $signed(17'(lane)) - 17'sd4);
        end
        forward_after = forward_count - 12'd1;
        reverse_after = reverse_count + 12'd1;
        for (int unsigned lane = 0; lane < 8; lane++) after[lane] = is_inner[lane] ? moved[lane]
            : is_list[lane] ? ingress[lane] : old[lane];
        if (is_first) begin
            after[1:0] = old[1:0];
            after[2] = {old[2][7:4], forward_after[11:8]};
            after[3] = forward_after[7:0];
            after[4] = reverse_after[11:4];
            after[5] = {reverse_after[3:0], old[5][3:0]};
        end
        new_data = after;
        for (int unsigned lane = 0; lane < 8; lane++) difference[8*lane+:8] = strips
            ? (is_header[lane] ? old[lane] : 8'd0) ^ {8{is_ones[lane]}}
            : old[lane] ^ after[lane];
    end
endmodule
