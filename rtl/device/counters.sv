// Counters of a port: 32 words of LUT RAM and one adder.
//
// An event sets a bit of `pending`; each cycle the first pending event is taken, and the next cycle
// adds it to its counter. Events that can come often are taken first. So an event is counted
// before the same can come again: a carrier event takes at least 2 cycles, a frame or fragment 7,
// and a frame has at most 5 of the others. A refused frame is counted apart from drops: it is
// refused when it begins, so perhaps in the cycle after one before it is dropped. A drain of a port
// without carrier, which may end frames of this port at all outputs in one cycle, has a bit for
// each output.
//
// Reset clears the counters, in the 32 cycles after it.
//
// Timing: a counter has changed within 8 cycles of its event, or 8 + OUTPUTS with drains. A read
// takes the place of an event, so reads may come in every other cycle at most. `read_data` is valid
// two cycles after `read`, otherwise 0.

`default_nettype none

module counters #(
    parameter int unsigned OUTPUTS = 4
) (
    input  wire logic               clk,
    input  wire logic               rst,
    // Events, one cycle each.
    input  wire logic               no_start,
    input  wire logic               rx_done,      // a frame or a runt has been received
    input  wire logic               rx_is_runt,
    input  wire logic [13:0]        rx_bytes,
    input  wire logic               tx_done,
    input  wire logic               tx_is_poisoned,
    input  wire logic [13:0]        tx_bytes,
    input  wire logic               refused,      // a frame: no room for it, as DROP_QUEUE_FULL
    input  wire logic               drop_valid,
    input  wire axon::drop_t        drop,
    input  wire logic               punt_valid,
    input  wire axon::punt_t        punt,
    input  wire logic [OUTPUTS-1:0] port_down,    // drops at outputs without carrier
    // From the registers.
    input  wire logic               read,
    input  wire logic [4:0]         read_index,
    output logic [31:0]             read_data
);
    localparam int unsigned EVENTS = 10 + OUTPUTS;
    logic [EVENTS-1:0] pending, events, taken;
    logic [4:0]        drop_index, punt_index;
    logic [13:0]       rx_length, tx_length;
    assign events = {
        port_down, tx_done && tx_is_poisoned, tx_done, tx_done, rx_done && !rx_is_runt,
        rx_done && !rx_is_runt, punt_valid, refused, drop_valid, rx_done && rx_is_runt, no_start
    };
    assign taken = pending & (~pending + 1'b1);

    // The event that is taken.
    logic [4:0]  taken_index;
    logic [13:0] taken_count;
    always_comb begin
        taken_count = 14'd1;
        taken_index = register_map::COUNTER_PORT_DOWN;
        if (pending[9]) taken_index = register_map::COUNTER_POISONED;
        if (pending[8]) taken_index = register_map::COUNTER_TX_FRAMES;
        if (pending[7]) begin
            taken_index = register_map::COUNTER_TX_BYTES;
            taken_count = tx_length;
        end
        if (pending[6]) begin
            taken_index = register_map::COUNTER_RX_FRAMES;
            taken_count = 14'd1;
        end
        if (pending[5]) begin
            taken_index = register_map::COUNTER_RX_BYTES;
            taken_count = rx_length;
        end
        if (pending[4:0] != 5'd0) taken_count = 14'd1;
        if (pending[4]) taken_index = punt_index;
        if (pending[3]) taken_index = register_map::COUNTER_QUEUE_FULL;
        if (pending[2]) taken_index = drop_index;
        if (pending[1]) taken_index = register_map::COUNTER_RUNTS;
        if (pending[0]) taken_index = register_map::COUNTER_NO_START;
    end

    // The addition. A read adds nothing.
    logic [31:0] memory [0:31];
    logic [5:0]  cleared; // counters that have been cleared since reset
    logic        adds, clears, reads, takes;
    logic [4:0]  index;
    logic [13:0] count;
    logic [31:0] value;
    assign takes = cleared[5] && !read;
    assign value = clears ? 32'd0 : memory[index];
    logic active_clk;
    clock_gate gate (
        .clk, .is_active(events != '0 || pending != '0 || read), .gated(active_clk)
    );
    always_ff @(posedge active_clk) begin
        pending <= (takes ? pending & ~taken : pending) | events;
        adds <= takes && pending != '0;
        clears <= !cleared[5];
        reads <= read;
        index <= !cleared[5] ? cleared[4:0] : read ? read_index : taken_index;
        count <= cleared[5] ? taken_count : 14'd0;
        if (!cleared[5]) cleared <= cleared + 6'd1;
        if (adds || clears) memory[index] <= value + 32'(count);
        read_data <= reads ? value : 32'd0;
        if (rx_done) rx_length <= rx_bytes;
        if (tx_done) tx_length <= tx_bytes;
        if (drop_valid) drop_index <= register_map::counter_of_drop(drop);
        if (punt_valid) punt_index <= register_map::counter_of_punt(punt);
        if (rst) begin
            pending <= '0;
            {adds, clears, reads} <= '0;
            cleared <= 6'd0;
        end
    end
endmodule
