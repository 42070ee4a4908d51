/* The step of a switch for the two kernel data planes: what a frame's first bytes say, and how a
 * hop is taken. crates/plane/src/axon/forward.rs is the same step for all data planes; where these
 * programs do not decide, the frame goes to the node, which does.
 *
 * Header (crates/wire/src/header.rs), big-endian bits:
 *   type 4 | header length 16 | forward hops 12 | reverse hops 12 | priority 3 | spare 1 | hops
 * With hops of 4 bits the first hop takes the place of priority and spare.
 */
#ifndef AXON_STEP_H
#define AXON_STEP_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETHERNET_BYTES 14
#define TAG_BYTES 4
/* The fixed part and the first 64 bits of hops. */
#define STEP_BYTES 14
/* A hop can be taken where the forward hops lie within this many words of 64 bits. */
#define WORDS_MAX 8
/* The longest header that a host's frame gets here; routes that need more go by the node. */
#define HEADER_BYTES_MAX 60
/* Fixed part without hops; with hops of 4 bits the first one is in it. */
#define HEADER_BYTES_MIN 6
/* Reverse hops that a header can count. */
#define HOPS_MAX 0xfff

enum port_kind { PORT_UNKNOWN = 0, PORT_HOST = 1, PORT_AXON = 2 };
enum packet_type { TYPE_ETHERNET = 1, TYPE_CONTROL = 2, TYPE_PROBE = 3, TYPE_CONGESTION = 5 };

/* Set before a program is loaded, one program for each port. */
const volatile __u16 PORT = 0;
const volatile __u8 HOP_BITS = 8;
/* The longest header taken on a link between switches. */
const volatile __u16 ROUTE_BYTES_MAX = HEADER_BYTES_MAX;
/* The longest frame of a host, from its addresses to its last byte, without a tag. */
const volatile __u16 FRAME_BYTES_MAX = ETH_FRAME_LEN;

/* By port number: its kind in the upper half, the ifindex of its device in the lower; no device or
 * no carrier is ifindex 0. One word, so that a reader has both from the same write.
 */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u64);
} ports SEC(".maps");

#define BODY_WORDS 8

/* What a host's frame gets: the port that it leaves by, and the header as it is behind the first
 * hop. `check` is over the flow and the body: the kernel may give the memory of a removed element
 * to another flow while a program still reads it, and such a mixture is recognised by it.
 */
struct route {
    __u64 check;
    __u64 body[BODY_WORDS]; /* struct body */
    __u64 used;             /* 1: a frame has taken it since the node last cleared this */
};

struct body {
    __u16 egress;
    __u16 length; /* HEADER_BYTES_MIN to HEADER_BYTES_MAX */
    __u8 header[HEADER_BYTES_MAX];
};

/* The key is a flow: the host port's number in the first two bytes, the destination behind them. */
struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, 1);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, __u64);
    __type(value, struct route);
} routes SEC(".maps");

/* By port number. A packet that will be cut into frames counts as so many, its headers once. */
struct traffic {
    __u64 in_frames, in_bytes; /* forwarded here, by the port that they came in by */
    __u64 out_frames, out_bytes;
    __u64 node_packets; /* left to the node */
    __u64 lost_packets; /* lost: no memory, no node, or too many for the node */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, struct traffic);
} traffic SEC(".maps");

/* A sound header, as far as the kernel cares, and its next hop: an egress port, or the control plane
 * as the highest number of this width.
 */
struct header {
    __u32 type, bytes, forward, reverse, hop;
};

/* Parses the fixed part at `data`, of which STEP_BYTES are there. False: the node decides. Here and
 * below, `bits` is HOP_BITS as the compiler knows it: there is code for each width, and the kernel
 * loads that of one.
 */
static __always_inline int parse(const __u8 *data, __u32 bits, struct header *header)
{
    __u64 word = bpf_be64_to_cpu(*(const __u64 *)data);
    header->type = word >> 60;
    header->bytes = word >> 44 & 0xffff;
    header->forward = word >> 32 & HOPS_MAX;
    header->reverse = word >> 20 & HOPS_MAX;
    header->hop = bits == 4 ? word >> 16 & 0xf : bits == 8 ? word >> 8 & 0xff : word & 0xffff;
    if (header->type == 0 || header->type == TYPE_PROBE || header->type > TYPE_CONGESTION)
        return 0;
    __u32 all = (bits == 4 ? 44 : 48) + (header->forward + header->reverse) * bits;
    return header->bytes == (all + 7) / 8 && header->bytes <= ROUTE_BYTES_MAX &&
           header->forward > 0 && header->reverse < HOPS_MAX;
}

/* Where the 64 bits with the next hops begin, and how many bits come before the first. */
static __always_inline __u32 hops_at(__u32 bits)
{
    return bits == 4 ? 5 : 6;
}

static __always_inline __u32 hops_skip(__u32 bits)
{
    return bits == 4 ? 4 : 0;
}

/* Words of 64 bits that hold the forward hops. */
static __always_inline __u32 words_of(const struct header *header, __u32 bits)
{
    return (hops_skip(bits) + header->forward * bits + 63) / 64;
}

/* The last word with forward hops: `span` bits of them, from the first bit on. They move up by one
 * hop, and the ingress port takes the last place.
 */
static __always_inline __u64 last_word(__u64 word, __u32 bits, __u32 span)
{
    __u64 mask = ~0ULL << (64 - span);
    __u64 ingress = PORT & ((1u << bits) - 1);
    return (word & ~mask) | (((word & mask) << bits) & mask) | ingress << (64 - span);
}

/* The first word has the end of the reverse count in front of hops of 4 bits. */
static __always_inline __u64 first_word(__u64 word, __u32 bits, __u32 counts)
{
    if (hops_skip(bits))
        return (word & (~0ULL >> hops_skip(bits))) | (__u64)(counts >> 4) << (64 - hops_skip(bits));
    return word;
}

/* Takes a hop: the forward hops move up by one, the ingress port takes the last forward place, and
 * both counts change. The hops lie in `words` words, all of them before `end`. Words are loaded and
 * stored whole wherever they lie: see README.md.
 */
static __always_inline void advance(__u8 *data, const __u8 *end, __u32 bits,
                                    const struct header *header, __u32 words)
{
    __u32 counts = bpf_ntohl(*(__u32 *)(data + 2)) - (1 << 16) + (1 << 4);
    __u32 span = hops_skip(bits) + header->forward * bits;
    __u64 word = bpf_be64_to_cpu(*(__u64 *)(data + hops_at(bits)));
    *(__u32 *)(data + 2) = bpf_htonl(counts);
    if (words == 1) {
        word = first_word(last_word(word, bits, span), bits, counts);
        *(__u64 *)(data + hops_at(bits)) = bpf_cpu_to_be64(word);
        return;
    }
#pragma unroll
    for (__u32 i = 0; i < WORDS_MAX; i++) {
        __u64 *at = (__u64 *)(data + hops_at(bits)) + i;
        /* Never: `words` are there. */
        if ((__u8 *)(at + 1) > end)
            return;
        if (words == i + 1) {
            *at = bpf_cpu_to_be64(last_word(word, bits, span - 64 * i));
            return;
        }
        if ((__u8 *)(at + 2) > end)
            return;
        __u64 next = bpf_be64_to_cpu(at[1]);
        __u64 moved = word << bits | next >> (64 - bits);
        *at = bpf_cpu_to_be64(i == 0 ? first_word(moved, bits, counts) : moved);
        word = next;
    }
}

/* Frames for group addresses are the node's. */
static __always_inline int is_group(const __u8 *frame)
{
    return frame[0] & 1;
}

/* MAC control ends at the link that it came by, whatever its address (802.1Q clause 8.6.3). */
static __always_inline int is_mac_control(__u16 type)
{
    return type == bpf_htons(ETH_P_PAUSE);
}

static __always_inline int is_tag(__u16 type)
{
    return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* Whether a host may send or see a frame of `bytes` bytes, whose bytes 12 and 13 are `type`. A tag
 * may come on top of the longest frame; so may a CN-TAG, which the node knows.
 */
static __always_inline int fits(__u32 bytes, __u16 type)
{
    return bytes >= ETHERNET_BYTES && bytes <= FRAME_BYTES_MAX + (is_tag(type) ? TAG_BYTES : 0);
}

/* The flow that a frame of a host belongs to. */
static __always_inline __u64 flow_of(const __u8 *frame)
{
    union {
        struct {
            __u16 port;
            __u8 destination[6];
        };
        __u64 word;
    } flow = {.port = PORT};
    __builtin_memcpy(flow.destination, frame, 6);
    return flow.word;
}

/* Odd and without a pattern: a mixture of two bodies has the sum of neither. */
static const __u64 FACTORS[BODY_WORDS + 1] = {
    0x9e3779b97f4a7c15, 0xbf58476d1ce4e5b9, 0x94d049bb133111eb,
    0xd6e8feb86659fd93, 0xa0761d6478bd642f, 0xe7037ed1a0b428db,
    0x8ebc6af09c88c6e3, 0x589965cc75374cc3, 0x1d8e4e27c47d124f,
};

/* Copies what the route says. False: it is being changed, and the node decides. */
static __always_inline int take_route(struct route *route, __u64 flow, __u64 *body)
{
    __u64 sum = flow * FACTORS[BODY_WORDS];
#pragma unroll
    for (int i = 0; i < BODY_WORDS; i++) {
        body[i] = *(volatile __u64 *)&route->body[i];
        sum += body[i] * FACTORS[i];
    }
    if (sum != *(volatile __u64 *)&route->check)
        return 0;
    /* What is set already is only read: so the line stays in the caches of all cores. */
    if (!route->used)
        route->used = 1;
    return 1;
}

static __always_inline struct traffic *traffic_of(__u32 port)
{
    return bpf_map_lookup_elem(&traffic, &port);
}

/* Counts a packet that leaves by `egress` as `frames` frames. */
static __always_inline void count(__u32 egress, __u32 frames, __u32 in_bytes, __u32 out_bytes)
{
    struct traffic *of = traffic_of(PORT);
    if (of) {
        of->in_frames += frames;
        of->in_bytes += in_bytes;
    }
    of = traffic_of(egress);
    if (of) {
        of->out_frames += frames;
        of->out_bytes += out_bytes;
    }
}

static __always_inline void count_for_node(void)
{
    struct traffic *of = traffic_of(PORT);
    if (of)
        of->node_packets += 1;
}

static __always_inline void count_lost(void)
{
    struct traffic *of = traffic_of(PORT);
    if (of)
        of->lost_packets += 1;
}

/* Port `number` as the node has set it; 0 if there is none. */
static __always_inline __u64 port_of(__u32 number)
{
    __u64 *port = bpf_map_lookup_elem(&ports, &number);
    return port ? *(volatile __u64 *)port : 0;
}

static __always_inline __u32 kind_of(__u64 port)
{
    return port >> 32;
}

/* The device of a port; 0: no frame can leave by it. */
static __always_inline __u32 device_of(__u64 port)
{
    return port;
}

#endif
