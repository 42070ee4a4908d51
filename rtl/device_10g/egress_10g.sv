// Egress of a 10G port: a buffer for each ingress, the scheduler, the sender.
//
// Timing: an output that is idle starts in the cycle of `announce`; its word of preamble is in
// the output register in the next one.

`default_nettype none

module egress_10g #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned BUFFER_WORDS = 512
) (
    input  wire logic                   clk,
    input  wire logic                   rst,
    input  wire logic [PORTS-1:0]       announce,  // of each ingress
    input  wire logic [PORTS-1:0]       write,
    input  wire logic [PORTS-1:0][68:0] words,     // axon_10g::word_t
    output logic [PORTS-1:0]            full_drop,
    output logic [PORTS-1:0]            bad_drop,
    output logic [63:0]                 txd,
    output logic [7:0]                  txc
);
    logic [PORTS-1:0] has_frame, grant, leaving;
    logic             ready, read;
    logic [PORTS-1:0][68:0] read_words;
    logic [68:0]      word;

    for (genvar at = 0; at < PORTS; at++) begin : ingress
        buffer_10g #(.WORDS(BUFFER_WORDS)) buffer_of_ingress (
            .clk, .rst, .announce(announce[at]), .write(write[at]), .write_word(words[at]),
            .full_drop(full_drop[at]), .bad_drop(bad_drop[at]), .has_frame(has_frame[at]),
            .take(grant[at]), .read(read && leaving[at]), .read_word(read_words[at])
        );
    end

    scheduler_10g #(.INPUTS(PORTS)) fair (
        .clk, .rst, .has_frame, .ready, .grant, .is_busy(!ready), .leaving
    );

    always_comb begin
        word = '0;
        for (int unsigned at = 0; at < PORTS; at++)
            word = word | (leaving[at] ? read_words[at] : '0);
    end
    xgmii_tx sender (.clk, .rst, .ready, .start(grant != '0), .read, .word, .txd, .txc);
endmodule
