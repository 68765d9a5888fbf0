// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// For measuring only: the product's own function, with what makes one frame look like the next packet of its flow,
// since BPF_PROG_TEST_RUN repeats with the frame as the last run left it. These stores are counted against the product.
#include "observe.bpf.h"

const volatile __u32 udp_offset = 0;
const volatile __u32 icrc_offset = 0;
const volatile __u32 old_icrc = 0;
const volatile __u16 old_port = 0; /* as on the wire */

__u32 next_psn = 0;
__u64 repaired_packets = 0;

enum { kNext = -1, kPsnOffset = sizeof(struct udphdr) + 8, kMaxOffset = 4096 };

/* A pointer to `bytes` at `offset` of the frame, or NULL. */
static __always_inline void* at(struct __sk_buff* skb, __u32 offset, __u32 bytes) {
  void* data = (void*)(long)skb->data;
  barrier_var(offset);
  if (offset > kMaxOffset || data + offset + bytes > (void*)(long)skb->data_end) return NULL;
  return data + offset;
}

SEC("tc")
int bench_empty(struct __sk_buff* skb __attribute__((unused))) { return kNext; }

SEC("tc")
int bench_other(struct __sk_buff* skb) {
  te_observe(skb, kTeEgress);
  return kNext;
}

SEC("tc")
int bench_count(struct __sk_buff* skb) {
  __be32* psn = at(skb, udp_offset + kPsnOffset, sizeof *psn);
  if (psn) *psn = bpf_htonl(next_psn++ & kTePsnMask);
  te_observe(skb, kTeEgress);
  return kNext;
}

SEC("tc")
int bench_steer(struct __sk_buff* skb) {
  __be32* psn = at(skb, udp_offset + kPsnOffset, sizeof *psn);
  __u16* port = at(skb, udp_offset, sizeof *port);
  __u32* icrc = at(skb, icrc_offset, sizeof *icrc);
  if (!psn || !port || !icrc) return kNext;
  *psn = bpf_htonl(next_psn++ & kTePsnMask);
  *port = old_port;
  *icrc = old_icrc;
  te_observe(skb, kTeEgress);
  icrc = at(skb, icrc_offset, sizeof *icrc);
  if (icrc && *icrc != old_icrc) repaired_packets++;
  return kNext;
}

char LICENSE[] SEC("license") = "GPL";
