// Registers of a port: see registers.toml.
//
// Timing: a write in cycle t is in the outputs in t + 1. `word` comes in the cycle after `read`.

`default_nettype none

module port_registers #(
    parameter int unsigned ROUTES = 32
) (
    input  wire logic              clk,
    input  wire logic              rst,
    input  wire logic              write,
    input  wire logic [11:0]       write_address,
    input  wire logic [31:0]       write_data,
    input  wire logic              read,
    input  wire logic [15:0]       picks,           // which of the registers, one bit
    output logic [31:0]            word,            // 0 if none is read
    input  wire logic              up,
    output logic [1:0]             kind,
    output logic                   stores_frames,
    output logic                   punts_resolution,
    output logic [13:0]            frame_bytes_max,
    output logic [13:0]            bytes_max,
    output logic [13:0]            route_bytes_max,
    output logic [ROUTES-1:0]      valid,
    output logic [ROUTES-1:0]      by_source
);
    always_ff @(posedge clk) begin
        if (write) begin
            case (write_address)
                register_map::PORT_KIND: kind <= write_data[1:0];
                register_map::PORT_IS_STORED: stores_frames <= write_data[0];
                register_map::PORT_PUNTS_RESOLUTION: punts_resolution <= write_data[0];
                register_map::PORT_FRAME_BYTES_MAX: frame_bytes_max <= write_data[13:0];
                register_map::PORT_BYTES_MAX: bytes_max <= write_data[13:0];
                register_map::PORT_ROUTE_BYTES_MAX: route_bytes_max <= write_data[13:0];
                register_map::PORT_VALID: valid <= write_data[ROUTES-1:0];
                register_map::PORT_BY_SOURCE: by_source <= write_data[ROUTES-1:0];
                default: ;
            endcase
        end
        if (rst) begin
            kind <= register_map::PORT_KIND_DEFAULT;
            stores_frames <= register_map::PORT_IS_STORED_DEFAULT;
            punts_resolution <= register_map::PORT_PUNTS_RESOLUTION_DEFAULT;
            frame_bytes_max <= register_map::PORT_FRAME_BYTES_MAX_DEFAULT;
            bytes_max <= register_map::PORT_BYTES_MAX_DEFAULT;
            route_bytes_max <= register_map::PORT_ROUTE_BYTES_MAX_DEFAULT;
            valid <= register_map::PORT_VALID_DEFAULT[ROUTES-1:0];
            by_source <= register_map::PORT_BY_SOURCE_DEFAULT[ROUTES-1:0];
        end
    end

    always_ff @(posedge clk) begin
        word <= ({32{picks[register_map::PORT_KIND[3:0]]}} & 32'(kind))
            | ({32{picks[register_map::PORT_UP[3:0]]}} & 32'(up))
            | ({32{picks[register_map::PORT_IS_STORED[3:0]]}} & 32'(stores_frames))
            | ({32{picks[register_map::PORT_FRAME_BYTES_MAX[3:0]]}} & 32'(frame_bytes_max))
            | ({32{picks[register_map::PORT_BYTES_MAX[3:0]]}} & 32'(bytes_max))
            | ({32{picks[register_map::PORT_ROUTE_BYTES_MAX[3:0]]}} & 32'(route_bytes_max))
            | ({32{picks[register_map::PORT_VALID[3:0]]}} & 32'(valid))
            | ({32{picks[register_map::PORT_BY_SOURCE[3:0]]}} & 32'(by_source))
            | ({32{picks[register_map::PORT_PUNTS_RESOLUTION[3:0]]}} & 32'(punts_resolution));
        if (!read) word <= 32'd0;
    end
endmodule
