// The Axon device: a switch of PORTS ports with GMII, a port of symbols for its CPU, and a bus of
// registers (thesis 000 section 3). This module is wiring only.
//
//     gmii_rx -> ingress -> egress of each port (buffers, scheduler, gmii_tx)
//                        -> cpu_egress -> punt stream
//     inject stream -> inject -> egress of each port
//
// Timing, first byte of the preamble at the pins of an idle device in cycle 0: it leaves in cycle
// 18 from Axon port to Axon port with hops of 8 bits, and in cycle 26 from a host port.

`default_nettype none

module axon_device #(
    parameter int unsigned PORTS = 4,    // 1 to 15
    parameter int unsigned HOP_BITS = 8, // 4, 8 or 16
    parameter int unsigned BUFFER_BYTES = 2048,
    parameter int unsigned ROUTES = 32,
    // Parts that not every device needs.
    parameter logic PROBES = 1'b0,     // probe units, and a time
    parameter logic MASQUERADES = 1'b0 // address resolution ends at the CPU where it has to
) (
    input  wire logic               clk, // 125 MHz; all inputs are synchronous to it
    input  wire logic               rst,
    // GMII; port p has the bits from 8 p on of the data.
    input  wire logic [8*PORTS-1:0] rxd,
    input  wire logic [PORTS-1:0]   rx_dv,
    input  wire logic [PORTS-1:0]   rx_er,
    output logic [8*PORTS-1:0]      txd,
    output logic [PORTS-1:0]        tx_en,
    output logic [PORTS-1:0]        tx_er,
    input  wire logic [PORTS-1:0]   link_up, // carrier, from the PHY
    // Registers.
    input  wire logic [15:0]        reg_address,
    input  wire logic               reg_write,
    input  wire logic [31:0]        reg_write_data,
    input  wire logic               reg_read,
    output logic [31:0]             reg_read_data,
    // CPU: frames to it, frames from it, as values of axon::symbol_t.
    output logic                    punt_valid,
    output logic [8:0]              punt_symbol,
    input  wire logic               punt_ready,
    input  wire logic               inject_valid,
    input  wire logic [8:0]         inject_symbol,
    output logic                    inject_ready
);
    // Settings.
    logic [63:0]                  time_now;
    logic                         time_high_write, time_low_write;
    logic [PORTS-1:0][1:0]        kinds;
    logic [PORTS-1:0]             stores_frames, punts_resolution, head_first;
    logic [PORTS-1:0][13:0]       frame_bytes_max, bytes_max, route_bytes_max;
    logic [PORTS-1:0][ROUTES-1:0] valid, by_source;
    logic [PORTS-1:0]             row_write, attributes_write, memory_write;
    logic [9:0]                   write_address;
    logic [31:0]                  write_data;
    logic [PORTS:0]               counter_read;
    logic [4:0]                   counter_index;
    logic [PORTS:0][31:0]         counter_data;
    logic                         settings_clk;
    clock_gate gate_of_settings (
        .clk, .is_active(reg_write || reg_read || head_first != '0), .gated(settings_clk)
    );
    registers #(
        .PORTS(PORTS), .HOP_BITS(HOP_BITS), .BUFFER_BYTES(BUFFER_BYTES), .ROUTES(ROUTES)
    ) settings (
        .clk(settings_clk), .rst, .reg_address, .reg_write, .reg_write_data, .reg_read,
        .reg_read_data, .time_now, .time_high_write, .time_low_write, .ups(link_up), .kinds,
        .stores_frames, .punts_resolution, .frame_bytes_max, .bytes_max, .route_bytes_max, .valid,
        .by_source, .head_first, .row_write, .attributes_write, .memory_write, .write_address,
        .write_data, .counter_read, .counter_index, .counter_data
    );

    device_time #(.IS_PRESENT(PROBES)) counter_of_time (
        .clk, .rst, .write_high(time_high_write), .write_low(time_low_write), .write_data, .time_now
    );

    // Between ingresses and egresses. Names with `to_` are by egress, then ingress.
    logic [PORTS-1:0][PORTS-1:0] to_announce, to_write, full_drop, bad_drop, port_down;
    logic [PORTS-1:0]            announce_cpu, write_cpu, cpu_full_drop, cpu_bad_drop, is_stored;
    logic [PORTS-1:0][2:0]       priorities;
    logic [PORTS-1:0][8:0]       symbols; // axon::symbol_t, of which Yosys indexes no array
    // Between inject and egresses.
    logic [PORTS-1:0]            inject_announce, inject_write;
    logic [PORTS-1:0]            inject_full_drop, inject_bad_drop, inject_port_down;
    axon::symbol_t               injected;

    for (genvar port = 0; port < PORTS; port++) begin : ports
        logic             head_valid, head_end, body_valid, is_bad_fcs, is_runt, is_giant;
        logic             rx_done, no_start;
        logic [7:0]       head_data;
        logic [13:0]      rx_bytes;
        logic             rx_clk;
        clock_gate rx_gate (.clk, .is_active(rx_dv[port]), .gated(rx_clk));
        axon::symbol_t    body;
        gmii_rx receiver (
            .clk(rx_clk), .rst, .rxd(rxd[8*port +: 8]), .rx_dv(rx_dv[port]),
            .rx_er(rx_er[port]), .bytes_max(bytes_max[port]), .head_valid, .head_data,
            .head_first(head_first[port]), .head_end, .body_valid, .body, .frame_done(rx_done),
            .frame_bytes(rx_bytes), .is_bad_fcs, .is_runt, .is_giant, .no_start
        );

        // Flow control will take MAC control frames.
        /* verilator lint_off UNUSEDSIGNAL */
        logic             mac_control_valid;
        /* verilator lint_on UNUSEDSIGNAL */
        logic [PORTS-1:0] announce, write;
        axon::symbol_t    symbol;
        assign symbols[port] = symbol;
        logic             refused, ingress_drop_valid, ingress_punt_valid, drop_valid, has_punt;
        axon::drop_t      ingress_drop, drop;
        axon::punt_t      ingress_punt, punt;
        ingress #(
            .PORTS(PORTS), .HOP_BITS(HOP_BITS), .ROUTES(ROUTES), .PROBES(PROBES),
            .MASQUERADES(MASQUERADES)
        ) ingress_of_port (
            .clk(rx_clk), .rst, .port(4'(port)), .head_valid, .head_data,
            .head_first(head_first[port]), .head_end, .body_valid, .body, .is_bad_fcs, .is_runt,
            .is_giant, .kind(axon::port_kind_t'(kinds[port])), .stores_frames(stores_frames[port]),
            .punts_resolution(punts_resolution[port]), .time_now, .bytes_max(bytes_max[port]),
            .frame_bytes_max(frame_bytes_max[port]),
            .route_bytes_max({2'd0, route_bytes_max[port]}), .kinds, .ups(link_up),
            .valid(valid[port]), .by_source(by_source[port]), .row_write(row_write[port]),
            .attributes_write(attributes_write[port]), .memory_write(memory_write[port]),
            .write_address, .write_data, .announce, .cpu_announce(announce_cpu[port]),
            .frame_priority(priorities[port]), .is_stored(is_stored[port]), .write,
            .cpu_write(write_cpu[port]), .mac_control_valid, .symbol, .refused,
            .drop_valid(ingress_drop_valid), .drop(ingress_drop),
            .punt_valid(ingress_punt_valid), .punt(ingress_punt)
        );

        logic [PORTS-1:0] full_drop_here, bad_drop_here, port_down_here;
        for (genvar to = 0; to < PORTS; to++) begin : outputs
            assign to_announce[to][port] = announce[to];
            assign to_write[to][port] = write[to];
            assign full_drop_here[to] = full_drop[to][port];
            assign bad_drop_here[to] = bad_drop[to][port];
            assign port_down_here[to] = port_down[to][port];
        end

        // Flow control will use occupancies.
        /* verilator lint_off UNUSEDSIGNAL */
        logic [PORTS-1:0][$clog2(BUFFER_BYTES):0] occupancies;
        logic [$clog2(BUFFER_BYTES):0]            cpu_occupancy;
        /* verilator lint_on UNUSEDSIGNAL */
        logic        tx_done, is_poisoned;
        logic [13:0] tx_bytes;
        egress #(
            .PORTS(PORTS), .BUFFER_BYTES(BUFFER_BYTES), .PROBES(PROBES)
        ) egress_of_port (
            .clk, .rst, .announce(to_announce[port]), .priorities, .is_stored,
            .write(to_write[port]), .symbols, .cpu_announce(inject_announce[port]),
            .cpu_priority(3'd7), .cpu_write(inject_write[port]), .cpu_symbol(injected),
            .port(4'(port)), .time_now, .bytes_max(bytes_max[port]),
            .kind(axon::port_kind_t'(kinds[port])), .link_up(link_up[port]), .paused(8'd0),
            .full_drop(full_drop[port]), .bad_drop(bad_drop[port]), .port_down(port_down[port]),
            .cpu_full_drop(inject_full_drop[port]), .cpu_bad_drop(inject_bad_drop[port]),
            .cpu_port_down(inject_port_down[port]), .txd(txd[8*port +: 8]), .tx_en(tx_en[port]),
            .tx_er(tx_er[port]), .frame_done(tx_done), .frame_bytes(tx_bytes), .is_poisoned,
            .occupancies, .cpu_occupancy
        );

        fates fate (
            .clk(rx_clk), .rst, .ingress_drop_valid, .ingress_drop, .ingress_punt_valid,
            .ingress_punt, .ends_at_output((write != '0 || write_cpu[port]) && symbol.is_end),
            .is_full_drop(full_drop_here != '0 || cpu_full_drop[port]),
            .is_bad_drop(bad_drop_here != '0 || cpu_bad_drop[port]),
            .drop_valid, .drop, .punt_valid(has_punt), .punt
        );
        counters #(.OUTPUTS(PORTS)) of_port (
            .clk, .rst, .no_start, .rx_done, .rx_is_runt(is_runt), .rx_bytes, .tx_done,
            .tx_is_poisoned(is_poisoned), .tx_bytes, .refused, .drop_valid, .drop,
            .punt_valid(has_punt), .punt, .port_down(port_down_here),
            .read(counter_read[port+1]), .read_index(counter_index),
            .read_data(counter_data[port+1])
        );
    end

    // The CPU.
    /* verilator lint_off UNUSEDSIGNAL */ // flow control will use it
    logic [PORTS-1:0][$clog2(BUFFER_BYTES):0] punt_occupancies;
    /* verilator lint_on UNUSEDSIGNAL */
    cpu_egress #(.PORTS(PORTS), .BUFFER_BYTES(BUFFER_BYTES)) egress_of_cpu (
        .clk, .rst, .announce(announce_cpu), .write(write_cpu), .symbols,
        .full_drop(cpu_full_drop), .bad_drop(cpu_bad_drop), .punt_valid, .punt_symbol, .punt_ready,
        .occupancies(punt_occupancies)
    );
    logic no_such_port, cpu_clk;
    clock_gate gate_of_cpu (.clk, .is_active(inject_valid || punt_valid), .gated(cpu_clk));
    inject #(.PORTS(PORTS)) injector (
        .clk(cpu_clk), .rst, .inject_valid, .inject_symbol, .inject_ready,
        .announce(inject_announce), .write(inject_write), .symbol(injected), .no_such_port
    );
    cpu_counters #(.PORTS(PORTS)) of_cpu (
        .clk(cpu_clk), .rst, .inject_valid(inject_valid && inject_ready),
        .inject_end(inject_symbol[8]), .punt_valid(punt_valid && punt_ready),
        .punt_end(punt_symbol[8]), .no_such_port, .full_drop(inject_full_drop),
        .bad_drop(inject_bad_drop), .port_down(inject_port_down),
        .read(counter_read[0]), .read_index(counter_index), .read_data(counter_data[0])
    );
endmodule
