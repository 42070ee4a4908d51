// Types that the modules of the 10G device share. A frame is a stream of words of 8 bytes, one
// in each clock cycle, FCS included and without preamble; byte 0 of a word is in bits 7:0, the
// lane of XGMII that is sent first (IEEE 802.3 clause 46).

`default_nettype none

package axon_10g;
    // 69 bits: a word of block RAM has 72.
    typedef struct packed {
        logic        is_bad;  // with is_last: the frame must not reach anyone as a good one
        logic        is_last;
        logic [2:0]  count;   // bytes modulo 8; 0 but in the last word
        logic [63:0] data;
    } word_t;

    // Control characters of XGMII, table 46-3.
    localparam logic [7:0] IDLE = 8'h07;
    localparam logic [7:0] START = 8'hfb;
    localparam logic [7:0] TERMINATE = 8'hfd;
    localparam logic [7:0] ERROR = 8'hfe;
    // The word of preamble and start delimiter, START in lane 0.
    localparam logic [63:0] PREAMBLE = 64'hd555_5555_5555_55fb;
endpackage
