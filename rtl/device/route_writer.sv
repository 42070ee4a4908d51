// Writes rows of the route tables between lookups.
//
// A row waits in the write registers of the bus until its port is not in the first 12 bytes of a
// frame, at most 12 cycles. If the bus writes again before that, the row is written at once: a
// lookup in that cycle may find a wrong entry. So drivers leave 16 cycles after a row.

`default_nettype none

module route_writer #(
    parameter int unsigned PORTS = 4
) (
    input  wire logic             clk,
    input  wire logic             rst,
    input  wire logic [PORTS-1:0] head_first,  // of gmii_rx: byte 0 of a frame is in `head`
    input  wire logic [PORTS-1:0] selected,    // port of a row in the write registers
    input  wire logic             begins,      // it has just come
    input  wire logic             bus_write,   // the next cycle overwrites it
    output logic [PORTS-1:0]      row_write
);
    logic [PORTS-1:0] is_busy;
    for (genvar port = 0; port < PORTS; port++) begin : windows
        logic [3:0] remaining; // bytes of the key that still come
        assign is_busy[port] = head_first[port] || remaining != 4'd0;
        always_ff @(posedge clk) begin
            if (head_first[port]) remaining <= 4'd11;
            else if (remaining != 4'd0) remaining <= remaining - 4'd1;
            if (rst) remaining <= 4'd0;
        end
    end

    logic waits, is_waiting;
    assign is_waiting = begins || waits;
    assign row_write = is_waiting ? selected & (~is_busy | {PORTS{bus_write}}) : '0;
    always_ff @(posedge clk) waits <= is_waiting && selected != '0 && row_write == '0 && !rst;
endmodule
