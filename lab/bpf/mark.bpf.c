// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// A switch port's congestion marks: sets CE on packets of ECN-capable transports that find more than `mark_bytes` in
// the port's queue. Runs at tc egress, before the packet joins the queue; leaves the chain to whoever comes next.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

struct gnet_stats_queue {
  __u32 backlog;
} __attribute__((preserve_access_index));

struct Qdisc {
  struct gnet_stats_queue qstats;
} __attribute__((preserve_access_index));

struct net_device {
  struct Qdisc* qdisc;
} __attribute__((preserve_access_index));

struct sk_buff {
  struct net_device* dev;
} __attribute__((preserve_access_index));

const volatile __u32 mark_bytes = 0;

SEC("tc")
int mark_congestion(struct __sk_buff* skb) {
  // At run time the context is the kernel's own sk_buff: the queue's length is read through it.
  struct sk_buff* kernel_skb = (struct sk_buff*)skb;
  __u32 backlog = BPF_CORE_READ(kernel_skb, dev, qdisc, qstats.backlog);
  if (backlog > mark_bytes) bpf_skb_ecn_set_ce(skb);
  return TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
