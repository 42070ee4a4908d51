// The probe unit before the transmitter of a port, with what its record shows: the bytes behind the
// probe at this output, and the time of the third byte of the frame, so that the time from the
// record of the ingress to this one is that from pin to pin.
//
// Timing: see probe_unit. Without PROBES symbols pass as they are.

`default_nettype none

module egress_probe #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned BUFFER_BYTES = 2048,
    parameter logic PROBES = 1'b0
) (
    input  wire logic             clk,
    input  wire logic             rst,
    input  wire axon::output_t    port,
    input  wire axon::port_kind_t kind,
    input  wire logic [63:0]      time_now,
    input  wire logic [13:0]      bytes_max,    // longest frame, with its record
    input  wire logic             begins,       // a frame begins to leave
    input  wire logic             is_from_cpu,  // while it leaves
    input  wire logic [PORTS-1:0][$clog2(BUFFER_BYTES):0] occupancies,
    input  wire logic [$clog2(BUFFER_BYTES):0] cpu_occupancy,
    input  wire logic             valid,
    input  wire axon::symbol_t    symbol,
    output logic                  out_valid,
    output axon::symbol_t         out_symbol
);
    if (PROBES) begin : probes
        logic [15:0] queued; // and a byte for the end of each frame
        logic [2:0]  first;  // bytes 0 to 2
        always_comb begin
            queued = 16'(cpu_occupancy);
            for (int unsigned at = 0; at < PORTS; at++) queued = queued + 16'(occupancies[at]);
        end
        always_ff @(posedge clk) begin
            if (begins) first <= 3'd1;
            else if (valid) first <= first << 1;
        end
        probe_unit #(.IS_EGRESS(1'b1)) unit (
            .clk, .rst, .port, .time_now, .stamps(first[2]), .bytes_max, .queued,
            .is_axon(kind == axon::PORT_AXON), .is_served(kind == axon::PORT_HOST && is_from_cpu),
            .cuts(1'b0), .valid, .symbol, .out_valid, .out_symbol
        );
    end else begin : no_probes
        assign {out_valid, out_symbol} = {valid, symbol};
        logic unused;
        assign unused = &{clk, rst, port, kind, time_now, bytes_max, begins, is_from_cpu,
            occupancies, cpu_occupancy};
    end
endmodule
