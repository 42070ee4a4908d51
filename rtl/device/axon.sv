// Types that the modules of the device share.
//
// A frame inside the device is a stream of symbols: its bytes without preamble and FCS, one in a
// clock cycle at most, and then one end. `decision_t` is the verdict of an ingress on a frame, as
// `Step` in crates/plane/src/axon/forward.rs.

`default_nettype none

package axon;
    // One byte of a frame, or its end. Bit 0 of an end is 1 if the frame is bad: a wrong FCS, a
    // receive error, a length outside the limits.
    typedef struct packed {
        logic       is_end;
        logic [7:0] data;
    } symbol_t;

    // Kind of the peer at a port, as `PortKind`.
    typedef enum logic [1:0] {
        PORT_UNKNOWN = 2'd0,
        PORT_HOST    = 2'd1,
        PORT_AXON    = 2'd2
    } port_kind_t;

    // Type of an Axon packet, as `PacketType`. Type 0 is none: the first byte of a link-local
    // address reads as type 0.
    typedef enum logic [3:0] {
        TYPE_NONE       = 4'd0,
        TYPE_ETHERNET   = 4'd1,
        TYPE_CONTROL    = 4'd2,
        TYPE_PROBE      = 4'd3,
        TYPE_ERROR      = 4'd4,
        TYPE_CONGESTION = 4'd5
    } packet_type_t;

    // Outputs of the crossbar: the ports by number, and the CPU.
    typedef logic [3:0] output_t;
    localparam output_t CPU = 4'd15;

    // The change that a frame undergoes between its ingress and its output.
    typedef enum logic [1:0] {
        RAW   = 2'd0, // none
        HOP   = 2'd1, // pop the next hop, push the ingress port on the reverse list
        STRIP = 2'd2, // remove the Axon header
        PUSH  = 2'd3  // prepend the header of an entry of route memory
    } operation_t;

    // Reason of a punt, by the numbers of `Punt`.
    typedef enum logic [2:0] {
        PUNT_MISS       = 3'd0,
        PUNT_ADDRESSED  = 3'd1,
        PUNT_ERROR      = 3'd2,
        PUNT_LINK_LOCAL = 3'd3
    } punt_t;

    // Reason of a drop, by the numbers of `Drop`; only those that gates can have.
    typedef enum logic [4:0] {
        DROP_MALFORMED      = 5'd0,
        DROP_BAD_FCS        = 5'd1,
        DROP_OVERSIZED      = 5'd2,
        DROP_QUEUE_FULL     = 5'd3,
        DROP_PORT_DOWN      = 5'd7,
        DROP_PORT_UNKNOWN   = 5'd8,
        DROP_NO_SUCH_PORT   = 5'd9,
        DROP_MAC_CONTROL    = 5'd12,
        DROP_ROUTE_TOO_LONG = 5'd22,
        DROP_EGRESS_UNKNOWN = 5'd24
    } drop_t;

    // Fixed part of a checked Axon header, as `HeaderFields`.
    typedef struct packed {
        packet_type_t packet_type;
        logic [2:0]   frame_priority;
        logic [15:0]  header_bytes;
        logic [11:0]  forward_count;
        logic [11:0]  reverse_count;
    } header_fields_t;

    // Verdict on a frame.
    typedef struct packed {
        logic           is_drop;     // the frame ends here, for the reason `drop`
        drop_t          drop;
        output_t        to;          // output otherwise
        punt_t          punt;        // reason, with `to` = CPU
        operation_t     operation;
        logic           becomes_error; // the type becomes Error
        header_fields_t header;      // of the header as it came: HOP, STRIP, and errors; otherwise
                                     // only header_bytes: PUSH: those to prepend; RAW and drops:
                                     // the least length of a frame that is not malformed
        logic [1:0]     place;       // of the header in routes: PUSH
        logic           rewrites_destination; // PUSH: the entry holds another destination
        logic           is_limited;  // the Ethernet frame must keep to frame_bytes_max
        logic [2:0]     frame_priority; // priority under which the frame is queued
    } decision_t;
endpackage
