// Register map of the device, from registers.toml: settings of the ports, tables of the routes,
// counters.
//
// Addresses count 32-bit words: block 0 is the device, block p + 1 is port p, 4096 words each. A
// write comes with its data in one cycle. The master waits two cycles after a read before the next,
// and, while frames arrive, 16 after a row of the route table: see route_writer.
//
// Timing: bus in cycle t; a register has its new value in t + 2; `reg_read_data` is valid in t + 2
// only. A read in t + 1 returns what a write in t has written.

`default_nettype none

module registers #(
    parameter int unsigned PORTS = 4, // 1 to 15
    parameter int unsigned HOP_BITS = 8,
    parameter int unsigned BUFFER_BYTES = 2048,
    parameter int unsigned ROUTES = 32
) (
    input  wire logic                    clk,
    input  wire logic                    rst,
    // Bus.
    input  wire logic [15:0]             reg_address,
    input  wire logic                    reg_write,
    input  wire logic [31:0]             reg_write_data,
    input  wire logic                    reg_read,
    output logic [31:0]                  reg_read_data,
    // Settings.
    input  wire logic [63:0]             time_now,
    output logic                         time_high_write,
    output logic                         time_low_write,
    input  wire logic [PORTS-1:0]        ups,
    output logic [PORTS-1:0][1:0]        kinds,
    output logic [PORTS-1:0]             stores_frames,
    output logic [PORTS-1:0]             punts_resolution,
    output logic [PORTS-1:0][13:0]       frame_bytes_max,
    output logic [PORTS-1:0][13:0]       bytes_max,
    output logic [PORTS-1:0][13:0]       route_bytes_max,
    // Routes.
    output logic [PORTS-1:0][ROUTES-1:0] valid,
    output logic [PORTS-1:0][ROUTES-1:0] by_source,
    input  wire logic [PORTS-1:0]        head_first, // of gmii_rx
    output logic [PORTS-1:0]             row_write,
    output logic [PORTS-1:0]             attributes_write,
    output logic [PORTS-1:0]             memory_write,
    output logic [9:0]                   write_address,
    output logic [31:0]                  write_data,  // memory_write: four times the byte
    // Counters: bit 0 is of the CPU, bit p + 1 of port p. The data follow after two cycles, and
    // are 0 where nothing is read.
    output logic [PORTS:0]               counter_read,
    output logic [4:0]                   counter_index,
    input  wire logic [PORTS:0][31:0]    counter_data
);
    function automatic logic is_table(
        input logic [11:0] offset, input logic [11:0] start, input int unsigned bits
    );
        is_table = (offset ^ start) >> bits == 12'd0;
    endfunction

    // Bus registers. That of a write holds until the next write. Of a read they hold which register
    // of its block is read, and which block, if it is a register.
    logic [15:0]    written;
    logic           writes;
    logic [15:0]    picks;
    logic [PORTS:0] is_read;
    always_ff @(posedge clk) begin
        if (reg_write) begin
            written <= reg_address;
            write_data <= reg_write_data;
            // The byte of a route goes to any of four places of a word.
            if (is_table(reg_address[11:0], register_map::TABLE_MEMORY,
                register_map::TABLE_MEMORY_BITS)) write_data <= {4{reg_write_data[7:0]}};
        end
        writes <= reg_write && !rst;
        picks <= 16'd1 << reg_address[3:0];
        for (int unsigned at = 0; at <= PORTS; at++)
            is_read[at] <= reg_address[15:4] == {4'(at), 8'd0};
    end
    assign write_address = written[9:0];
    assign counter_index = reg_address[register_map::COUNTERS_BITS-1:0];

    logic is_attributes, is_memory, is_row, reads_counter;
    always_comb begin
        is_attributes = is_table(written[11:0], register_map::TABLE_ATTRIBUTES,
            register_map::TABLE_ATTRIBUTES_BITS);
        is_memory = is_table(written[11:0], register_map::TABLE_MEMORY,
            register_map::TABLE_MEMORY_BITS);
        is_row = is_table(written[11:0], register_map::TABLE_ROW, register_map::TABLE_ROW_BITS);
        reads_counter = reg_read && is_table(reg_address[11:0], register_map::COUNTERS,
            register_map::COUNTERS_BITS);
    end

    // Ports.
    logic [PORTS-1:0]       is_row_of;
    logic [PORTS-1:0][31:0] words;
    assign counter_read[0] = reg_address[15:12] == 4'd0 && reads_counter;
    for (genvar port = 0; port < PORTS; port++) begin : ports
        logic is_written;
        assign is_written = written[15:12] == 4'(port + 1);
        assign is_row_of[port] = is_written && is_row;
        assign attributes_write[port] = writes && is_written && is_attributes;
        assign memory_write[port] = writes && is_written && is_memory;
        assign counter_read[port+1] = reg_address[15:12] == 4'(port + 1) && reads_counter;
        port_registers #(.ROUTES(ROUTES)) of_port (
            .clk, .rst, .write(writes && is_written), .write_address(written[11:0]), .write_data,
            .read(is_read[port+1]), .picks, .word(words[port]), .up(ups[port]), .kind(kinds[port]),
            .stores_frames(stores_frames[port]), .punts_resolution(punts_resolution[port]),
            .frame_bytes_max(frame_bytes_max[port]),
            .bytes_max(bytes_max[port]), .route_bytes_max(route_bytes_max[port]),
            .valid(valid[port]), .by_source(by_source[port])
        );
    end
    route_writer #(.PORTS(PORTS)) writer (
        .clk, .rst, .head_first, .selected(is_row_of), .begins(writes), .bus_write(reg_write),
        .row_write
    );

    assign time_high_write = writes && written == {4'd0, register_map::DEVICE_TIME_HIGH};
    assign time_low_write = writes && written == {4'd0, register_map::DEVICE_TIME_LOW};

    // Reads. Each block gives its word; all that is not read is 0.
    logic [31:0] device_word;
    always_ff @(posedge clk) begin
        device_word <= 32'd0;
        if (picks[register_map::DEVICE_MAGIC[3:0]])
            device_word <= register_map::DEVICE_MAGIC_VALUE;
        if (picks[register_map::DEVICE_VERSION[3:0]])
            device_word <= register_map::DEVICE_VERSION_VALUE;
        if (picks[register_map::DEVICE_PORTS[3:0]]) device_word <= PORTS;
        if (picks[register_map::DEVICE_HOP_BITS[3:0]]) device_word <= HOP_BITS;
        if (picks[register_map::DEVICE_BUFFER_BYTES[3:0]]) device_word <= BUFFER_BYTES;
        if (picks[register_map::DEVICE_ROUTES[3:0]]) device_word <= ROUTES;
        if (picks[register_map::DEVICE_TIME_HIGH[3:0]]) device_word <= time_now[63:32];
        if (picks[register_map::DEVICE_TIME_LOW[3:0]]) device_word <= time_now[31:0];
        if (!is_read[0]) device_word <= 32'd0;
    end
    always_comb begin
        reg_read_data = device_word | counter_data[PORTS];
        for (int unsigned at = 0; at < PORTS; at++)
            reg_read_data = reg_read_data | words[at] | counter_data[at];
    end
endmodule
