// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// A bad cable: loses packets at random, each direction with a share of its own. Runs on the interface between the two
// ends, so that the sender has counted what is lost as sent, and the receiver never sees it.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

#include "cable_loss.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __uint(max_entries, 65536);
  __type(key, __u32);
  __type(value, struct te_cable_loss);
} cable_losses SEC(".maps");

static __always_inline int cross(struct __sk_buff* skb, __u32 direction) {
  const __u32 key = 2 * skb->ifindex + direction;
  struct te_cable_loss* loss = bpf_map_lookup_elem(&cable_losses, &key);
  if (!loss) return TC_ACT_UNSPEC;
  if (bpf_get_prandom_u32() >= loss->threshold) {
    __sync_fetch_and_add(&loss->passed_packets, 1);
    return TC_ACT_UNSPEC;
  }
  __sync_fetch_and_add(&loss->lost_packets, 1);
  // Not TC_ACT_SHOT: end b's driver would hear of it and not count the packet as sent.
  return TC_ACT_STOLEN;
}

SEC("tc")
int from_a(struct __sk_buff* skb) { return cross(skb, 0); }

SEC("tc")
int from_b(struct __sk_buff* skb) { return cross(skb, 1); }

char LICENSE[] SEC("license") = "Dual BSD/GPL";
