// Models of the ECP5 cells that the board uses, for simulation and lint only: Yosys knows the cells.
//
// They show the order of the bits, not the times: a delay line passes its input on at once, and the
// clock of the PLL is its input. Latencies in cycles are of the models.

`default_nettype none

// Several cells in a file of another name, and parameters that only the real cells use.
// verilator lint_off DECLFILENAME
// verilator lint_off UNUSEDPARAM
// verilator lint_off UNUSEDSIGNAL

// Input at both edges: Q0 is D at a rising edge, Q1 at the falling edge after it; both show at the
// next rising edge.
module IDDRX1F #(
    parameter GSR = "ENABLED"
) (
    input  wire logic D, SCLK, RST,
    output logic      Q0, Q1
);
    logic rising, falling;

    always_ff @(posedge SCLK) rising <= D;
    always_ff @(negedge SCLK) falling <= D;
    always_ff @(posedge SCLK) begin
        Q0 <= rising;
        Q1 <= falling;
    end
endmodule

// Output at both edges: D0 while the clock is high, then D1 while it is low.
module ODDRX1F #(
    parameter GSR = "ENABLED"
) (
    input  wire logic SCLK, RST, D0, D1,
    output logic      Q
);
    logic first, second, second_low;

    always_ff @(posedge SCLK) begin
        first  <= D0;
        second <= D1;
    end
    always_ff @(negedge SCLK) second_low <= second;
    assign Q = SCLK ? first : second_low;
endmodule

module DELAYG #(
    parameter DEL_MODE = "USER_DEFINED",
    parameter DEL_VALUE = 0
) (
    input  wire logic A,
    output logic      Z
);
    assign Z = A;
endmodule

module EHXPLLL #(
    parameter CLKI_DIV = 1,
    parameter CLKFB_DIV = 1,
    parameter CLKOP_DIV = 8,
    parameter CLKOP_CPHASE = 0,
    parameter CLKOP_FPHASE = 0,
    parameter CLKOP_ENABLE = "ENABLED",
    parameter FEEDBK_PATH = "CLKOP",
    parameter OUTDIVIDER_MUXA = "DIVA"
) (
    input  wire logic CLKI, CLKFB,
    input  wire logic PHASESEL1, PHASESEL0, PHASEDIR, PHASESTEP, PHASELOADREG,
    input  wire logic STDBY, PLLWAKESYNC, RST,
    input  wire logic ENCLKOP,
    output logic      CLKOP, LOCK
);
    assign CLKOP = CLKI;
    assign LOCK  = !RST;
endmodule
