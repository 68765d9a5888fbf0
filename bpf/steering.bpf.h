/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Rewriting the source port. The ICRC covers it; since CRC is linear, the change of the ICRC depends only on the
 * changed bits and on how many bytes follow them, not on the packet. */
#ifndef TE_STEERING_BPF_H
#define TE_STEERING_BPF_H

#include "flow.bpf.h"

/* Ones' complement sum of what replaces what, for bpf_l4_csum_replace with size 0. */
static __always_inline __u32 te_checksum_change(__u16 old_port, __u16 new_port, __u32 old_icrc, __u32 new_icrc) {
  __u64 sum = (__u64)(__u16)~old_port + new_port + (__u32)~old_icrc + (__u64)new_icrc;
  sum = (sum & 0xFFFFFFFF) + (sum >> 32);
  return (__u32)((sum & 0xFFFFFFFF) + (sum >> 32));
}

enum { kTeMaxDirectOffset = 1 << 14 }; /* beyond every row of the ICRC table; the verifier wants a bound */

/* Four bytes at `offset`, as they lie: without a call where the frame is linear. */
static __always_inline int te_read_u32(struct __sk_buff* skb, __u32 offset, __u32* value) {
  void* data = (void*)(long)skb->data;
  barrier_var(offset); /* or the compiler bounds what it was computed from, which Linux 6.1 cannot follow */
  if (offset < kTeMaxDirectOffset && data + offset + sizeof *value <= (void*)(long)skb->data_end) {
    *value = *(__u32*)(data + offset);
    return 1;
  }
  return !bpf_skb_load_bytes(skb, offset, value, sizeof *value);
}

/* Sends the packet from `port` (host order), ICRC and UDP checksum repaired. Returns 1, or 0 with the packet untouched.
 * All that can fail comes before, or is, the first store: that one makes the frame writable up to its last byte. */
static __always_inline int te_rewrite_source_port(struct __sk_buff* skb, const struct TePacket* packet, __u16 port) {
  __u32 row_index = packet->udp_bytes / 4;
  struct TeIcrcRow* row = bpf_map_lookup_elem(&te_icrc_rows, &row_index);
  if (!row) return 0;
  __u32 icrc_offset = packet->udp_offset + packet->udp_bytes - kTeIcrcBytes;
  __u32 old_icrc;
  if (!te_read_u32(skb, icrc_offset, &old_icrc)) return 0;

  __u16 old_wire = bpf_htons(packet->source_port);
  __u16 new_wire = bpf_htons(port);
  __u32 change = old_wire ^ new_wire;
  __u32 new_icrc = old_icrc ^ row->delta[0][change & 15] ^ row->delta[1][(change >> 4) & 15] ^
                   row->delta[2][(change >> 8) & 15] ^ row->delta[3][(change >> 12) & 15];
  if (bpf_skb_store_bytes(skb, icrc_offset, &new_icrc, sizeof new_icrc, 0)) return 0;
  bpf_skb_store_bytes(skb, packet->udp_offset, &new_wire, sizeof new_wire, BPF_F_INVALIDATE_HASH);
  /* The helper knows whether the checksum is still to be completed by the device, in which case it covers neither. */
  if (packet->checksum) {
    bpf_l4_csum_replace(skb, packet->udp_offset + offsetof(struct udphdr, check), 0,
                        te_checksum_change(old_wire, new_wire, old_icrc, new_icrc), BPF_F_MARK_MANGLED_0);
  }
  return 1;
}

/* Steers a packet that leaves and notes the port it has on the wire. */
static __always_inline void te_steer(struct __sk_buff* skb, struct TeFlow* flow, const struct TePacket* packet) {
  __u16 port = TE_READ_ONCE(flow->steer_port);
  __u16 wire_port = packet->source_port;
  if (port) {
    if (port == wire_port || te_rewrite_source_port(skb, packet, port)) {
      if (port != wire_port) te_add(&flow->steered_packets, 1);
      wire_port = port;
    } else {
      struct TeLosses* losses = te_losses_entry();
      if (losses) te_add(&losses->unsteered_packets, 1);
    }
  }
  if (flow->wire_port != wire_port) TE_WRITE_ONCE(flow->wire_port, wire_port);
}

#endif
