// The device with a register at every pin, as the cells of a board's PHYs and its register master
// have: so what the device does with its inputs in the cycle in which they come, and what it makes
// of registers before its outputs, counts for the clock that synthesis/ecp5 reports.

`default_nettype none

module registered_device #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned HOP_BITS = 8,
    parameter int unsigned BUFFER_BYTES = 2048,
    parameter int unsigned ROUTES = 32
) (
    input  wire logic               clk,
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
    localparam int unsigned INPUTS = 11 * PORTS + 62;
    localparam int unsigned OUTPUTS = 10 * PORTS + 43;
    logic [INPUTS-1:0]  from_pins;
    logic [OUTPUTS-1:0] to_pins, outputs;
    assign {
        txd, tx_en, tx_er, reg_read_data, punt_valid, punt_symbol, inject_ready
    } = outputs;
    always_ff @(posedge clk) begin
        from_pins <= {
            rst, rxd, rx_dv, rx_er, link_up, reg_address, reg_write, reg_write_data, reg_read,
            punt_ready, inject_valid, inject_symbol
        };
        outputs <= to_pins;
    end

    logic               rst_in, write_in, read_in, punt_ready_in, inject_valid_in;
    logic [8*PORTS-1:0] rxd_in, txd_out;
    logic [PORTS-1:0]   rx_dv_in, rx_er_in, link_up_in, tx_en_out, tx_er_out;
    logic [15:0]        address_in;
    logic [31:0]        write_data_in, read_data_out;
    logic [8:0]         inject_symbol_in, punt_symbol_out;
    logic               punt_valid_out, inject_ready_out;
    assign {
        rst_in, rxd_in, rx_dv_in, rx_er_in, link_up_in, address_in, write_in, write_data_in,
        read_in, punt_ready_in, inject_valid_in, inject_symbol_in
    } = from_pins;
    assign to_pins = {
        txd_out, tx_en_out, tx_er_out, read_data_out, punt_valid_out, punt_symbol_out,
        inject_ready_out
    };
    axon_device #(
        .PORTS(PORTS), .HOP_BITS(HOP_BITS), .BUFFER_BYTES(BUFFER_BYTES), .ROUTES(ROUTES)
    ) device (
        .clk, .rst(rst_in), .rxd(rxd_in), .rx_dv(rx_dv_in), .rx_er(rx_er_in), .txd(txd_out),
        .tx_en(tx_en_out), .tx_er(tx_er_out), .link_up(link_up_in), .reg_address(address_in),
        .reg_write(write_in), .reg_write_data(write_data_in), .reg_read(read_in),
        .reg_read_data(read_data_out), .punt_valid(punt_valid_out), .punt_symbol(punt_symbol_out),
        .punt_ready(punt_ready_in), .inject_valid(inject_valid_in),
        .inject_symbol(inject_symbol_in), .inject_ready(inject_ready_out)
    );
endmodule
