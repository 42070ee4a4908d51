// Frames from the CPU to the outputs. The first byte of each frame is the number of the port at
// which the rest leaves; the rest goes to the CPU's buffer of that port, which stores it. A frame
// for a port that does not exist is swallowed and reported once. An end without a first byte is
// ignored.
//
// Timing: `announce` is the cycle after the first byte, `symbol` the cycle after each other one.
// Always ready.

`default_nettype none

module inject #(
    parameter PORTS = 4
) (
    input  wire logic          clk,
    input  wire logic          rst,
    input  wire logic          inject_valid,
    input  wire axon::symbol_t inject_symbol,
    output logic               inject_ready,
    output logic [PORTS-1:0]   announce,     // to the CPU's buffer of each egress
    output logic [PORTS-1:0]   write,
    output axon::symbol_t      symbol,       // with write
    output logic               no_such_port  // one cycle
);
    logic is_inside;         // behind the first byte of a frame
    logic [PORTS-1:0] named, outputs;
    always_comb begin
        for (int unsigned at = 0; at < PORTS; at++) named[at] = inject_symbol.data == 8'(at);
    end
    assign inject_ready = 1'b1;

    always_ff @(posedge clk) begin
        announce <= '0;
        write <= '0;
        no_such_port <= 1'b0;
        symbol <= inject_symbol;
        if (inject_valid) begin
            is_inside <= !inject_symbol.is_end;
            if (is_inside) write <= outputs;
            else if (!inject_symbol.is_end) begin
                outputs <= named;
                announce <= named;
                no_such_port <= named == '0;
            end
        end
        if (rst) begin
            announce <= '0;
            write <= '0;
            no_such_port <= 1'b0;
            is_inside <= 1'b0;
        end
    end
endmodule
