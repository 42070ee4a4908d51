// The XDP data plane: frames one by one, no queues, the highest packet rate.
#include "step.h"

char LICENSE[] SEC("license") = "Apache-2.0";

/* What the kernel does not decide goes up the stack, to the packet socket of the node. */
static __noinline int to_node(void)
{
    count_for_node();
    return XDP_PASS;
}

static __noinline int lost(void)
{
    count_lost();
    return XDP_DROP;
}

/* A frame from a switch, for hosts behind `port`. */
static __always_inline int strip(struct xdp_md *frame, const struct header *header, __u32 number,
                                 __u64 port, __u32 length)
{
    __u32 left = length - header->bytes;
    __u16 type = 0;
    if (header->type != TYPE_ETHERNET || left < ETHERNET_BYTES)
        return to_node();
    if (left > FRAME_BYTES_MAX &&
        bpf_xdp_load_bytes(frame, header->bytes + 2 * ETH_ALEN, &type, sizeof(type)))
        return to_node();
    if (!fits(left, type) || bpf_xdp_adjust_head(frame, header->bytes))
        return to_node();
    count(number, 1, length, left);
    return bpf_redirect(device_of(port), 0);
}

static __always_inline int transit(struct xdp_md *frame)
{
    __u8 *data = (__u8 *)(long)frame->data, *end = (__u8 *)(long)frame->data_end;
    __u32 length = end - data;
    struct header header;
    if (data + STEP_BYTES > end || !parse(data, &header) || header.bytes > length)
        return to_node();
    __u32 number = next_hop(data), words = words_of(&header);
    __u64 port = port_of(number);
    if (!device_of(port))
        return to_node();
    if (kind_of(port) == PORT_HOST)
        return strip(frame, &header, number, port, length);
    if (kind_of(port) != PORT_AXON || words > WORDS_MAX || HOPS_AT + 8 * words > length)
        return to_node();
    advance(data, end, &header, words);
    count(number, 1, length, length);
    return bpf_redirect(device_of(port), 0);
}

static __always_inline int from_host(struct xdp_md *frame)
{
    __u8 *data = (__u8 *)(long)frame->data, *end = (__u8 *)(long)frame->data_end;
    __u32 length = end - data;
    if (data + ETHERNET_BYTES > end || is_group(data) ||
        !fits(length, *(__u16 *)(data + 2 * ETH_ALEN)))
        return to_node();
    __u64 flow = flow_of(data), words[BODY_WORDS];
    struct route *route = bpf_map_lookup_elem(&routes, &flow);
    if (!route || !take_route(route, flow, words))
        return to_node();
    struct body *body = (struct body *)words;
    __u32 number = body->egress, pushed = body->length;
    /* One register, so that the bounds checked below are those of what is used. */
    barrier_var(pushed);
    __u64 port = port_of(number);
    if (!device_of(port))
        return to_node();
    if (kind_of(port) == PORT_HOST) {
        count(number, 1, length, length);
        return bpf_redirect(device_of(port), 0);
    }
    if (kind_of(port) != PORT_AXON || pushed < HEADER_BYTES_MIN || pushed > HEADER_BYTES_MAX ||
        bpf_xdp_adjust_head(frame, -(int)pushed))
        return to_node();
    if (bpf_xdp_store_bytes(frame, 0, body->header, pushed))
        return lost();
    count(number, 1, length, length + pushed);
    return bpf_redirect(device_of(port), 0);
}

SEC("xdp")
int axon_xdp(struct xdp_md *frame)
{
    __u32 kind = kind_of(port_of(PORT));
    if (kind == PORT_AXON)
        return transit(frame);
    if (kind == PORT_HOST)
        return from_host(frame);
    return to_node();
}
