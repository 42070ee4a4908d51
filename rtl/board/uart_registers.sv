// Reads and writes of registers over a serial line.
//
// A request is "W", address (2 bytes), data (4 bytes), answered with "w"; or "R", address
// (2 bytes), answered with "r", data (4 bytes). Numbers have their high byte first. Any other byte
// in place of a command is ignored. A request whose next byte does not come in TIMEOUT cycles is
// forgotten: a program that has lost its place waits that long and begins anew.
//
// The bus: `write` or `read` for one cycle, with `address` (and `write_data`). What is read is on
// `read_data` READ_LATENCY cycles later.

`default_nettype none

module uart_registers #(
    parameter int unsigned CLOCKS_PER_BIT = 1085, // 115200 bit/s at 125 MHz
    parameter int unsigned TIMEOUT = 12_500_000,  // 0.1 s
    parameter int unsigned READ_LATENCY = 1
) (
    input  wire logic        clk,
    input  wire logic        rst,
    input  wire logic        line_in,
    output logic             line_out,

    output logic [15:0]      address,
    output logic             write,
    output logic [31:0]      write_data,
    output logic             read,
    input  wire logic [31:0] read_data
);
    logic       received, send, is_ready;
    logic [7:0] received_data, send_data;

    uart #(.CLOCKS_PER_BIT(CLOCKS_PER_BIT)) line (
        .clk, .rst, .line_in, .line_out, .received, .received_data, .send, .send_data, .is_ready
    );

    // The request. `missing` counts the bytes that are still to come.
    localparam int unsigned TIMEOUT_BITS = $clog2(TIMEOUT + 1);
    logic [2:0]              missing;
    logic                    is_write;
    logic [TIMEOUT_BITS-1:0] waited;

    always_ff @(posedge clk) begin
        write  <= 0;
        read   <= 0;
        waited <= waited + 1;
        if (received) begin
            waited <= 0;
            if (missing == 0) begin
                is_write <= received_data == "W";
                if (received_data == "W") missing <= 6;
                if (received_data == "R") missing <= 2;
            end else begin
                missing <= missing - 1;
                if (missing > 4 || !is_write) address <= {address[7:0], received_data};
                else write_data <= {write_data[23:0], received_data};
                write <= missing == 1 && is_write;
                read  <= missing == 1 && !is_write;
            end
        end else if (waited == TIMEOUT_BITS'(TIMEOUT)) begin
            waited  <= 0;
            missing <= 0;
        end
        if (rst) begin
            missing <= 0;
            waited  <= 0;
        end
    end

    // The answer: up to five bytes, the first at the top. A request is longer than its answer or
    // as long, so that an answer is always gone before the next one.
    logic [READ_LATENCY-1:0] reading;
    logic [39:0]             answer;
    logic [2:0]              answer_bytes;

    assign send      = answer_bytes != 0;
    assign send_data = answer[39:32];

    always_ff @(posedge clk) begin
        reading <= READ_LATENCY'({reading, read});
        if (send && is_ready) begin
            answer_bytes <= answer_bytes - 1;
            answer       <= answer << 8;
        end
        if (write) begin
            answer_bytes <= 1;
            answer       <= {"w", 32'd0};
        end
        if (reading[READ_LATENCY-1]) begin
            answer_bytes <= 5;
            answer       <= {"r", read_data};
        end
        if (rst) begin
            answer_bytes <= 0;
            reading      <= 0;
        end
    end
endmodule
