// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Somebody else's tc program: counts what it gets and ends the chain.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_helpers.h>

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} foreign_packets SEC(".maps");

SEC("tc")
int foreign(struct __sk_buff* skb) {
  __u32 only = 0;
  __u64* packets = bpf_map_lookup_elem(&foreign_packets, &only);
  if (packets && skb->len > 0) __sync_fetch_and_add(packets, 1);
  return TC_ACT_OK;
}

char LICENSE[] SEC("license") = "GPL";
