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

static __always_inline void te_observe_v4(struct __sk_buff* skb, struct TeCursor* cursor, __u8 direction) {
  struct TePacket packet;
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

static __always_inline void te_observe_v6(struct __sk_buff* skb, struct TeCursor* cursor, __u8 direction) {
  struct TePacket packet;
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

static __always_inline void te_observe(struct __sk_buff* skb, __u8 direction) {
  const __u32 shortest_v4 = sizeof(struct ethhdr) + sizeof(struct iphdr) + sizeof(struct udphdr) + sizeof(struct TeBth);
  const __u32 shortest_v6 =
      sizeof(struct ethhdr) + sizeof(struct ipv6hdr) + sizeof(struct udphdr) + sizeof(struct TeBth);
  struct TeCursor cursor;
  if (skb->protocol == bpf_htons(ETH_P_IP)) {
    if (!te_open_frame(skb, shortest_v4, &cursor)) return;
    struct ethhdr* ethernet = te_take(&cursor, sizeof *ethernet);
    if (ethernet && ethernet->h_proto == bpf_htons(ETH_P_IP)) te_observe_v4(skb, &cursor, direction);
  } else if (skb->protocol == bpf_htons(ETH_P_IPV6)) {
    if (!te_open_frame(skb, shortest_v6, &cursor)) return;
    struct ethhdr* ethernet = te_take(&cursor, sizeof *ethernet);
    if (ethernet && ethernet->h_proto == bpf_htons(ETH_P_IPV6)) te_observe_v6(skb, &cursor, direction);
  }
}

#endif
