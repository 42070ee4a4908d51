// Surplus round robin over the buffers of one output, as `Egress` in
// crates/plane/src/ports/buffers.rs (thesis 000 section 3.2.1); the CPU's buffer strictly first.
//
// The inputs that have frames form a ring. The first that is not blocked sends; the cost of its
// frame, in bytes of wire time, is taken from its credit. An input whose credit is used up gets a
// quantum and goes to the tail, with its overdraft. One without frames is not in the ring and has a
// credit of one quantum; it joins at the tail (several at once: the lowest number first). A blocked
// input keeps its place. The sender stays in the ring until its frame has left.
//
// The ring is a matrix: ahead[i][j] says that input j is before input i. Inputs without frames are
// behind all that have one.
//
// Timing: `grant` is combinational from has_frame, blocked and ready. `leaving` holds from the
// cycle after the grant until the second after `done`; the cost is charged in the first. Then
// one input a cycle can go to the tail: after frames that cost at most two quanta the next grant is
// possible 2 * INPUTS + 2 cycles after `done`, within the gap of 12. After longer frames it may be
// later by a few cycles.

`default_nettype none

module scheduler #(
    parameter INPUTS = 4
) (
    input  wire logic              clk,
    input  wire logic              rst,
    input  wire logic [INPUTS-1:0] has_frame,
    input  wire logic [INPUTS-1:0] blocked,     // the frame at the head must not start
    input  wire logic              cpu_has_frame,
    input  wire logic              cpu_blocked,
    input  wire logic              ready,       // a frame can start
    output logic [INPUTS-1:0]      grant,
    output logic                   cpu_grant,
    output logic [INPUTS-1:0]      leaving,     // the input of the frame that leaves
    output logic                   cpu_leaving,
    input  wire logic              done,        // it has left
    input  wire logic [13:0]       done_bytes   // with done: bytes without FCS
);
    localparam logic signed [15:0] QUANTUM = 16'sd1600;
    localparam logic signed [15:0] OVERHEAD = 16'sd24; // preamble, SFD, FCS and gap

    // Credit less one, so that its sign says that it is used up.
    logic signed [INPUTS-1:0][15:0] credit;
    logic signed [15:0] change; // -cost while a frame is charged, else a quantum
    logic is_idle, is_charging;
    logic [INPUTS-1:0][INPUTS-1:0] ahead;
    logic [INPUTS-1:0] eligible, first, is_exhausted, rotates, occupied;

    always_comb begin
        eligible = has_frame & ~blocked;
        for (int unsigned i = 0; i < INPUTS; i++) begin
            first[i] = eligible[i] && (eligible & ahead[i]) == '0;
            is_exhausted[i] = credit[i][15];
        end
        occupied = has_frame | leaving;
        rotates = is_idle ? first & is_exhausted : '0;
        cpu_grant = ready && is_idle && cpu_has_frame && !cpu_blocked;
        grant = ready && is_idle && !(cpu_has_frame && !cpu_blocked) ? first & ~is_exhausted : '0;
    end

    // Order: those that stay, then the one that goes to the tail, then those without frames.
    always_ff @(posedge clk) begin
        for (int unsigned i = 0; i < INPUTS; i++) begin
            for (int unsigned j = 0; j < INPUTS; j++) begin
                if (i == j) ahead[i][j] <= 1'b0;
                else if (!occupied[i]) ahead[i][j] <= occupied[j] || j < i;
                else if (!occupied[j]) ahead[i][j] <= 1'b0;
                else if (rotates[i]) ahead[i][j] <= 1'b1;
                else if (rotates[j]) ahead[i][j] <= 1'b0;
            end
            if (!occupied[i]) credit[i] <= QUANTUM - 16'sd1;
            else if (rotates[i] || (is_charging && leaving[i])) credit[i] <= credit[i] + change;
        end
    end

    always_ff @(posedge clk) begin
        change <= done ? -(16'(done_bytes) + OVERHEAD) : QUANTUM;
        is_charging <= done && !is_idle;
        if (is_idle) begin
            {cpu_leaving, leaving} <= {cpu_grant, grant};
            is_idle <= {cpu_grant, grant} == '0;
        end else if (is_charging) begin
            {cpu_leaving, leaving} <= '0;
            is_idle <= 1'b1;
        end
        if (rst) begin
            change <= QUANTUM;
            {cpu_leaving, leaving} <= '0;
            is_charging <= 1'b0;
            is_idle <= 1'b1;
        end
    end

`ifdef FORMAL
    // Any two inputs, i and j. f_rounds counts how often j has gone to the tail while i, in the
    // ring and not blocked, was neither served nor sent to the tail itself; f_turns how often i was
    // sent to the tail since it was charged.
    (* anyconst *) logic [$clog2(INPUTS)-1:0] f_i, f_j;
    logic f_past = 1'b0;
    logic [1:0] f_rounds;
    logic [3:0] f_turns;
    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        if (!eligible[f_i] || leaving[f_i] || rotates[f_i] || grant[f_i] || rst) f_rounds <= '0;
        else if ((rotates[f_j] || !occupied[f_j]) && f_rounds != 2'd3 && !ahead[f_j][f_i])
            f_rounds <= f_rounds + 2'd1;
        if (!occupied[f_i] || (is_charging && leaving[f_i])) f_turns <= '0;
        else if (rotates[f_i]) f_turns <= f_turns + 4'd1;
    end
    // A total order: each input has a different number of others ahead.
    logic f_is_order, f_is_one;
    logic [INPUTS:0] f_grants;
    logic signed [16:0] f_credit;
    assign f_grants = {cpu_grant, grant};
    assign f_credit = 17'($signed(credit[f_i])) + 17'sd1;
    always_comb begin
        f_is_order = 1'b1;
        for (int unsigned i = 0; i < INPUTS; i++) for (int unsigned j = 0; j < INPUTS; j++) begin
            if (i != j) f_is_order &= ahead[i][j] != ahead[j][i];
            for (int unsigned k = 0; k < INPUTS; k++)
                f_is_order &= !(ahead[i][j] && ahead[j][k]) || ahead[i][k];
            f_is_order &= i != j || !ahead[i][j];
        end
    end
    always_comb begin
        assume (f_i != f_j && 32'(f_i) < INPUTS && 32'(f_j) < INPUTS);
        if (!f_past) assume (rst);
        if (done) assume (!is_idle && !is_charging);
    end
    logic f_settled = 1'b0; // a cycle after the reset, in which no input had a frame
    always_ff @(posedge clk) begin
        f_settled <= f_settled || (rst && (has_frame | leaving) == '0);
        if (!f_settled) assume (rst && has_frame == '0);
    end
    always_comb if (f_settled) begin
        a_one: assert ((f_grants & (f_grants - 1'b1)) == '0);
        a_wants: assert ((grant & (~has_frame | blocked)) == '0);
        a_cpu_wants: assert (!cpu_grant || (cpu_has_frame && !cpu_blocked));
        a_cpu_first: assert (grant == '0 || !cpu_has_frame || cpu_blocked);
        a_ready: assert (f_grants == '0 || ready);
        a_no_interleaving: assert (f_grants == '0 || {cpu_leaving, leaving} == '0);
        a_one_leaves: assert (({cpu_leaving, leaving} & ({cpu_leaving, leaving} - 1'b1)) == '0);
        a_idle: assert (is_idle == ({cpu_leaving, leaving} == '0));
        a_order: assert (f_is_order);
        // Bounded wait: j overtakes i at most once; i gets a quantum at most 11 times in a row.
        a_in_order: assert (!grant[f_j] || !eligible[f_i] || !ahead[f_j][f_i]);
        a_rounds: assert (f_rounds <= 2'd1);
        i_rounds: assert (f_rounds == 2'd0 || ahead[f_j][f_i]);
        a_turns: assert (f_turns <= 4'd11);
        i_credit: assert (f_credit <= QUANTUM
            && f_credit >= 17'sd1600 * $signed({13'd0, f_turns}) - 17'sd16406);
        i_turns: assert (f_turns == 4'd0 || f_credit <= QUANTUM);
        i_charging: assert (!is_charging || !is_idle);
        i_change: assert (is_charging ? change <= -16'sd24 && change >= -16'sd16407
            : change == QUANTUM);
        i_sender: assert (!leaving[f_i] || (f_credit >= 17'sd1));
    end
    always_comb begin
        c_after_a_round: cover (f_past && f_rounds == 2'd1 && grant[f_i]);
        c_turns: cover (f_settled && f_turns == 4'd11);
    end
`endif
endmodule
