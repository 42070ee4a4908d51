// Surplus round robin over the buffers of one output, in wire time, as `scheduler` of the 1G
// device and `Egress` in crates/plane/src/ports/buffers.rs (thesis section 3.2.1). At 10G a gap
// has two cycles, so nothing is left to do between two frames: the cost is charged while a frame
// leaves, a word in each cycle, preamble and gap included.
//
// The inputs that have frames form a ring. The first sends. One whose credit is used up gets a
// quantum and goes to the tail, with its overdraft, also while its frame still leaves. An input
// without frames is not in the ring and has a credit of one quantum; it joins at the tail
// (several at once: the lowest number first). The ring is a matrix: ahead[i][j] says that input
// j is before input i. Inputs without frames are behind all that have one.
//
// Timing: `grant` is combinational from has_frame and ready. One input a cycle can go to the
// tail, while frames leave: so an output is seldom late because of it, as when a frame of 9000
// bytes was the only one.

`default_nettype none

module scheduler_10g #(
    parameter int unsigned INPUTS = 4
) (
    input  wire logic              clk,
    input  wire logic              rst,
    input  wire logic [INPUTS-1:0] has_frame,
    input  wire logic              ready,   // a frame can start
    output logic [INPUTS-1:0]      grant,
    input  wire logic              is_busy, // a frame leaves
    output logic [INPUTS-1:0]      leaving  // the input of the frame that leaves, or left last
);
    localparam logic signed [12:0] QUANTUM = 13'sd200; // words: 1600 bytes

    // Credit less one, so that its sign says that it is used up.
    logic signed [INPUTS-1:0][12:0] credit;
    logic [INPUTS-1:0][INPUTS-1:0] ahead;
    logic [INPUTS-1:0] first, is_exhausted, rotates, occupied, charged;
    logic has_started; // the cycle of the grant is charged one cycle late

    always_comb begin
        charged = is_busy ? leaving : '0;
        occupied = has_frame | charged;
        for (int unsigned i = 0; i < INPUTS; i++) begin
            first[i] = has_frame[i] && (has_frame & ahead[i]) == '0;
            is_exhausted[i] = credit[i][12];
        end
        grant = ready ? first & ~is_exhausted : '0;
    end

    // Order: those that stay, then the one that goes to the tail, then those without frames.
    always_ff @(posedge clk) begin
        rotates <= rst ? '0 : first & is_exhausted & ~rotates;
        for (int unsigned i = 0; i < INPUTS; i++) begin
            for (int unsigned j = 0; j < INPUTS; j++) begin
                if (i == j) ahead[i][j] <= 1'b0;
                else if (!occupied[i]) ahead[i][j] <= occupied[j] || j < i;
                else if (!occupied[j]) ahead[i][j] <= 1'b0;
                else if (rotates[i]) ahead[i][j] <= 1'b1;
                else if (rotates[j]) ahead[i][j] <= 1'b0;
            end
            if (!occupied[i]) credit[i] <= QUANTUM - 13'sd1;
            else credit[i] <= credit[i] + (rotates[i] ? QUANTUM : 13'sd0)
                - (charged[i] ? 13'sd1 : 13'sd0) - (charged[i] && has_started ? 13'sd1 : 13'sd0);
        end
        has_started <= grant != '0;
        if (grant != '0) leaving <= grant;
        if (rst) leaving <= '0;
    end
endmodule
