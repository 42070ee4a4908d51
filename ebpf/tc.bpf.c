// The tc data plane: packets of up to 64 KB as the hosts' stacks make them (TSO, GRO), queues by
// the qdisc of the egress port. It runs at the ingress of each port.
#include <linux/pkt_cls.h>
#include "step.h"

char LICENSE[] SEC("license") = "Apache-2.0";

/* The kernel shortens what it takes for IP, and leaves at least an IP header. */
#define SHORTEST_IP 34
#define SHORTEST_IPV6 54
/* And takes out no more than this. */
#define SHORTEN_BYTES_MAX 0xfff
/* A UDP datagram in an IPv4 packet: the fewest bytes before what GSO cuts. */
#define SHORTEST_BEFORE_GSO 42
/* The major number of the HTB qdisc whose classes are ingress ports. */
#define HANDLE_OF_QDISC (1 << 16)
/* The class of what control planes say, before all others (crates/linux/src/kernel/shares.rs). */
#define CLASS_OF_CONTROL 0xfffe

/* Where packets for the node go, by ifindex; 0 is a node that does not run. */
enum node_queue {
    OF_FABRIC = 0, /* what came in by an Axon port, but for frames of hosts */
    OF_LINKS = 1,  /* link-local frames by any other port */
    OF_HOSTS = 2,  /* the rest */
};

struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 3);
    __type(key, __u32);
    __type(value, __u32);
} node SEC(".maps");

/* Frames that one port may send to each of the node's queues of links and hosts in a millisecond,
 * so that no port takes the node from the others; any number if it is 0. Set before the program is
 * loaded.
 */
const volatile __u16 NODE_FRAMES_PER_MS = 0;
/* The burst: a port that was silent may send so many at once. */
#define NODE_BURST_FRAMES 1024
#define NS_PER_MS 1000000

/* By queue: the theoretical arrival time of the next frame (GCRA). It is written without a lock:
 * where several CPUs receive from one port, each may have up to the whole budget.
 */
static volatile __u64 arrival[3];

static __noinline int lost(void)
{
    count_lost();
    return TC_ACT_SHOT;
}

/* Puts the number of the port into the tag that the kernel holds beside the packet. A tag that is
 * there already goes into the packet, where it was on the wire.
 */
static __always_inline int tag_with_port(struct __sk_buff *skb)
{
    return !bpf_skb_vlan_push(skb, bpf_htons(ETH_P_8021Q), PORT);
}

/* How many frames a packet will be; the kernel forgets that when it is shortened. */
static __always_inline __u32 frames_in(struct __sk_buff *skb)
{
    return skb->gso_segs ? skb->gso_segs : 1;
}

/* Whether the port may send `frames` more frames to that queue. What neighbours say is not
 * policed. A guest's super-packet, whose frames nobody has counted, is one.
 */
static __always_inline int within_budget(__u32 queue, __u32 frames)
{
    if (!NODE_FRAMES_PER_MS || (queue != OF_HOSTS && queue != OF_LINKS))
        return 1;
    __u64 gap = NS_PER_MS / NODE_FRAMES_PER_MS, now = bpf_ktime_get_ns(), next = arrival[queue];
    if (next < now)
        next = now;
    if (next - now > NODE_BURST_FRAMES * gap)
        return 0;
    arrival[queue] = next + frames * gap;
    return 1;
}

/* Hands the packet to the node, as it was on the wire and tagged with the port: the only mark that
 * leaves a packet as one that the kernel can still cut into frames.
 */
static __noinline int to_node(struct __sk_buff *skb, __u32 queue, int is_tagged)
{
    if (!within_budget(queue, frames_in(skb)))
        return lost();
    __u32 *ifindex = bpf_map_lookup_elem(&node, &queue);
    if (!ifindex || !*ifindex || (!is_tagged && !tag_with_port(skb)))
        return lost();
    count_for_node();
    return bpf_redirect(*ifindex, 0);
}

/* 01-80-C2-00-00-0x: reserved for a link (IEEE 802.1Q clause 8.6.3). */
static __always_inline int is_link_local(const __u8 *frame)
{
    return frame[0] == 0x01 && frame[1] == 0x80 && frame[2] == 0xc2 && frame[3] == 0 &&
           frame[4] == 0 && frame[5] < 0x10;
}

static __always_inline int leave_by(struct __sk_buff *skb, __u32 class, __u32 number, __u64 port,
                                    __u32 frames, __u32 in_bytes, __u32 out_bytes)
{
    count(number, frames, in_bytes, out_bytes);
    skb->priority = HANDLE_OF_QDISC | class;
    return bpf_redirect(device_of(port), 0);
}

/* Frames of hosts have a share of the link by the port that they came in by. */
static __always_inline int leave(struct __sk_buff *skb, __u32 number, __u64 port, __u32 frames,
                                 __u32 in_bytes, __u32 out_bytes)
{
    return leave_by(skb, PORT + 1, number, port, frames, in_bytes, out_bytes);
}

/* Whether the frames of a packet are no longer than a host's may be. What is cut later has a length
 * that nobody knows yet: here, the shortest that its frames can have.
 */
static __always_inline int packet_fits(struct __sk_buff *skb, __u32 bytes, __u16 type)
{
    __u32 cut = skb->gso_size;
    return cut ? bytes >= ETHERNET_BYTES && fits(cut + SHORTEST_BEFORE_GSO, type)
               : fits(bytes, type);
}

/* The kernel reads what a packet is from its bytes 12 and 13 where it takes a tag out of it. This
 * writes `type` there for the while, and takes out the tag in front of them and the one beside the
 * packet: what was the packet's own at 12 is gone, four bytes and the type.
 */
static __always_inline int pop_as(struct __sk_buff *skb, __u16 type)
{
    return !bpf_skb_store_bytes(skb, 2 * ETH_ALEN + TAG_BYTES, &type, sizeof(type),
                                BPF_F_RECOMPUTE_CSUM) &&
           !bpf_skb_vlan_pop(skb) && !bpf_skb_vlan_pop(skb);
}

/* The same for a packet without a tag: two are put in. Its own two bytes at 12 are gone. */
static __always_inline int read_as(struct __sk_buff *skb, __u16 type)
{
    return tag_with_port(skb) && tag_with_port(skb) && pop_as(skb, type);
}

/* What the first switch, or the one before, put on the wire has a tag's type in bytes 12 and 13, or
 * it is a host's own tag: the packet, tagged with the port, loses that mark and gets `front` bytes
 * before it.
 */
static __always_inline int unmark(struct __sk_buff *skb, __u32 front)
{
    __u8 start[2 * ETH_ALEN + TAG_BYTES + 2];
    return !bpf_skb_load_bytes(skb, 0, start, sizeof(start)) &&
           pop_as(skb, bpf_htons(ETH_P_IP)) &&
           !bpf_skb_change_head(skb, front + TAG_BYTES, 0) &&
           !bpf_skb_store_bytes(skb, front, start, sizeof(start), BPF_F_RECOMPUTE_CSUM);
}

/* Takes `bytes` off the front; what is left is a host's frame of `left` bytes. The kernel shortens
 * behind the first 14 bytes, and only what it takes for IP.
 */
static __always_inline int shorten(struct __sk_buff *skb, __u32 bytes, __u32 left, int is_tagged)
{
    __u8 ethernet[ETHERNET_BYTES];
    if (bpf_skb_load_bytes(skb, bytes, ethernet, sizeof(ethernet)))
        return 0;
    __u16 type = bpf_htons(ETH_P_IP);
    if (ethernet[12] == 0x86 && ethernet[13] == 0xdd && left >= SHORTEST_IPV6)
        type = bpf_htons(ETH_P_IPV6);
    if (is_tagged)
        bytes -= TAG_BYTES;
    return (is_tagged ? pop_as(skb, type) : read_as(skb, type)) &&
           !bpf_skb_adjust_room(skb, -(__s32)bytes, BPF_ADJ_ROOM_MAC,
                                BPF_F_ADJ_ROOM_FIXED_GSO | BPF_F_ADJ_ROOM_NO_CSUM_RESET) &&
           !bpf_skb_store_bytes(skb, 0, ethernet, sizeof(ethernet), BPF_F_RECOMPUTE_CSUM);
}

/* A packet from a switch, for hosts behind `port`. */
static __always_inline int strip(struct __sk_buff *skb, const struct header *header, __u32 number,
                                 __u64 port, int is_tagged)
{
    __u32 length = skb->len, bytes = header->bytes, frames = frames_in(skb);
    __u16 type;
    if (header->type != TYPE_ETHERNET || length < bytes + SHORTEST_IP || bytes > SHORTEN_BYTES_MAX)
        return to_node(skb, OF_HOSTS, is_tagged);
    __u32 left = length - bytes;
    if (bpf_skb_load_bytes(skb, bytes + 2 * ETH_ALEN, &type, sizeof(type)) ||
        !packet_fits(skb, left, type))
        return to_node(skb, OF_HOSTS, is_tagged);
    if (!shorten(skb, bytes, left, is_tagged))
        return lost();
    return leave(skb, number, port, frames, length, left);
}

/* Types whose super-packets the kernel treats by rules of their own: it drops those of FCoE where a
 * device cannot make its CRC, and those of MPLS where a device knows of no MPLS.
 */
static __always_inline int is_special(__u32 type)
{
    return type == bpf_htons(ETH_P_FCOE) || type == bpf_htons(ETH_P_MPLS_UC) ||
           type == bpf_htons(ETH_P_MPLS_MC);
}

/* Has the kernel read a super-packet as IPv4, whatever its bytes 12 and 13 are. */
static __always_inline int make_plain(struct __sk_buff *skb)
{
    __u16 type;
    return !bpf_skb_load_bytes(skb, 2 * ETH_ALEN, &type, sizeof(type)) &&
           read_as(skb, bpf_htons(ETH_P_IP)) &&
           !bpf_skb_store_bytes(skb, 2 * ETH_ALEN, &type, sizeof(type), BPF_F_RECOMPUTE_CSUM);
}

/* A packet from a switch. Where its bytes 12 and 13 read as the type of a tag, the kernel has taken
 * that out: the mark of the port puts it back.
 */
static __always_inline int transit(struct __sk_buff *skb, __u32 bits)
{
    int is_tagged = skb->vlan_present;
    if (is_tagged && !tag_with_port(skb))
        return lost();
    __u8 *data = (__u8 *)(long)skb->data, *end = (__u8 *)(long)skb->data_end;
    if (data + STEP_BYTES > end)
        return to_node(skb, OF_FABRIC, is_tagged);
    /* What hosts send must not crowd out what neighbours say. */
    __u32 queue = data[0] >> 4 == TYPE_ETHERNET ? OF_HOSTS : OF_FABRIC;
    struct header header;
    if (!parse(data, bits, &header) || header.bytes > skb->len)
        return to_node(skb, queue, is_tagged);
    __u32 number = header.hop, words = words_of(&header, bits), length = skb->len;
    __u64 port = port_of(number);
    if (!device_of(port))
        return to_node(skb, queue, is_tagged);
    if (kind_of(port) == PORT_HOST)
        return strip(skb, &header, number, port, is_tagged);
    __u32 touched = hops_at(bits) + 8 * words;
    if (kind_of(port) != PORT_AXON || words > WORDS_MAX || touched > length)
        return to_node(skb, queue, is_tagged);
    /* A driver may have put no more than the first 14 bytes where programs can reach them. */
    if (data + touched > end) {
        if (bpf_skb_pull_data(skb, touched))
            return lost();
        data = (__u8 *)(long)skb->data;
        end = (__u8 *)(long)skb->data_end;
        if (data + STEP_BYTES > end || data + touched > end)
            return lost();
    }
    advance(data, end, bits, &header, words);
    if (is_tagged ? !unmark(skb, 0)
                  : skb->gso_size && is_special(skb->protocol) && !make_plain(skb))
        return lost();
    __u32 class = header.type == TYPE_CONTROL ? CLASS_OF_CONTROL : PORT + 1;
    return leave_by(skb, class, number, port, frames_in(skb), length, length);
}

/* A super-packet that comes straight from a guest (TAP, a virtual NIC): the kernel does not trust its
 * header, and would have each device on the way examine what it cannot read there.
 */
static __always_inline int is_untrusted(struct __sk_buff *skb)
{
    return skb->gso_size && !skb->gso_segs;
}

static __always_inline int from_host(struct __sk_buff *skb)
{
    __u8 *data = (__u8 *)(long)skb->data, *end = (__u8 *)(long)skb->data_end;
    int is_tagged = skb->vlan_present;
    __u32 length = skb->len + (is_tagged ? TAG_BYTES : 0);
    if (data + ETHERNET_BYTES > end)
        return to_node(skb, OF_HOSTS, 0);
    if (is_group(data))
        return to_node(skb, is_link_local(data) ? OF_LINKS : OF_HOSTS, 0);
    __u16 type = is_tagged ? bpf_htons(ETH_P_8021Q) : *(__u16 *)(data + 2 * ETH_ALEN);
    if (is_mac_control(type))
        return to_node(skb, OF_HOSTS, 0);
    __u64 flow = flow_of(data), words[BODY_WORDS];
    struct route *route = bpf_map_lookup_elem(&routes, &flow);
    if (!route || !packet_fits(skb, length, type) || !take_route(route, flow, words))
        return to_node(skb, OF_HOSTS, 0);
    struct body *body = (struct body *)words;
    __u32 number = body->egress, pushed = body->length;
    /* One register, so that the bounds checked below are those of what is used. */
    barrier_var(pushed);
    __u64 port = port_of(number);
    if (!device_of(port))
        return to_node(skb, OF_HOSTS, 0);
    if (kind_of(port) == PORT_HOST)
        return leave(skb, number, port, frames_in(skb), length, length);
    if (kind_of(port) != PORT_AXON || pushed < HEADER_BYTES_MIN || pushed > HEADER_BYTES_MAX ||
        is_untrusted(skb))
        return to_node(skb, OF_HOSTS, 0);
    if (!is_tagged && bpf_skb_change_head(skb, pushed, 0))
        return to_node(skb, OF_HOSTS, 0);
    if (is_tagged && (!tag_with_port(skb) || !unmark(skb, pushed)))
        return lost();
    /* Checked once more: Linux 6.1 forgets what it knew of a number that was put aside meanwhile. */
    barrier_var(pushed);
    if (pushed < HEADER_BYTES_MIN || pushed > HEADER_BYTES_MAX ||
        bpf_skb_store_bytes(skb, 0, body->header, pushed, 0))
        return lost();
    return leave(skb, number, port, frames_in(skb), length, length + pushed);
}

/* Until the peer of a port is known, its frames are the node's. */
static __always_inline int from_unknown(struct __sk_buff *skb)
{
    __u8 *data = (__u8 *)(long)skb->data, *end = (__u8 *)(long)skb->data_end;
    int is_link = data + ETHERNET_BYTES <= end && is_link_local(data);
    return to_node(skb, is_link ? OF_LINKS : OF_HOSTS, 0);
}

SEC("classifier")
int axon_tc(struct __sk_buff *skb)
{
    __u32 kind = kind_of(port_of(PORT));
    if (kind == PORT_AXON)
        return HOP_BITS == 8    ? transit(skb, 8)
               : HOP_BITS == 16 ? transit(skb, 16)
                                : transit(skb, 4);
    if (kind == PORT_HOST)
        return from_host(skb);
    return from_unknown(skb);
}
