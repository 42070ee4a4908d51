// Clock of the core and resets, from the oscillator of 25 MHz.
//
// The PLL multiplies by 5 (its oscillator runs at 625 MHz). The core is in reset until the PLL has
// locked; the PHYs are in reset 17 ms longer (the data sheets ask for 10 ms) and need about as long
// again until they show a clock.

`default_nettype none

module clocks #(
    parameter int unsigned PHY_RESET_BITS = 21
) (
    input  wire logic clk_25,
    output logic      clk, // 125 MHz
    output logic      rst,
    output logic      phy_rst_n
);
    logic is_locked, is_locked_0, is_locked_1;

    EHXPLLL #(
        .CLKI_DIV(1),
        .CLKFB_DIV(5),
        .CLKOP_DIV(5),
        .CLKOP_CPHASE(2), // half of the divider, as for a phase of 0 with the feedback from CLKOP
        .CLKOP_FPHASE(0),
        .CLKOP_ENABLE("ENABLED"),
        .FEEDBK_PATH("CLKOP"),
        .OUTDIVIDER_MUXA("DIVA")
    ) pll (
        .CLKI(clk_25), .CLKFB(clk), .CLKOP(clk), .LOCK(is_locked),
        .PHASESEL1(1'b0), .PHASESEL0(1'b0), .PHASEDIR(1'b1), .PHASESTEP(1'b1),
        .PHASELOADREG(1'b1), .STDBY(1'b0), .PLLWAKESYNC(1'b0), .RST(1'b0), .ENCLKOP(1'b0)
    );

    logic [PHY_RESET_BITS-1:0] waited;

    always_ff @(posedge clk) begin
        is_locked_0 <= is_locked;
        is_locked_1 <= is_locked_0;
        rst         <= !is_locked_1;
        if (rst) begin
            waited    <= 0;
            phy_rst_n <= 0;
        end else if (waited == '1) begin
            phy_rst_n <= 1;
        end else begin
            waited <= waited + 1;
        end
    end
endmodule
