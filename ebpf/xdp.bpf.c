// The XDP data plane: frames one by one, no queues, the highest packet rate.
#include "step.h"

char LICENSE[] SEC("license") = "Apache-2.0";

/* The devices of ports, by port number: of those between switches and of those of hosts, as long as
 * they have carrier. A redirect by map is the fastest, and looks the device and the kind of its port
 * up in one step. The kernel takes a device out when it goes.
 */
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} links SEC(".maps"), hosts SEC(".maps");

/* What the node writes before and after each change of routes: odd in between. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} version SEC(".maps");

#define RECENT_BITS 8

/* Routes that frames have taken lately, at a place that their flow gives: to find one here takes a
 * third of what it takes in `routes`. One is good as long as `version` is what it was before it was
 * looked up; then this is that plus one, which no version is that entries are made at.
 */
struct recent {
    __u64 flow, version, body[BODY_WORDS];
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1 << RECENT_BITS);
    __type(key, __u32);
    __type(value, struct recent);
} recent SEC(".maps");

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

/* A frame from a switch, for hosts; it has been redirected to their port. */
static __always_inline int strip(struct xdp_md *frame, const struct header *header, __u32 number,
                                 __u32 length)
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
    return XDP_REDIRECT;
}

static __always_inline int transit(struct xdp_md *frame, __u32 bits)
{
    __u8 *data = (__u8 *)(long)frame->data, *end = (__u8 *)(long)frame->data_end;
    __u32 length = end - data;
    struct header header;
    if (data + STEP_BYTES > end || !parse(data, bits, &header) || header.bytes > length)
        return to_node();
    __u32 number = header.hop, words = words_of(&header, bits);
    /* Behind the last hop there is a host, most likely. */
    int is_strip = header.forward == 1 && bpf_redirect_map(&hosts, number, 0) == XDP_REDIRECT;
    if (!is_strip && bpf_redirect_map(&links, number, 0) != XDP_REDIRECT) {
        if (bpf_redirect_map(&hosts, number, 0) != XDP_REDIRECT)
            return to_node();
        is_strip = 1;
    }
    if (is_strip)
        return strip(frame, &header, number, length);
    if (words > WORDS_MAX || hops_at(bits) + 8 * words > length)
        return to_node();
    advance(data, end, bits, &header, words);
    count(number, 1, length, length);
    return XDP_REDIRECT;
}

/* Looks the route of a flow up in `routes`, for `recent`. The version is read before it, by an
 * operation that nothing behind it can overtake.
 */
static __always_inline int find(__u64 flow, __u64 *version, struct recent *recent)
{
    __u64 before = __sync_fetch_and_add(version, 0);
    struct route *route = bpf_map_lookup_elem(&routes, &flow);
    recent->version = 0;
    if (!route || !take_route(route, flow, recent->body))
        return 0;
    recent->flow = flow;
    if (!(before & 1))
        recent->version = before + 1;
    return 1;
}

/* The route of a flow; none: the node decides. */
static __always_inline const struct body *route_of(__u64 flow)
{
    __u32 one = 0, place = flow * FACTORS[0] >> (64 - RECENT_BITS);
    __u64 *now = bpf_map_lookup_elem(&version, &one);
    struct recent *is = bpf_map_lookup_elem(&recent, &place);
    if (!now || !is)
        return 0;
    if (is->flow != flow || is->version != *(volatile __u64 *)now + 1) {
        if (!find(flow, now, is))
            return 0;
    }
    return (const struct body *)is->body;
}

/* Puts a header of `bytes` bytes in front, which is there already. False: it is no such header. */
static __always_inline int write_header(struct xdp_md *frame, const __u8 *header, __u32 bytes)
{
    __u8 *data = (__u8 *)(long)frame->data, *end = (__u8 *)(long)frame->data_end;
    if (data + HEADER_BYTES_MAX > end || bytes < 8)
        return !bpf_xdp_store_bytes(frame, 0, (void *)header, bytes);
    if (bytes > HEADER_BYTES_MAX)
        return 0;
#pragma unroll
    for (__u32 i = 0; i < HEADER_BYTES_MAX / 8; i++)
        if (8 * (i + 1) <= bytes)
            *(__u64 *)(data + 8 * i) = *(const __u64 *)(header + 8 * i);
    /* The last 8 bytes, some of them once more. */
    data += bytes - 8;
    if (data + 8 > end)
        return 0;
    *(__u64 *)data = *(const __u64 *)(header + bytes - 8);
    return 1;
}

static __always_inline int from_host(struct xdp_md *frame)
{
    __u8 *data = (__u8 *)(long)frame->data, *end = (__u8 *)(long)frame->data_end;
    __u32 length = end - data;
    if (data + ETHERNET_BYTES > end || is_group(data) ||
        is_mac_control(*(__u16 *)(data + 2 * ETH_ALEN)) ||
        !fits(length, *(__u16 *)(data + 2 * ETH_ALEN)))
        return to_node();
    const struct body *body = route_of(flow_of(data));
    if (!body)
        return to_node();
    __u32 number = body->egress, pushed = body->length;
    /* One register, so that the bounds checked below are those of what is used. */
    barrier_var(pushed);
    if (bpf_redirect_map(&links, number, 0) != XDP_REDIRECT) {
        if (bpf_redirect_map(&hosts, number, 0) != XDP_REDIRECT)
            return to_node();
        count(number, 1, length, length);
        return XDP_REDIRECT;
    }
    if (pushed < HEADER_BYTES_MIN || pushed > HEADER_BYTES_MAX ||
        bpf_xdp_adjust_head(frame, -(int)pushed))
        return to_node();
    if (!write_header(frame, body->header, pushed))
        return lost();
    count(number, 1, length, length + pushed);
    return XDP_REDIRECT;
}

SEC("xdp")
int axon_xdp(struct xdp_md *frame)
{
    __u32 kind = kind_of(port_of(PORT));
    if (kind == PORT_AXON)
        return HOP_BITS == 8    ? transit(frame, 8)
               : HOP_BITS == 16 ? transit(frame, 16)
                                : transit(frame, 4);
    if (kind == PORT_HOST)
        return from_host(frame);
    return to_node();
}
