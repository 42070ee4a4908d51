// Egress of a port (thesis 000 section 3.2.1): a buffer for each ingress port and one for the CPU,
// the scheduler, and the transmit half of the MAC.
//
// A frame whose priority is paused does not start. Without a link nothing starts on the wire: the
// frames that are queued are read and thrown away in the same order, paused or not, and each is
// reported by port_down. The link counts when a frame begins to leave: one that is on the wire
// then is sent to its end, one that is thrown away is lost whole.
//
// Timing: `announce` in cycle n, has_frame in n + 1 and the grant in the same cycle, the first byte
// of the preamble in the output register in n + 2. full_drop and bad_drop come in the cycle after
// the end was written, port_down in the cycle after the end was read.

`default_nettype none

module egress #(
    parameter PORTS = 4,
    parameter BUFFER_BYTES = 2048,
    parameter logic PROBES = 1'b1 // there is a probe unit
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    // From each ingress, and from the CPU.
    input  wire logic [PORTS-1:0]        announce,
    input  wire logic [PORTS-1:0][2:0]   priorities,  // with announce
    input  wire logic [PORTS-1:0]        is_stored,   // with announce
    input  wire logic [PORTS-1:0]        write,
    input  wire logic [PORTS-1:0][8:0]   symbols,     // axon::symbol_t of each
    input  wire logic                    cpu_announce,
    input  wire logic [2:0]              cpu_priority,
    input  wire logic                    cpu_write,
    input  wire axon::symbol_t           cpu_symbol,
    // Of the probe unit.
    input  wire axon::output_t           port,        // number of this port: a constant
    input  wire logic [63:0]             time_now,
    input  wire logic [13:0]             bytes_max,   // longest probe, with its record
    input  wire axon::port_kind_t        kind,        // of this port
    // State of the link and of the peer.
    input  wire logic                    link_up,
    input  wire logic [7:0]              paused,      // priorities that must not start
    // Frames that are lost: one cycle for each.
    output logic [PORTS-1:0]             full_drop,
    output logic [PORTS-1:0]             bad_drop,
    output logic [PORTS-1:0]             port_down,
    output logic                         cpu_full_drop,
    output logic                         cpu_bad_drop,
    output logic                         cpu_port_down,
    // GMII, and the frame that has been sent.
    output logic [7:0]                   txd,
    output logic                         tx_en,
    output logic                         tx_er,
    output logic                         frame_done,  // with the last byte of the FCS
    output logic [13:0]                  frame_bytes, // without FCS
    output logic                         is_poisoned,
    output logic [PORTS-1:0][$clog2(BUFFER_BYTES):0] occupancies,
    output logic [$clog2(BUFFER_BYTES):0] cpu_occupancy
);
    // Of the buffers; place PORTS is the CPU's.
    logic [PORTS:0] has_frame, blocked, grant, leaving, symbol_valid, frame_out;
    logic [PORTS:0][8:0] read_symbol;
    logic read;
    logic [7:0] held; // without a link all may be thrown away
    assign held = link_up ? paused : '0;

    logic tx_clk;
    logic [PORTS:0] buffer_clk, is_busy;
    logic is_sending;
`ifdef AXON_MODEL
    assign is_busy = {cpu_announce || cpu_write, announce | write} | has_frame | leaving;
    assign is_sending = is_busy != '0 || tx_en;
`else // synthesis would share it with other logic, and need more of that
    assign {is_sending, is_busy} = '0;
`endif
    clock_gate #(.CLOCKS(PORTS + 2)) gate (
        .clk, .is_active({is_sending, is_busy}), .gated({tx_clk, buffer_clk})
    );

    for (genvar at = 0; at < PORTS; at++) begin : g_ingress
        buffer #(.BYTES(BUFFER_BYTES)) buffer_of_ingress (
            .clk(buffer_clk[at]), .rst, .announce(announce[at]),
            .frame_priority(priorities[at]), .is_stored(is_stored[at]), .paused(held),
            .write(write[at]), .write_symbol(symbols[at]),
            .full_drop(full_drop[at]), .bad_drop(bad_drop[at]), .has_frame(has_frame[at]),
            .is_blocked(blocked[at]), .take(grant[at]), .read(read),
            .read_valid(symbol_valid[at]), .read_symbol(read_symbol[at]),
            .frame_out(frame_out[at]), .occupancy(occupancies[at])
        );
    end
    buffer #(.BYTES(BUFFER_BYTES)) buffer_of_cpu (
        .clk(buffer_clk[PORTS]), .rst, .announce(cpu_announce), .frame_priority(cpu_priority),
        .is_stored(1'b1), .paused(held), .write(cpu_write), .write_symbol(cpu_symbol),
        .full_drop(cpu_full_drop), .bad_drop(cpu_bad_drop), .has_frame(has_frame[PORTS]),
        .is_blocked(blocked[PORTS]), .take(grant[PORTS]),
        .read(read), .read_valid(symbol_valid[PORTS]),
        .read_symbol(read_symbol[PORTS]), .frame_out(frame_out[PORTS]),
        .occupancy(cpu_occupancy)
    );

    // One frame leaves at a time, to the MAC or to nowhere.
    axon::symbol_t selected, symbol;
    logic has_symbol, tx_read, tx_ready, is_draining, drain_done;
    logic [2:0] drain_wait; // the reader must stay behind the writer
    always_comb begin
        selected = '0;
        for (int unsigned at = 0; at <= PORTS; at++) selected |= read_symbol[at] & {9{leaving[at]}};
        read = tx_read || (is_draining && drain_wait == 3'd0);
        drain_done = is_draining && frame_out != '0;
    end

    scheduler #(.INPUTS(PORTS)) scheduler_of_buffers (
        .clk(tx_clk), .rst, .has_frame(has_frame[PORTS-1:0]), .blocked(blocked[PORTS-1:0]),
        .cpu_has_frame(has_frame[PORTS]), .cpu_blocked(blocked[PORTS]), .ready(tx_ready),
        .grant(grant[PORTS-1:0]), .cpu_grant(grant[PORTS]), .leaving(leaving[PORTS-1:0]),
        .cpu_leaving(leaving[PORTS]), .done(frame_done || drain_done),
        .done_bytes(is_draining ? 14'd0 : frame_bytes)
    );

    logic          stamped_valid;
    axon::symbol_t stamped;
    egress_probe #(.PORTS(PORTS), .BUFFER_BYTES(BUFFER_BYTES), .PROBES(PROBES)) probe (
        .clk(tx_clk), .rst, .port, .kind, .time_now, .bytes_max, .begins(grant != '0),
        .is_from_cpu(leaving[PORTS]), .occupancies, .cpu_occupancy, .valid(has_symbol), .symbol,
        .out_valid(stamped_valid), .out_symbol(stamped)
    );

    gmii_tx transmitter (
        .clk(tx_clk), .rst, .start(link_up && grant != '0), .ready(tx_ready), .read(tx_read),
        .symbol(stamped), .symbol_valid(stamped_valid), .txd, .tx_en, .tx_er, .frame_done,
        .frame_bytes, .is_poisoned
    );

    always_ff @(posedge tx_clk) begin
        symbol <= selected;
        has_symbol <= symbol_valid != '0 && !is_draining && !rst;
        if (grant != '0) begin
            is_draining <= !link_up;
            drain_wait <= 3'd5;
        end else begin
            if (drain_done) is_draining <= 1'b0;
            drain_wait <= drain_wait - 3'(drain_wait != 3'd0);
        end
        {cpu_port_down, port_down} <= drain_done && !rst ? leaving : '0;
        if (rst) is_draining <= 1'b0;
    end

`ifdef FORMAL
    // No interleaving: from the cycle after the grant of a frame until its end has come out, no
    // other buffer gives symbols; each symbol that the MAC sees is of the buffer granted last.
    logic f_past = 1'b0;
    logic [PORTS:0] f_granted;
    logic f_within; // a frame has been granted, its end has not come out
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (grant != '0) f_granted <= grant;
        f_within <= !rst && (grant != '0 || (f_within && frame_out == '0));
    end
    always_comb begin
        if (!f_past) assume (rst);
    end
    always_comb if (f_past && !rst) begin
        a_one_source: assert (symbol_valid == '0 || (f_within && symbol_valid == f_granted
            && leaving == f_granted));
        a_one_frame: assert (grant == '0 || !f_within);
        a_one_grant: assert ((grant & (grant - 1'b1)) == '0 && (grant & ~has_frame) == '0);
        c_drained: cover (frame_out[PORTS] && is_draining);
        c_end: cover (frame_out != '0 && tx_en);
    end
`endif
endmodule
