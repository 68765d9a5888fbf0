// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// Programs as an agent of another ABI version would have left them: flows of the same meaning in another layout, and a
// program that counts what passes it.
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

struct OtherKeyV4 {
  __u8 destination[4];
  __u8 source[4];
  __u32 destination_qpn;
  __u32 ifindex;
  __u32 vlan;
};

struct OtherKeyV6 {
  __u8 destination[16];
  __u8 source[16];
  __u32 destination_qpn;
  __u32 ifindex;
  __u32 vlan;
};

struct OtherFlow {
  __u64 packets;
  __u32 something_new[7];
  __u16 wire_port;
  __u16 steer_port;
};

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct OtherKeyV4);
  __type(value, struct OtherFlow);
} other_flows_v4 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, 4096);
  __type(key, struct OtherKeyV6);
  __type(value, struct OtherFlow);
} other_flows_v6 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, __u64);
} other_packets SEC(".maps");

SEC("tc")
int te_other(struct __sk_buff* skb) {
  __u32 only = 0;
  __u64* packets = bpf_map_lookup_elem(&other_packets, &only);
  if (packets && skb->len > 0) __sync_fetch_and_add(packets, 1);
  return -1;
}

char LICENSE[] SEC("license") = "GPL";
