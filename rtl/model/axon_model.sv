// The device with a register before each input pin, for device.cpp.
//
// A call of the model gives the inputs of a cycle and returns the outputs of the same cycle. It
// runs the edge that begins the cycle, so the pins of the cycle enter these registers with it, and
// the logic between pins and registers is computed once, after the edge.

`default_nettype none

module axon_model #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8,
    parameter int unsigned BUFFER_BYTES = 2048,
    parameter int unsigned ROUTES = 32
) (
    input  wire logic               clk, // of the inputs but GMII
    input  wire logic               rst,
    input  wire logic [8*PORTS-1:0] rxd,
    input  wire logic [PORTS-1:0]   rx_dv,
    input  wire logic [PORTS-1:0]   rx_er,
    output logic [8*PORTS-1:0]      txd,
    output logic [PORTS-1:0]        tx_en,
    output logic [PORTS-1:0]        tx_er,
    input  wire logic [PORTS-1:0]   link_up,
    input  wire logic [15:0]        reg_address,
    input  wire logic               reg_write,
    input  wire logic [31:0]        reg_write_data,
    input  wire logic               reg_read,
    output logic [31:0]             reg_read_data,
    output logic                    punt_valid,
    output logic [8:0]              punt_symbol,
    input  wire logic               punt_ready,
    input  wire logic               inject_valid,
    input  wire logic [8:0]         inject_symbol,
    output logic                    inject_ready
);
    logic [PORTS-1:0][7:0] data;
    logic [PORTS-1:0]      is_valid, is_error;
    for (genvar port = 0; port < PORTS; port++) begin : pins
        logic [9:0] pin; // one variable for each port, for each has a clock
        always_ff @(posedge device.ports[port].rx_clk)
            pin <= {rx_er[port], rx_dv[port], rxd[8*port +: 8]};
        assign {is_error[port], is_valid[port], data[port]} = pin;
    end

    logic             resets, writes, reads, is_ready, injects;
    logic [PORTS-1:0] ups;
    logic [15:0]      address;
    logic [31:0]      write_data;
    logic [8:0]       symbol;
    always_ff @(posedge clk) begin
        {resets, ups, is_ready, injects, symbol} <= {
            rst, link_up, punt_ready, inject_valid, inject_symbol
        };
        {writes, write_data, reads, address} <= {reg_write, reg_write_data, reg_read, reg_address};
    end

    axon_device #(
        .PORTS(PORTS), .HOP_BITS(HOP_BITS), .BUFFER_BYTES(BUFFER_BYTES), .ROUTES(ROUTES),
        .PROBES(1'b1), .MASQUERADES(1'b1)
    ) device (
        .clk, .rst(resets), .rxd(data), .rx_dv(is_valid), .rx_er(is_error), .txd, .tx_en, .tx_er,
        .link_up(ups), .reg_address(address), .reg_write(writes), .reg_write_data(write_data),
        .reg_read(reads), .reg_read_data, .punt_valid, .punt_symbol, .punt_ready(is_ready),
        .inject_valid(injects), .inject_symbol(symbol), .inject_ready
    );
endmodule
