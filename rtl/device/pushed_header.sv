// What PUSH puts in front of a frame (thesis section 3.2): the header of a route entry, or for a
// frame without a route the default header: no forward hop, the ingress port as the only reverse
// hop. It also holds the destination that an entry may give the frame.
//
// Timing: a byte of routes with the register behind it is two cycles late. `asks_first` in cycle t
// asks for the first byte of the header (of 6 bytes or more, or none: then for the destination),
// and each cycle after it for the next; `header_data` is the first byte in t + 2. `is_last` comes
// with the last byte of the header; the destination follows it.

`default_nettype none

module pushed_header #(
    parameter int unsigned HOP_BITS = 8 // 4, 8 or 16
) (
    input  wire logic            clk,
    input  wire axon::output_t   port,             // of the ingress
    input  wire logic            is_miss,          // the frame gets the default header
    input  wire logic [4:0]      header_bytes,     // otherwise: of that in the entry
    input  wire logic [1:0]      place,            // of the entry's bytes in routes
    input  wire logic            asks_first,
    output logic [1:0]           memory_place,     // of routes
    output logic [4:0]           memory_offset,
    input  wire logic [7:0]      memory_data,
    output logic [4:0]           pushed_bytes,     // length of the header, a cycle late
    output logic [7:0]           header_data,
    output logic                 is_last,
    output logic [7:0]           route_data        // as it comes from the entry
);
    localparam logic [4:0] DEFAULT_BYTES = HOP_BITS == 4 ? 5'd6 : HOP_BITS == 8 ? 5'd7 : 5'd8;
    localparam logic [4:0] DESTINATION = 5'd24; // offset in the entry
    // `offset` when byte 5 of the default header is put out.
    localparam logic [4:0] COUNT_OFFSET = HOP_BITS == 4 ? DESTINATION + 5'd1
        : HOP_BITS == 8 ? DESTINATION : 5'd7;

    logic       is_bare, asks_last, asked_last;
    logic [4:0] offset, offset_after; // to ask for next, and then
    always_comb begin
        is_bare = !is_miss && header_bytes == 5'd0;
        memory_place = place;
        memory_offset = !asks_first ? offset : is_bare ? DESTINATION : 5'd0;
        // The first byte is never the last; what follows it is known without an adder.
        asks_last = !asks_first && offset + 5'd1 == pushed_bytes;
        offset_after = !asks_first ? offset + 5'd1 : is_bare ? DESTINATION + 5'd1 : 5'd1;
    end
    always_ff @(posedge clk) begin
        pushed_bytes <= is_miss ? DEFAULT_BYTES : header_bytes;
        route_data <= memory_data;
        offset <= asks_last ? DESTINATION : offset_after;
        asked_last <= asks_last;
        is_last <= asked_last;
    end

    logic [7:0] default_data;
    always_comb begin
        default_data = 8'd0;
        // The offset is ahead of the byte by two; with the last two it is in the destination.
        if (offset == 5'd2) default_data = {axon::TYPE_ETHERNET, 4'd0};
        if (offset == 5'd4) default_data = {DEFAULT_BYTES[3:0], 4'd0};
        if (offset == COUNT_OFFSET) default_data = 8'h10; // a reverse count of 1
        if (offset == DESTINATION + 5'd1) default_data[3:0] = port;
        header_data = is_miss ? default_data : route_data;
    end
endmodule
