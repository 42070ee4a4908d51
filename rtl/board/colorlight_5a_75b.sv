// The device with two ports on a Colorlight 5A-75B, version 7.0: a receiver card for LED walls with
// an ECP5 LFE5U-25F and two gigabit PHYs.
//
// Each PHY: RGMII, and a clock crossing on its receiving side; the core sends with its own clock.
// The serial line on J19 (115200 bit/s) reads and writes the registers of the device: a program at
// its other end sets the kinds of the ports and the routes. Register BOARD of the board: bits 1..0
// read the links as the PHYs report them in-band, bits 9..8 (read and write) force a link up for a
// PHY that does not report, bits 17..16 say that a byte was lost in the clock crossing since the
// last write. There is no processor: frames to the CPU are dropped.
//
// Not measured on a board: the delay of the receive data (RX_DELAY), and whether the PHYs come out
// of reset with their own delay of the transmit clock and with in-band status. A link that goes
// down together with its clock stays up here: the in-band status comes with that clock.

`default_nettype none

module colorlight_5a_75b #(
    parameter int unsigned CLOCKS_PER_BIT = 1085,
    parameter int unsigned PHY_RESET_BITS = 21,
    parameter int unsigned RX_DELAY = 80 // of 25 ps
) (
    input  wire logic       clk_25,
    input  wire logic       line_in,
    output logic            line_out,

    output logic            phy_rst_n,
    input  wire logic [1:0] phy_rxc,
    input  wire logic [7:0] phy_rxd, // PHY 1 has the upper half
    input  wire logic [1:0] phy_rx_ctl,
    output logic [1:0]      phy_txc,
    output logic [7:0]      phy_txd,
    output logic [1:0]      phy_tx_ctl
);
    localparam logic [15:0] BOARD = 16'hf000; // in the block of a port that there is not

    logic clk, rst;

    clocks #(.PHY_RESET_BITS(PHY_RESET_BITS)) clocks (.clk_25, .clk, .rst, .phy_rst_n);

    logic [15:0] rxd, txd;
    logic [1:0]  rx_dv, rx_er, tx_en, tx_er;
    logic [1:0]  damaged;
    logic [1:0]  links, links_0, reported, forced, link_up, has_damaged;

    for (genvar port = 0; port < 2; port++) begin : ports
        logic [7:0] phy_data;
        logic       phy_dv, phy_er;

        rgmii #(.RX_DELAY(RX_DELAY)) phy (
            .phy_rxc(phy_rxc[port]), .phy_rxd(phy_rxd[4*port +: 4]),
            .phy_rx_ctl(phy_rx_ctl[port]), .phy_txc(phy_txc[port]),
            .phy_txd(phy_txd[4*port +: 4]), .phy_tx_ctl(phy_tx_ctl[port]),
            .rxd(phy_data), .rx_dv(phy_dv), .rx_er(phy_er), .is_link_up(links[port]),
            .clk, .txd(txd[8*port +: 8]), .tx_en(tx_en[port]), .tx_er(tx_er[port])
        );

        clock_crossing crossing (
            .clk_rx(phy_rxc[port]), .phy_rxd(phy_data), .phy_rx_dv(phy_dv), .phy_rx_er(phy_er),
            .clk, .rst, .rxd(rxd[8*port +: 8]), .rx_dv(rx_dv[port]), .rx_er(rx_er[port]),
            .damaged(damaged[port])
        );
    end

    always_ff @(posedge clk) begin
        links_0  <= links;
        reported <= links_0;
    end
    assign link_up = reported | forced;

    logic [15:0] address;
    logic        write, read;
    logic [31:0] write_data, read_data, device_data, board_data;
    logic        is_board, was_board;

    uart_registers #(.CLOCKS_PER_BIT(CLOCKS_PER_BIT), .READ_LATENCY(2)) host (
        .clk, .rst, .line_in, .line_out, .address, .write, .write_data, .read, .read_data
    );

    assign is_board   = address == BOARD;
    assign board_data = {14'd0, has_damaged, 6'd0, forced, 6'd0, reported};
    assign read_data  = was_board ? board_data : device_data;

    always_ff @(posedge clk) begin
        was_board <= is_board; // the address stays until the next request
        has_damaged <= has_damaged | damaged;
        if (write && is_board) begin
            forced      <= write_data[9:8];
            has_damaged <= 0;
        end
        if (rst) begin
            forced      <= 0;
            has_damaged <= 0;
        end
    end

    // A port without a link takes nothing: a PHY at 100 Mbit/s has another clock and half bytes.
    // The streams of the CPU go nowhere.
    // verilator lint_off PINCONNECTEMPTY
    axon_device #(.PORTS(2)) device (
        .clk, .rst, .rxd, .rx_dv(rx_dv & link_up), .rx_er, .txd, .tx_en, .tx_er, .link_up,
        .reg_address(address), .reg_write(write && !is_board), .reg_write_data(write_data),
        .reg_read(read && !is_board), .reg_read_data(device_data),
        .punt_valid(), .punt_symbol(), .punt_ready(1'b1),
        .inject_valid(1'b0), .inject_symbol(9'd0), .inject_ready()
    );
    // verilator lint_on PINCONNECTEMPTY
endmodule
