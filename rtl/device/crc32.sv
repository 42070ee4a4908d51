// One step of the CRC-32 of Ethernet, IEEE 802.3 clause 3.2.9, for one byte: combinational.
//
// The register is reflected: bit 0 is the coefficient of the highest power, and bit 0 of a byte,
// the first on the wire, enters first. It begins at all ones. The FCS is the complement of the
// register, its low byte first. After a frame and its right FCS the register is RESIDUE.
//
// Every bit of `next` is an XOR of bits of `crc` and `data`; synthesis flattens the loop.

`default_nettype none

module crc32 (
    input  wire logic [31:0] crc,
    input  wire logic [7:0]  data,
    output logic [31:0]      next
);
    localparam logic [31:0] POLYNOMIAL = 32'hedb8_8320;

    always_comb begin
        next = crc ^ {24'd0, data};
        for (int unsigned bit_index = 0; bit_index < 8; bit_index++)
            next = {1'b0, next[31:1]} ^ (next[0] ? POLYNOMIAL : 32'd0);
    end
endmodule
