// Counters of the CPU as a port: what it injects is received, what it gets is sent.
//
// Timing: as counters. A frame for a port that does not exist is counted a cycle later than it is
// reported: in its own cycle the buffers may report the end of the frame before it.

`default_nettype none

module cpu_counters #(
    parameter int unsigned PORTS = 4
) (
    input  wire logic             clk,
    input  wire logic             rst,
    // Streams: a symbol passes.
    input  wire logic             inject_valid,
    input  wire logic             inject_end,   // it is an end
    input  wire logic             punt_valid,
    input  wire logic             punt_end,
    // Injected frames that are lost.
    input  wire logic             no_such_port,
    input  wire logic [PORTS-1:0] full_drop,
    input  wire logic [PORTS-1:0] bad_drop,
    input  wire logic [PORTS-1:0] port_down,
    // From the registers.
    input  wire logic             read,
    input  wire logic [4:0]       read_index,
    output logic [31:0]           read_data
);
    logic        rx_done, tx_done, had_no_such_port;
    logic [13:0] rx_bytes, tx_bytes;
    stream_meter #(.SKIPPED(14'd1)) injected ( // number of the port
        .clk, .rst, .valid(inject_valid), .is_end(inject_end), .done(rx_done),
        .bytes(rx_bytes)
    );
    stream_meter #(.SKIPPED(14'd2)) punted ( // ingress port and reason
        .clk, .rst, .valid(punt_valid), .is_end(punt_end), .done(tx_done),
        .bytes(tx_bytes)
    );
    always_ff @(posedge clk) had_no_such_port <= no_such_port && !rst;

    counters #(.OUTPUTS(PORTS)) of_cpu (
        .clk, .rst, .no_start(1'b0), .rx_done, .rx_is_runt(1'b0), .rx_bytes,
        .tx_done, .tx_is_poisoned(1'b0), .tx_bytes, .refused(1'b0),
        .drop_valid(had_no_such_port || full_drop != '0 || bad_drop != '0),
        .drop(had_no_such_port ? axon::DROP_NO_SUCH_PORT
            : full_drop != '0 ? axon::DROP_QUEUE_FULL : axon::DROP_BAD_FCS),
        .punt_valid(1'b0), .punt(axon::PUNT_MISS), .port_down, .read, .read_index, .read_data
    );
endmodule
