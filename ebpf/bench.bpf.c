// What the data planes are measured against: nothing, and a redirect that looks at nothing.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>
#include <bpf/bpf_helpers.h>

char LICENSE[] SEC("license") = "Apache-2.0";

const volatile __u32 IFINDEX = 1;

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
