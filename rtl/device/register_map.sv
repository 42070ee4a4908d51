// Register map of the device: made by registers.py from registers.toml; do not edit.
//
// Addresses count 32-bit words: offsets within the block of the device or of a port, and
// numbers of counters.

`default_nettype none

// Not every module uses every constant.
/* verilator lint_off UNUSEDPARAM */
package register_map;
    localparam int unsigned BLOCK_BITS = 12;

    // Registers of the device.
    localparam logic [11:0] DEVICE_MAGIC = 12'h000;
    localparam logic [31:0] DEVICE_MAGIC_VALUE = 32'h41584f4e;
    localparam logic [11:0] DEVICE_VERSION = 12'h001;
    localparam logic [31:0] DEVICE_VERSION_VALUE = 32'h2;
    localparam logic [11:0] DEVICE_PORTS = 12'h002;
    localparam logic [11:0] DEVICE_HOP_BITS = 12'h003;
    localparam logic [11:0] DEVICE_BUFFER_BYTES = 12'h004;
    localparam logic [11:0] DEVICE_ROUTES = 12'h005;
    localparam logic [11:0] DEVICE_TIME_HIGH = 12'h006;
    localparam int unsigned DEVICE_TIME_HIGH_BITS = 32;
    localparam logic [31:0] DEVICE_TIME_HIGH_DEFAULT = 32'd0;
    localparam logic [11:0] DEVICE_TIME_LOW = 12'h007;
    localparam int unsigned DEVICE_TIME_LOW_BITS = 32;
    localparam logic [31:0] DEVICE_TIME_LOW_DEFAULT = 32'd0;

    // Registers of a port.
    localparam logic [11:0] PORT_KIND = 12'h000;
    localparam int unsigned PORT_KIND_BITS = 2;
    localparam logic [1:0] PORT_KIND_DEFAULT = 2'd0;
    localparam logic [11:0] PORT_UP = 12'h001;
    localparam logic [11:0] PORT_IS_STORED = 12'h002;
    localparam int unsigned PORT_IS_STORED_BITS = 1;
    localparam logic [0:0] PORT_IS_STORED_DEFAULT = 1'd0;
    localparam logic [11:0] PORT_FRAME_BYTES_MAX = 12'h003;
    localparam int unsigned PORT_FRAME_BYTES_MAX_BITS = 14;
    localparam logic [13:0] PORT_FRAME_BYTES_MAX_DEFAULT = 14'd1514;
    localparam logic [11:0] PORT_BYTES_MAX = 12'h004;
    localparam int unsigned PORT_BYTES_MAX_BITS = 14;
    localparam logic [13:0] PORT_BYTES_MAX_DEFAULT = 14'd1642;
    localparam logic [11:0] PORT_ROUTE_BYTES_MAX = 12'h005;
    localparam int unsigned PORT_ROUTE_BYTES_MAX_BITS = 14;
    localparam logic [13:0] PORT_ROUTE_BYTES_MAX_DEFAULT = 14'd128;
    localparam logic [11:0] PORT_VALID = 12'h006;
    localparam int unsigned PORT_VALID_BITS = 32;
    localparam logic [31:0] PORT_VALID_DEFAULT = 32'd0;
    localparam logic [11:0] PORT_BY_SOURCE = 12'h007;
    localparam int unsigned PORT_BY_SOURCE_BITS = 32;
    localparam logic [31:0] PORT_BY_SOURCE_DEFAULT = 32'd0;
    localparam logic [11:0] PORT_PUNTS_RESOLUTION = 12'h008;
    localparam int unsigned PORT_PUNTS_RESOLUTION_BITS = 1;
    localparam logic [0:0] PORT_PUNTS_RESOLUTION_DEFAULT = 1'd0;

    // Tables of a port, aligned to their length.
    localparam logic [11:0] TABLE_ATTRIBUTES = 12'h080;
    localparam int unsigned TABLE_ATTRIBUTES_BITS = 5;
    localparam logic [11:0] TABLE_MEMORY = 12'h400;
    localparam int unsigned TABLE_MEMORY_BITS = 10;
    localparam logic [11:0] TABLE_ROW = 12'h800;
    localparam int unsigned TABLE_ROW_BITS = 9;

    // Counters of a port, and of the CPU in the block of the device.
    localparam logic [11:0] COUNTERS = 12'h040;
    localparam int unsigned COUNTERS_BITS = 5;
    localparam logic [4:0] COUNTER_RX_FRAMES = 5'd0;
    localparam logic [4:0] COUNTER_RX_BYTES = 5'd1;
    localparam logic [4:0] COUNTER_TX_FRAMES = 5'd2;
    localparam logic [4:0] COUNTER_TX_BYTES = 5'd3;
    localparam logic [4:0] COUNTER_RUNTS = 5'd4;
    localparam logic [4:0] COUNTER_NO_START = 5'd5;
    localparam logic [4:0] COUNTER_POISONED = 5'd6;
    localparam logic [4:0] COUNTER_MALFORMED = 5'd7;
    localparam logic [4:0] COUNTER_BAD_FCS = 5'd8;
    localparam logic [4:0] COUNTER_OVERSIZED = 5'd9;
    localparam logic [4:0] COUNTER_QUEUE_FULL = 5'd10;
    localparam logic [4:0] COUNTER_PORT_DOWN = 5'd11;
    localparam logic [4:0] COUNTER_PORT_UNKNOWN = 5'd12;
    localparam logic [4:0] COUNTER_NO_SUCH_PORT = 5'd13;
    localparam logic [4:0] COUNTER_MAC_CONTROL = 5'd14;
    localparam logic [4:0] COUNTER_ROUTE_TOO_LONG = 5'd15;
    localparam logic [4:0] COUNTER_EGRESS_UNKNOWN = 5'd16;
    localparam logic [4:0] COUNTER_MISS = 5'd17;
    localparam logic [4:0] COUNTER_ADDRESSED = 5'd18;
    localparam logic [4:0] COUNTER_ERROR = 5'd19;
    localparam logic [4:0] COUNTER_LINK_LOCAL = 5'd20;

    function automatic logic [4:0] counter_of_drop(input axon::drop_t drop);
        case (drop)
            axon::DROP_BAD_FCS: counter_of_drop = COUNTER_BAD_FCS;
            axon::DROP_OVERSIZED: counter_of_drop = COUNTER_OVERSIZED;
            axon::DROP_QUEUE_FULL: counter_of_drop = COUNTER_QUEUE_FULL;
            axon::DROP_PORT_DOWN: counter_of_drop = COUNTER_PORT_DOWN;
            axon::DROP_PORT_UNKNOWN: counter_of_drop = COUNTER_PORT_UNKNOWN;
            axon::DROP_NO_SUCH_PORT: counter_of_drop = COUNTER_NO_SUCH_PORT;
            axon::DROP_MAC_CONTROL: counter_of_drop = COUNTER_MAC_CONTROL;
            axon::DROP_ROUTE_TOO_LONG: counter_of_drop = COUNTER_ROUTE_TOO_LONG;
            axon::DROP_EGRESS_UNKNOWN: counter_of_drop = COUNTER_EGRESS_UNKNOWN;
            default: counter_of_drop = COUNTER_MALFORMED;
        endcase
    endfunction

    function automatic logic [4:0] counter_of_punt(input axon::punt_t punt);
        case (punt)
            axon::PUNT_ADDRESSED: counter_of_punt = COUNTER_ADDRESSED;
            axon::PUNT_ERROR: counter_of_punt = COUNTER_ERROR;
            axon::PUNT_LINK_LOCAL: counter_of_punt = COUNTER_LINK_LOCAL;
            default: counter_of_punt = COUNTER_MISS;
        endcase
    endfunction
endpackage
/* verilator lint_on UNUSEDPARAM */
