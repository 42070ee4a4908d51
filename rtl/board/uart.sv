// Bytes over a serial line, 8 data bits, no parity, one stop bit, in both directions.
//
// A bit lasts CLOCKS_PER_BIT cycles. The receiver waits for the falling edge of a start bit, looks
// again in its middle, and takes each bit in its middle; a byte whose stop bit is low is dropped.
// The transmitter takes `send_data` with `send` while `is_ready`.

`default_nettype none

module uart #(
    parameter int unsigned CLOCKS_PER_BIT = 1085 // 115200 bit/s at 125 MHz
) (
    input  wire logic       clk,
    input  wire logic       rst,
    input  wire logic       line_in, // asynchronous
    output logic            line_out,

    output logic            received, // one cycle
    output logic [7:0]      received_data,
    input  wire logic       send,
    input  wire logic [7:0] send_data,
    output logic            is_ready
);
    localparam int unsigned BITS = $clog2(CLOCKS_PER_BIT);
    localparam logic [BITS-1:0] LAST = BITS'(CLOCKS_PER_BIT - 1);
    localparam logic [BITS-1:0] MIDDLE = BITS'(CLOCKS_PER_BIT / 2);

    // Receiver. The line passes two registers before anything depends on it.
    logic            line_0, line_1;
    logic [3:0]      receive_bit; // 0: idle, 1: start bit, 2..9: data, 10: stop bit
    logic [BITS-1:0] receive_clock;

    always_ff @(posedge clk) begin
        line_0   <= line_in;
        line_1   <= line_0;
        received <= 0;
        receive_clock <= receive_clock == LAST ? 0 : receive_clock + 1;
        if (receive_bit == 0) begin
            receive_clock <= 0;
            if (!line_1) receive_bit <= 1;
        end else if (receive_clock == MIDDLE) begin
            receive_bit <= receive_bit + 1;
            if (receive_bit == 1 && line_1) receive_bit <= 0; // a spike, not a start bit
            if (receive_bit >= 2 && receive_bit <= 9)
                received_data <= {line_1, received_data[7:1]};
            if (receive_bit == 10) begin
                receive_bit <= 0;
                received    <= line_1;
            end
        end
        if (rst) receive_bit <= 0;
    end

    // Transmitter: start bit, data, stop bit shift out of `sending`.
    logic [3:0]      send_bits; // that are left
    logic [8:0]      sending;
    logic [BITS-1:0] send_clock;

    assign is_ready = send_bits == 0;

    always_ff @(posedge clk) begin
        send_clock <= send_clock == LAST ? 0 : send_clock + 1;
        if (is_ready) begin
            line_out   <= 1;
            send_clock <= 0;
            if (send) begin
                send_bits <= 10;
                sending   <= {1'b1, send_data};
                line_out  <= 0;
            end
        end else if (send_clock == LAST) begin
            send_bits <= send_bits - 1;
            line_out  <= sending[0];
            sending   <= {1'b1, sending[8:1]};
        end
        if (rst) begin
            send_bits <= 0;
            line_out  <= 1;
        end
    end
endmodule
