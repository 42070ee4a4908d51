// RGMII of a PHY at 1000 Mbit/s, RGMII version 2.0, to and from GMII.
//
// A byte goes over four wires in two halves: bits 3..0 at the rising edge of the clock, bits 7..4
// at the falling edge. The control wire carries `valid` and then `valid xor error`. Between frames
// a PHY that offers the in-band status shows link, speed and duplex on the data wires.
//
// Transmitting: the clock of the core, edges of clock and data at the same time; the PHY delays the
// clock. Receiving: the data are delayed by RX_DELAY steps of 25 ps, to make up for the way of the
// clock into the FPGA. Both depend on the straps of the PHYs; see colorlight_5a_75b.sv.

`default_nettype none

module rgmii #(
    parameter int unsigned RX_DELAY = 80
) (
    input  wire logic       phy_rxc,
    input  wire logic [3:0] phy_rxd,
    input  wire logic       phy_rx_ctl,
    output logic            phy_txc,
    output logic [3:0]      phy_txd,
    output logic            phy_tx_ctl,

    // GMII and status in the clock phy_rxc.
    output logic [7:0]      rxd,
    output logic            rx_dv,
    output logic            rx_er,
    output logic            is_link_up, // full duplex at 1000 Mbit/s, by the in-band status

    // GMII in the clock of the core.
    input  wire logic       clk,
    input  wire logic [7:0] txd,
    input  wire logic       tx_en,
    input  wire logic       tx_er
);
    // Bit 4 is the control wire.
    logic [4:0] pins, delayed, first, second;

    assign pins = {phy_rx_ctl, phy_rxd};

    for (genvar wire_number = 0; wire_number < 5; wire_number++) begin : receive
        DELAYG #(.DEL_MODE("USER_DEFINED"), .DEL_VALUE(RX_DELAY)) delay (
            .A(pins[wire_number]), .Z(delayed[wire_number])
        );
        IDDRX1F halves (
            .SCLK(phy_rxc), .RST(1'b0), .D(delayed[wire_number]),
            .Q0(first[wire_number]), .Q1(second[wire_number])
        );
    end

    always_ff @(posedge phy_rxc) begin
        rxd   <= {second[3:0], first[3:0]};
        rx_dv <= first[4];
        rx_er <= first[4] ^ second[4];
        if (!first[4] && !second[4]) is_link_up <= first[3:0] == 4'b1101;
    end

    logic [4:0] high, low; // what is on the wires while the clock is high, and while it is low

    always_ff @(posedge clk) begin
        high <= {tx_en, txd[3:0]};
        low  <= {tx_en ^ tx_er, txd[7:4]};
    end

    logic [4:0] outputs;
    assign {phy_tx_ctl, phy_txd} = outputs;

    for (genvar wire_number = 0; wire_number < 5; wire_number++) begin : transmit
        ODDRX1F halves (
            .SCLK(clk), .RST(1'b0), .D0(high[wire_number]), .D1(low[wire_number]),
            .Q(outputs[wire_number])
        );
    end

    ODDRX1F clock (.SCLK(clk), .RST(1'b0), .D0(1'b1), .D1(1'b0), .Q(phy_txc));
endmodule
