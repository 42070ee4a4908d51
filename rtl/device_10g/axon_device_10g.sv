// An Axon of 10G ports: the forwarding step of the 1G device on the 64-bit XGMII at 156.25 MHz,
// one clock for all. Each port takes frames from its PHY, and each output has a buffer for each
// ingress.
//
// Every port is for an Axon or, as an output, for hosts; frames of hosts do not come in (no
// routes table), nor is there a port to a CPU: frames for it are counted (punt_valid) and
// dropped.
//
// Timing: from the word with START at the pins to the word with START in the output register 5
// cycles if it starts in lane 0, 6 in lane 4 (half a word later at the pins), for frames that
// only take a hop, whatever their length.

`default_nettype none

module axon_device_10g #(
    parameter int unsigned PORTS = 4,    // at most 14
    parameter int unsigned HOP_BITS = 8, // 8 or 16
    parameter int unsigned BUFFER_WORDS = 512
) (
    input  wire logic                   clk,
    input  wire logic                   rst,
    input  wire logic [PORTS-1:0][63:0] rxd,
    input  wire logic [PORTS-1:0][7:0]  rxc,
    output logic [PORTS-1:0][63:0]      txd,
    output logic [PORTS-1:0][7:0]       txc,
    input  wire logic [PORTS-1:0][1:0]  kinds,           // axon::port_kind_t of each port
    input  wire logic [PORTS-1:0]       ups,             // carrier
    input  wire logic [13:0]            bytes_max,       // of a frame without FCS
    input  wire logic [15:0]            route_bytes_max,
    // One cycle for each frame, by ingress.
    output logic [PORTS-1:0]            no_start,
    output logic [PORTS-1:0]            drop_valid,
    output logic [PORTS-1:0][4:0]       drop,            // axon::drop_t
    output logic [PORTS-1:0]            punt_valid,
    output logic [PORTS-1:0][2:0]       punt,            // axon::punt_t
    // One cycle for each frame: [output][ingress].
    output logic [PORTS-1:0][PORTS-1:0] full_drop,
    output logic [PORTS-1:0][PORTS-1:0] bad_drop
);
    logic [PORTS-1:0][PORTS-1:0] announce, write; // [ingress][output]
    logic [PORTS-1:0][68:0] words; // axon_10g::word_t

    for (genvar at = 0; at < PORTS; at++) begin : port
        logic        head_valid, head_first, head_bad;
        logic [63:0] head_data;
        logic [3:0]  head_bytes;
        xgmii_rx receiver (
            .clk, .rst, .rxd(rxd[at]), .rxc(rxc[at]), .bytes_max, .head_valid, .head_first,
            .head_data, .head_bytes, .head_bad, .no_start(no_start[at])
        );
        axon::drop_t drop_reason;
        axon::punt_t punt_reason;
        ingress_10g #(.PORTS(PORTS), .HOP_BITS(HOP_BITS), .PORT(at)) ingress (
            .clk, .rst, .head_valid, .head_first, .head_data, .head_bytes, .head_bad,
            .kinds, .ups, .route_bytes_max, .announce(announce[at]), .write(write[at]),
            .word(words[at]), .drop_valid(drop_valid[at]), .drop(drop_reason),
            .punt_valid(punt_valid[at]), .punt(punt_reason)
        );
        assign drop[at] = drop_reason;
        assign punt[at] = punt_reason;

        logic [PORTS-1:0] announce_to, write_to; // of each ingress to this output
        for (genvar from = 0; from < PORTS; from++) begin : to
            assign announce_to[from] = announce[from][at];
            assign write_to[from] = write[from][at];
        end
        egress_10g #(.PORTS(PORTS), .BUFFER_WORDS(BUFFER_WORDS)) egress (
            .clk, .rst, .announce(announce_to), .write(write_to), .words,
            .full_drop(full_drop[at]), .bad_drop(bad_drop[at]), .txd(txd[at]), .txc(txc[at])
        );
    end
endmodule
