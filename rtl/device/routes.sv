// Route table of a host port: a content-addressable memory in block RAM, and the headers that it
// selects (thesis 000 section 3.2).
//
// The key is the first 12 bytes of a frame: destination and source address. For each of the 24
// nibbles of the key there are 16 rows of ROUTES bits, one for each value of the nibble. Bit e of a
// row is 1 if entry e accepts this value at this place. The AND of the 24 rows that a frame selects
// has a 1 for each entry that accepts all its nibbles. An entry for any source has ones in all rows
// of the source address. Two block RAMs hold the rows of the high and of the low nibbles, so one
// byte takes one cycle and the lookup ends with the address.
//
// The rows fill half of the block RAMs. Behind them are the headers of the entries, 4 bytes of each
// word in one and 4 in the other: see route_headers.
//
// Among the entries that match, one with `by_source` wins over one for any source, and then the
// lowest number wins. An entry takes part only if its bit of `valid` is 1.
//
// To change an entry, clear its valid bit, wait 8 cycles until no header of it is being fetched,
// write rows, attributes and bytes, and set the valid bit. No row may be written in a cycle
// of a lookup: what a block RAM reads from a row that is being written is undefined, and a lookup
// would mix two keys. `route_writer` sees to that.
//
// Timing: byte k in `head` in cycle t0 + k; `done` in t0 + 14, with all other outputs of the
// lookup; `entry` and all that it selects hold until the next `done`. Bytes of the header may be
// asked for from t0 + 15 on. Block RAM is slow (6 ns of 8), so its outputs go to registers or into
// LUT RAM. Contract: byte 0 of the next frame is in `head` in t0 + 18 at the earliest (gmii_rx sees
// to that).

`default_nettype none

module routes #(
    parameter int unsigned PORTS = 4,
    parameter int unsigned ROUTES = 32 // 4, 8, 16 or 32
) (
    input  wire logic              clk,
    input  wire logic              rst,
    // Lookup. Bytes 0 to 11 of a frame come in successive cycles; others may follow with the number
    // 12 and more.
    input  wire logic              head_valid,
    input  wire logic [7:0]        head_data,
    input  wire logic [3:0]        head_index,
    output logic                   done,
    output logic                   hit,
    output logic [4:0]             entry,
    output logic [1:0]             place,                // of its header, with done
    input  wire logic              keeps,                // with done or later: the place is taken
    output axon::output_t          to,
    output logic [PORTS:0]         reaches,              // `to` decoded; bit PORTS: the CPU
    output logic [2:0]             frame_priority,
    output logic [4:0]             header_bytes,         // 0: to a host of this switch
    output logic                   has_header,           // header_bytes is not 0
    output logic                   rewrites_destination, // bytes 24 to 29 of the entry
    // Bytes of a fetched entry: its header as it leaves.
    input  wire logic [1:0]        memory_place,
    input  wire logic [4:0]        memory_offset,
    output logic [7:0]             memory_data,
    // From the registers.
    input  wire logic [ROUTES-1:0] valid,
    input  wire logic [ROUTES-1:0] by_source,
    input  wire logic              row_write,        // address {is_low, position, nibble}
    input  wire logic              attributes_write, // address {entry}
    input  wire logic              memory_write,     // address {entry, offset}
    input  wire logic [9:0]        write_address,
    input  wire logic [31:0]       write_data        // memory_write: four times the byte
);
    // Rows at 0 to 191; at 256 word w of entry e at 4 e + w.
    (* ram_style = "block", no_rw_check *) logic [31:0] high_rows [0:511];
    (* ram_style = "block", no_rw_check *) logic [31:0] low_rows [0:511];

    // The rows that a byte selects, or a word of the winner's header.
    logic [31:0] high_row, low_row;
    logic        fetches;
    logic [6:0]  fetch_address;
    logic [8:0]  high_address, low_address, row_address;
    logic [3:0]  high_write, low_write; // bytes
    always_comb begin
        high_address = fetches ? {2'b10, fetch_address} : {1'b0, head_index, head_data[7:4]};
        low_address = fetches ? {2'b10, fetch_address} : {1'b0, head_index, head_data[3:0]};
        row_address = {1'b0, write_address[7:0]};
        high_write = {4{row_write && !write_address[8]}};
        low_write = {4{row_write && write_address[8]}};
        if (memory_write) begin
            row_address = {2'b10, write_address[9:3]};
            if (write_address[2]) low_write[write_address[1:0]] = 1'b1;
            else high_write[write_address[1:0]] = 1'b1;
        end
    end
    always_ff @(posedge clk) begin
        high_row <= high_rows[high_address];
        low_row <= low_rows[low_address];
        for (int unsigned at = 0; at < 4; at++) begin
            if (high_write[at]) high_rows[row_address][8*at +: 8] <= write_data[8*at +: 8];
            if (low_write[at]) low_rows[row_address][8*at +: 8] <= write_data[8*at +: 8];
        end
    end

    // Their AND. `finalists` is that of this byte and of all before it.
    logic [ROUTES-1:0] high_accepts, low_accepts, candidates, finalists;
    logic [3:0]        row_index, index;
    logic              row_valid, is_valid;
    assign finalists = high_accepts & low_accepts & candidates;
    always_ff @(posedge clk) begin
        row_valid <= head_valid && !rst;
        row_index <= head_index;
        high_accepts <= high_row[ROUTES-1:0];
        low_accepts <= low_row[ROUTES-1:0];
        is_valid <= row_valid && !rst;
        index <= row_index;
        if (is_valid)
            candidates <= high_accepts & low_accepts & valid
                & (candidates | {ROUTES{index == 4'd0}});
    end

    logic            ends, is_high;
    logic [1:0][3:0] half_entries;
    assign ends = is_valid && index == 4'd11;
    always_ff @(posedge clk) done <= ends && !rst;
    route_winner winner (
        .clk, .load(ends), .accepted(32'(finalists)), .by_source(32'(by_source)), .hit,
        .is_high, .half_entries, .entry
    );

    // What the entries hold. What is late when it is read is stored decoded: whether there is a
    // header, and the output.
    logic [PORTS+14:0] attributes_low [0:15], attributes_high [0:15], attributes;
    logic [PORTS:0]    write_reaches;
    always_comb begin
        for (int unsigned at = 0; at < PORTS; at++) write_reaches[at] = write_data[3:0] == 4'(at);
        write_reaches[PORTS] = write_data[3:0] == axon::CPU;
        attributes = {write_reaches, write_data[8:4] != 5'd0, write_data[12:0]};
    end
    assign {reaches, has_header, rewrites_destination, frame_priority, header_bytes, to}
        = is_high ? attributes_high[half_entries[1]] : attributes_low[half_entries[0]];
    always_ff @(posedge clk) if (attributes_write) begin
        if (write_address[4]) attributes_high[write_address[3:0]] <= attributes;
        else attributes_low[write_address[3:0]] <= attributes;
    end

    route_headers fetched (
        .clk, .rst, .starts(ends), .done, .entry, .has_header, .keeps, .place, .fetches,
        .fetch_address, .words({low_row, high_row}), .memory_place, .memory_offset, .memory_data
    );

`ifdef FORMAL
    // Rows as a driver writes them: entry e is for the key f_keys[e], with any source unless
    // by_source[e]. A lookup then finds what a plain search finds.
    (* anyconst *) logic [ROUTES-1:0][95:0] f_keys;
    (* anyconst *) logic [ROUTES-1:0] f_valid, f_by_source;
    logic [11:0][7:0] f_bytes;         // of the frame, up to `index`
    logic [3:0]       f_count;         // how many of them are in `candidates`, 15 is any number
    logic [7:0]       f_row_byte, f_byte;
    logic             f_past = 1'b0, f_row_of_key;

    function automatic logic [ROUTES-1:0] f_row(
        input logic [3:0] at, input logic is_low, input logic [3:0] nibble
    );
        for (int unsigned e = 0; e < ROUTES; e++)
            f_row[e] = (at >= 4'd6 && !f_by_source[e])
                || nibble == f_keys[e][95 - 8 * at - (is_low ? 4 : 0) -: 4];
    endfunction

    always_ff @(posedge clk) begin
        f_past <= 1'b1;
        f_row_byte <= head_data;
        f_byte <= f_row_byte;
        f_row_of_key <= head_valid && head_index < 4'd12;
        if (is_valid) f_count <= index > 4'd11 ? 4'd15 : index + 4'd1;
        if (is_valid && index < 4'd12) f_bytes[index] <= f_byte;
        if (rst) f_count <= 4'd0;
    end

    always_comb begin
        if (!f_past) assume (rst);
        assume (valid == f_valid && by_source == f_by_source);
        assume (!row_write && !attributes_write && !memory_write);
        if (fetches) assume (!head_valid || head_index >= 4'd12);
        // The bytes of a frame come in successive cycles, numbers stay at 15.
        if (head_valid && head_index != 4'd0) assume (row_valid
            && (head_index == row_index + 4'd1 || (head_index == 4'd15 && row_index == 4'd15)));
        if (f_past && f_row_of_key) assume (
            high_row[ROUTES-1:0] == f_row(row_index, 1'b0, f_row_byte[7:4])
            && low_row[ROUTES-1:0] == f_row(row_index, 1'b1, f_row_byte[3:0]));
    end

    logic [ROUTES-1:0] f_matches, f_prefixes;
    struct packed {
        logic       found;
        logic [4:0] index;
    } f_winner;
    always_comb begin
        f_winner = '0;
        for (int unsigned e = 0; e < ROUTES; e++) begin
            f_matches[e] = f_valid[e] && f_keys[e][95:48] == {f_bytes[0], f_bytes[1], f_bytes[2],
                f_bytes[3], f_bytes[4], f_bytes[5]} && (!f_by_source[e] || f_keys[e][47:0] == {
                f_bytes[6], f_bytes[7], f_bytes[8], f_bytes[9], f_bytes[10], f_bytes[11]});
            f_prefixes[e] = f_valid[e];
            for (int unsigned at = 0; at < 12; at++)
                if (4'(at) < f_count && (at < 6 || f_by_source[e])
                    && f_bytes[at] != f_keys[e][95 - 8 * at -: 8]) f_prefixes[e] = 1'b0;
        end
        for (int unsigned e = ROUTES; e > 0; e--)
            if (f_matches[e-1] && !f_by_source[e-1]) f_winner = {1'b1, 5'(e - 1)};
        for (int unsigned e = ROUTES; e > 0; e--)
            if (f_matches[e-1] && f_by_source[e-1]) f_winner = {1'b1, 5'(e - 1)};
    end

    logic f_is_last, f_row_last, f_head_last; // byte 11 was in head 3, 2, 1 cycles ago
    logic f_was_contest; // the winner beats an entry with a lower number
    assign f_was_contest = |(32'(by_source) >> entry & 32'd1)
        && (32'(f_matches) & ((32'd1 << entry) - 32'd1)) != 32'd0;
    always_ff @(posedge clk) begin
        f_head_last <= head_valid && head_index == 4'd11 && !rst;
        f_row_last <= f_head_last && !rst;
        f_is_last <= f_row_last && !rst;
    end
    always_comb if (f_past && !rst) begin
        a_done: assert (done == f_is_last);
        if (done) begin
            a_hit: assert (hit == f_winner.found);
            a_entry: assert (!hit || entry == f_winner.index);
        end
        c_hit: cover (done && hit && f_was_contest);

        // What the induction needs.
        i_row_last: assert (f_head_last == (row_valid && row_index == 4'd11));
        i_last: assert (f_row_last == (is_valid && index == 4'd11));
        i_done: assert (!done || f_count == 4'd12);
        i_order: assert (!row_valid || row_index == 4'd0 || (is_valid
            && (row_index == index + 4'd1 || (row_index == 4'd15 && index == 4'd15))));
        i_count: assert (!is_valid || index == 4'd0
            || f_count == (index > 4'd12 ? 4'd15 : index));
        i_accepts: assert (!is_valid || index > 4'd11
            || (high_accepts == f_row(index, 1'b0, f_byte[7:4])
                && low_accepts == f_row(index, 1'b1, f_byte[3:0])));
        i_candidates: assert (f_count == 4'd0 || f_count > 4'd12 || candidates == f_prefixes);
        i_row: assert (!row_valid || f_row_of_key == (row_index < 4'd12));
    end
`endif
endmodule
