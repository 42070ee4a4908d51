// GMII from the clock of a PHY to the clock of the core: both 125 MHz, each within 100 ppm.
//
// The bytes of a frame go through a FIFO of 16 places, whose pointers cross in Gray code. Idle
// cycles between frames do not: only one is written after each frame, as its end. The reader waits
// until it sees two of them and then reads one in each cycle, to the end. So a frame has no holes:
// while it is read, the clocks drift by 200 ppm at most, less than one cycle in 5000 bytes, and the
// byte that is left covers that. What a slower or faster reader leaves is made up in the gap, which
// gets one or two cycles longer or shorter.
//
// If the clocks are farther apart, or a frame is longer, the FIFO runs empty or full in a frame.
// Then rx_er shows in the byte that is repeated, or that follows the one that was lost.
//
// Timing: `rx` of the core shows a byte 3 to 4 cycles after the clk_rx edge at which it came in.

`default_nettype none

module clock_crossing (
    input  wire logic       clk_rx,
    input  wire logic [7:0] phy_rxd,
    input  wire logic       phy_rx_dv,
    input  wire logic       phy_rx_er,

    input  wire logic       clk,
    input  wire logic       rst,
    output logic [7:0]      rxd,
    output logic            rx_dv,
    output logic            rx_er,
    output logic            damaged // one cycle: a byte of a frame was lost or missing
);
    localparam int unsigned BITS = 4;

    function automatic logic [BITS:0] gray(input logic [BITS:0] binary);
        gray = binary ^ (binary >> 1);
    endfunction

    // {valid, error, data}; the end of a frame is not valid.
    logic [9:0]    memory [2**BITS];
    logic [BITS:0] write_pointer, read_pointer;
    logic [BITS:0] write_gray, read_gray, next_gray; // next_gray is of read_pointer + 1
    logic [BITS:0] write_gray_0, write_gray_1, read_gray_0, read_gray_1;

    // Side of the PHY. There is no reset: the pointers begin at 0 in the bitstream, and a reset of
    // the core leaves what is in the FIFO to the reader.
    logic was_valid, was_lost, is_full;

    initial begin
        write_pointer = 0;
        read_pointer = 0;
        write_gray = 0;
        read_gray = 0;
        next_gray = 1;
        write_gray_0 = 0;
        write_gray_1 = 0;
        read_gray_0 = 0;
        read_gray_1 = 0;
        was_valid = 0;
        was_lost = 0;
    end

    // In Gray code a pointer one round ahead has its two upper bits inverted.
    assign is_full = write_gray == {~read_gray_1[BITS:BITS-1], read_gray_1[BITS-2:0]};

    always_ff @(posedge clk_rx) begin
        read_gray_0 <= read_gray;
        read_gray_1 <= read_gray_0;
        if (!is_full) was_valid <= phy_rx_dv;
        if (phy_rx_dv || was_valid) begin
            was_lost <= is_full;
            if (!is_full) begin
                memory[write_pointer[BITS-1:0]] <= {phy_rx_dv, phy_rx_er || was_lost, phy_rxd};
                write_pointer <= write_pointer + 1;
                write_gray    <= gray(write_pointer + 1);
            end
        end
    end

    // Side of the core.
    logic [9:0] head;
    logic       is_reading, is_empty, is_read;

    assign head     = memory[read_pointer[BITS-1:0]];
    assign is_empty = write_gray_1 == read_gray;
    // The shortest frame is a byte and its end: two symbols.
    assign is_read  = !is_empty && (is_reading || write_gray_1 != next_gray);

    always_ff @(posedge clk) begin
        write_gray_0 <= write_gray;
        write_gray_1 <= write_gray_0;
        rx_dv        <= 0;
        rx_er        <= 0;
        damaged      <= 0;
        if (is_read) begin
            read_pointer <= read_pointer + 1;
            read_gray    <= next_gray;
            next_gray    <= gray(read_pointer + 2);
            is_reading   <= head[9];
            rxd          <= head[7:0];
            rx_dv        <= head[9];
            rx_er        <= head[9] && head[8];
        end else if (is_reading) begin
            rx_dv   <= 1;
            rx_er   <= 1;
            damaged <= 1;
        end
        if (rst) begin
            is_reading <= 0;
            rx_dv      <= 0;
        end
    end
endmodule
