// What the data planes are measured against and with: nothing, a redirect that looks at nothing, a
// generator of frames, and what takes them at the end.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Apache-2.0";

#define START_WORDS 8

const volatile __u32 IFINDEX = 1;
/* The first bytes of each frame that is generated: switches on its way have changed them before. */
const volatile __u64 START[START_WORDS];
/* And the last 8 of the first 128. */
const volatile __u64 TAIL = 0;

/* The device of a redirect by map: the faster way, which the kernel has compiled in place. */
struct {
    __uint(type, BPF_MAP_TYPE_DEVMAP);
    __uint(max_entries, 1);
    __type(key, __u32);
    __type(value, __u32);
} device SEC(".maps");

/* Frames that came to the end. All of them come on one CPU. */
__u64 taken = 0;

/* Frames for groups are not the generator's: bridges send such. */
static __always_inline void take(const __u8 *data, const __u8 *end)
{
    if (data + 1 <= end && !(data[0] & 1))
        taken++;
}

SEC("classifier")
int tc_nothing(struct __sk_buff *skb)
{
    return TC_ACT_OK;
}

SEC("classifier")
int tc_redirect(struct __sk_buff *skb)
{
    return bpf_redirect(IFINDEX, 0);
}

SEC("classifier")
int tc_take(struct __sk_buff *skb)
{
    take((__u8 *)(long)skb->data, (__u8 *)(long)skb->data_end);
    return TC_ACT_SHOT;
}

SEC("xdp")
int xdp_nothing(struct xdp_md *frame)
{
    return XDP_PASS;
}

SEC("xdp")
int xdp_redirect(struct xdp_md *frame)
{
    return bpf_redirect(IFINDEX, 0);
}

SEC("xdp")
int xdp_redirect_map(struct xdp_md *frame)
{
    return bpf_redirect_map(&device, 0, 0);
}

SEC("xdp")
int xdp_generate(struct xdp_md *frame)
{
    __u64 *data = (__u64 *)(long)frame->data, *end = (__u64 *)(long)frame->data_end;
    if (data + START_WORDS > end)
        return XDP_DROP;
#pragma unroll
    for (int i = 0; i < START_WORDS; i++)
        data[i] = START[i];
    /* A longer frame has come whole as well, and lies in the cache. */
    if (data + 2 * START_WORDS <= end)
        data[2 * START_WORDS - 1] = TAIL;
    return bpf_redirect_map(&device, 0, 0);
}

SEC("xdp")
int xdp_take(struct xdp_md *frame)
{
    take((__u8 *)(long)frame->data, (__u8 *)(long)frame->data_end);
    return XDP_DROP;
}
