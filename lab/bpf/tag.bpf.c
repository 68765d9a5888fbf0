// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// VLAN tags at tc, for kernels without 802.1Q: what leaves the interface gets tags, the last of `vlans` first, and what
// comes in must have just these and loses them.
#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "vlan_tags.h"

const volatile __u16 vlans[kMostVlans] = {};  // the outermost first; 0: none

/// The outer one of two is 802.1ad.
static __always_inline __be16 type_of(int place) {
  return place == 0 && vlans[1] != 0 ? bpf_htons(ETH_P_8021AD) : bpf_htons(ETH_P_8021Q);
}

SEC("tc")
int put_tags(struct __sk_buff* skb) {
  for (int place = kMostVlans - 1; place >= 0; --place) {
    if (vlans[place] != 0 && bpf_skb_vlan_push(skb, type_of(place), vlans[place]) != 0) return TC_ACT_SHOT;
  }
  return TC_ACT_UNSPEC;
}

SEC("tc")
int take_tags(struct __sk_buff* skb) {
  for (int place = 0; place < kMostVlans; ++place) {
    if (vlans[place] == 0) continue;
    const int is_ours =
        skb->vlan_present && skb->vlan_proto == type_of(place) && (skb->vlan_tci & 0xFFF) == vlans[place];
    if (!is_ours || bpf_skb_vlan_pop(skb) != 0) return TC_ACT_SHOT;
  }
  return skb->vlan_present ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
