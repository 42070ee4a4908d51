/*
 * A network device driver with IEEE DCB, as a process sees it over rtnetlink: preloaded, it puts
 * an answer in the place of the kernel's "not supported" where the device has no such driver.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <linux/dcbnl.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

struct answer {
    struct nlmsghdr head;
    struct dcbmsg dcb;
    struct nlattr attr;
    __u8 value[4];
};

/* The attribute that answers a command, or 0 for what this driver has nothing to say of. */
static __u16 attribute(__u8 cmd, __u8 *value)
{
    switch (cmd) {
    case DCB_CMD_GDCBX:
        *value = DCB_CAP_DCBX_HOST | DCB_CAP_DCBX_VER_IEEE | DCB_CAP_DCBX_VER_CEE;
        return DCB_ATTR_DCBX;
    case DCB_CMD_SDCBX:
        *value = 0;
        return DCB_ATTR_DCBX;
    case DCB_CMD_IEEE_SET:
    case DCB_CMD_IEEE_DEL:
        *value = 0;
        return DCB_ATTR_IEEE;
    default:
        return 0;
    }
}

ssize_t recvmsg(int fd, struct msghdr *msg, int flags)
{
    static ssize_t (*real)(int, struct msghdr *, int);
    if (!real)
        real = (ssize_t(*)(int, struct msghdr *, int))dlsym(RTLD_NEXT, "recvmsg");
    ssize_t got = real(fd, msg, flags);
    struct nlmsghdr *head = msg->msg_iovlen ? msg->msg_iov[0].iov_base : 0;
    struct sockaddr_nl *from = msg->msg_name;
    size_t error_bytes = NLMSG_LENGTH(sizeof(struct nlmsgerr) + sizeof(struct dcbmsg));
    if ((flags & MSG_PEEK) || got < (ssize_t)error_bytes || !from || from->nl_family != AF_NETLINK ||
        head->nlmsg_type != NLMSG_ERROR)
        return got;
    struct nlmsgerr *error = NLMSG_DATA(head);
    if (error->error == 0 || (error->msg.nlmsg_type != RTM_GETDCB && error->msg.nlmsg_type != RTM_SETDCB))
        return got;
    struct answer answer = {.head = error->msg};
    memcpy(&answer.dcb, error + 1, sizeof answer.dcb);
    answer.attr.nla_type = attribute(answer.dcb.cmd, answer.value);
    if (!answer.attr.nla_type)
        return got;
    answer.attr.nla_len = NLA_HDRLEN + 1;
    answer.head.nlmsg_len = sizeof answer;
    answer.head.nlmsg_flags = 0;
    memcpy(head, &answer, sizeof answer);
    return sizeof answer;
}
