/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* One frame in one direction: parse, find its flow (the only lookup by flow), count, tell, steer. */
#ifndef TE_OBSERVE_BPF_H
#define TE_OBSERVE_BPF_H

#include "events.bpf.h"
#include "steering.bpf.h"

/* Adds a flow; its counters stay 0. NULL, and counted, when the map is full. Another CPU may have added it first. */
static __always_inline struct TeFlow* te_add_flow(void* flows, const void* key, __u8 direction) {
  struct TeFlow fresh = {.direction = direction};
  bpf_map_update_elem(flows, key, &fresh, BPF_NOEXIST);
  struct TeFlow* flow = bpf_map_lookup_elem(flows, key);
  if (flow) return flow;
  struct TeLosses* losses = te_losses_entry();
  if (losses) te_add(&losses->flows, 1);
  return NULL;
}

/* Counts and steers. A key is counted in the direction that it was first seen in: on loopback each packet passes twice.
 * Returns the events to tell as TE_EVENT_BITs. */
static __always_inline __u32 te_account(struct __sk_buff* skb, struct TeFlow* flow, const struct TePacket* packet,
                                        __u8 direction, __u16* old_port) {
  if (TE_UNLIKELY(flow->direction != direction)) return 0;
  __u32 events = te_events_of(flow, packet, old_port);
  te_count(flow, packet);
  if (direction == kTeEgress) {
    te_steer(skb, flow, packet);
  } else if (flow->wire_port != packet->source_port) {
    TE_WRITE_ONCE(flow->wire_port, packet->source_port);
  }
  return events;
}

static __always_inline void te_observe_v4(struct __sk_buff* skb, struct TeCursor* cursor, __u32 ip_offset,
                                          __u8 direction) {
  struct TePacket packet;
  packet.ip_offset = ip_offset;
  struct TeFlowKeyV4 key;
  if (!te_parse_v4(skb, cursor, &packet, &key)) return;
  if (direction == kTeEgress && skb->mark == kTeProbeMark) return;
  struct TeFlow* flow = bpf_map_lookup_elem(&te_flows_v4, &key);
  if (TE_UNLIKELY(!flow) && !(flow = te_add_flow(&te_flows_v4, &key, direction))) return;
  __u16 old_port = packet.source_port;
  __u32 events = te_account(skb, flow, &packet, direction, &old_port);
  if (TE_LIKELY(!events)) return;
  struct TeEvent event = {.family = 4};
  te_fill_event(&event, &packet, key.ifindex, direction, old_port);
  __builtin_memcpy(event.source, key.source, sizeof key.source);
  __builtin_memcpy(event.destination, key.destination, sizeof key.destination);
  te_send_events(&event, flow, events);
}

static __always_inline void te_observe_v6(struct __sk_buff* skb, struct TeCursor* cursor, __u32 ip_offset,
                                          __u8 direction) {
  struct TePacket packet;
  packet.ip_offset = ip_offset;
  struct TeFlowKeyV6 key;
  if (!te_parse_v6(skb, cursor, &packet, &key)) return;
  if (direction == kTeEgress && skb->mark == kTeProbeMark) return;
  struct TeFlow* flow = bpf_map_lookup_elem(&te_flows_v6, &key);
  if (TE_UNLIKELY(!flow) && !(flow = te_add_flow(&te_flows_v6, &key, direction))) return;
  __u16 old_port = packet.source_port;
  __u32 events = te_account(skb, flow, &packet, direction, &old_port);
  if (TE_LIKELY(!events)) return;
  struct TeEvent event = {.family = 6};
  te_fill_event(&event, &packet, key.ifindex, direction, old_port);
  __builtin_memcpy(event.source, key.source, sizeof key.source);
  __builtin_memcpy(event.destination, key.destination, sizeof key.destination);
  te_send_events(&event, flow, events);
}

/* Takes the tags that lie in the frame; the outermost may lie beside it (skb->vlan_present), so that there are
 * kTeMostVlans in all. Returns the type of what is behind them, 0 when it is no IP. */
static __always_inline __be16 te_take_tags(struct __sk_buff* skb, struct TeCursor* cursor, __be16 type,
                                           __u32* ip_offset) {
  int room = kTeMostVlans - !!skb->vlan_present;
  for (int i = 0; i < kTeMostVlans; ++i) {
    if (!te_is_vlan(type)) break;
    struct TeVlan* vlan = te_take(cursor, sizeof *vlan);
    if (!vlan || i >= room) return 0;
    type = vlan->inner_type;
    *ip_offset += kTeVlanBytes;
  }
  return type == bpf_htons(ETH_P_IP) || type == bpf_htons(ETH_P_IPV6) ? type : 0;
}

/* What to pull: enough for the shortest packet, tags included; where the frame is shorter, it is none. */
static __always_inline __u32 te_least_bytes(const struct __sk_buff* skb) {
  const __u32 around = sizeof(struct ethhdr) + sizeof(struct udphdr) + sizeof(struct TeBth);
  if (skb->protocol == bpf_htons(ETH_P_IP)) return around + sizeof(struct iphdr);
  if (skb->protocol == bpf_htons(ETH_P_IPV6)) return around + sizeof(struct ipv6hdr);
  if (!te_is_vlan(skb->protocol)) return 0;
  const __u32 most = around + kTeMostVlans * kTeVlanBytes + sizeof(struct ipv6hdr);
  return skb->len < most ? skb->len : most;
}

static __always_inline void te_observe(struct __sk_buff* skb, __u8 direction) {
  struct TeCursor cursor;
  __u32 bytes = te_least_bytes(skb);
  if (!bytes || !te_open_frame(skb, bytes, &cursor)) return;
  struct ethhdr* ethernet = te_take(&cursor, sizeof *ethernet);
  if (!ethernet || ethernet->h_proto != skb->protocol) return;
  __u32 ip_offset = sizeof *ethernet;
  __be16 type = ethernet->h_proto;
  if (TE_UNLIKELY(te_is_vlan(type))) type = te_take_tags(skb, &cursor, type, &ip_offset);
  if (type == bpf_htons(ETH_P_IP)) {
    te_observe_v4(skb, &cursor, ip_offset, direction);
  } else if (type == bpf_htons(ETH_P_IPV6)) {
    te_observe_v6(skb, &cursor, ip_offset, direction);
  }
}

#endif
