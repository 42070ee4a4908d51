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
    input  wire logic [PORTS-1:0]        ups,
    output logic [PORTS-1:0][1:0]        kinds,
    output logic [PORTS-1:0]             stores_frames,
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
    output logic [31:0]                  write_data,
    // Counters: bit 0 is of the CPU, bit p + 1 of port p. The data follow after two cycles, and
    // are 0 where nothing is read.
    output logic [PORTS:0]               counter_read,
    output logic [4:0]                   counter_index,
    input  wire logic [PORTS:0][31:0]    counter_data
);
    localparam int unsigned PORT_BITS = PORTS == 1 ? 1 : $clog2(PORTS);

    // Bus registers. That of a write holds until the next write.
    logic [15:0] written, address;
    logic        writes;
    always_ff @(posedge clk) begin
        if (reg_write) {written, write_data} <= {reg_address, reg_write_data};
        writes <= reg_write && !rst;
        address <= reg_address;
    end
    assign write_address = written[9:0];
    assign counter_index = reg_address[register_map::COUNTERS_BITS-1:0];

    function automatic logic is_table(
        input logic [11:0] offset, input logic [11:0] start, input int unsigned bits
    );
        is_table = (offset ^ start) >> bits == 12'd0;
    endfunction

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
    logic [PORTS-1:0]            is_row_of;
    logic [PORTS-1:0][7:0][31:0] words;
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
            .words(words[port]), .up(ups[port]), .kind(kinds[port]),
            .stores_frames(stores_frames[port]), .frame_bytes_max(frame_bytes_max[port]),
            .bytes_max(bytes_max[port]), .route_bytes_max(route_bytes_max[port]),
            .valid(valid[port]), .by_source(by_source[port])
        );
    end
    route_writer #(.PORTS(PORTS)) writer (
        .clk, .rst, .head_first, .selected(is_row_of), .begins(writes), .bus_write(reg_write),
        .row_write
    );

    // Reads: registers are the first eight words of a block. All that is not addressed is 0.
    logic [31:0] device_word, word;
    logic        is_register;
    always_comb begin
        case (address[2:0])
            register_map::DEVICE_MAGIC[2:0]: device_word = register_map::DEVICE_MAGIC_VALUE;
            register_map::DEVICE_VERSION[2:0]: device_word = register_map::DEVICE_VERSION_VALUE;
            register_map::DEVICE_PORTS[2:0]: device_word = PORTS;
            register_map::DEVICE_HOP_BITS[2:0]: device_word = HOP_BITS;
            register_map::DEVICE_BUFFER_BYTES[2:0]: device_word = BUFFER_BYTES;
            register_map::DEVICE_ROUTES[2:0]: device_word = ROUTES;
            default: device_word = 32'd0;
        endcase
        is_register = address[11:3] == 9'd0 && address[15:12] <= 4'(PORTS);
        reg_read_data = word;
        for (int unsigned at = 0; at <= PORTS; at++)
            reg_read_data = reg_read_data | counter_data[at];
    end
    always_ff @(posedge clk) begin
        word <= address[15:12] == 4'd0 ? device_word
            : words[PORT_BITS'(address[15:12] - 4'd1)][address[2:0]];
        if (!is_register) word <= 32'd0;
    end
endmodule
