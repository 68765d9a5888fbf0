/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* Rare things, told to user space through the ring buffer. This path is rare, so it may read the clock. */
#ifndef TE_EVENTS_BPF_H
#define TE_EVENTS_BPF_H

#include "flow.bpf.h"

#define TE_EVENT_BIT(kind) (1u << (kind))

static __always_inline int te_within_limit(struct TeEventLimit* limit) {
  const __u64 second_ns = 1000000000;
  __u64 now = bpf_ktime_get_ns();
  if (now - limit->window_start_ns >= second_ns) {
    limit->window_start_ns = now;
    limit->sent = 0;
  }
  if (limit->sent >= kTeEventsPerSecond) return 0;
  limit->sent++;
  return 1;
}

static __noinline int te_send_event(struct TeEvent* event, struct TeFlow* flow) {
  if (!event || !flow) return 0;
  /* The mask keeps the index within the array in a way that the verifier sees. */
  if (event->kind != kTeNewFlow && !te_within_limit(&flow->limits[(event->kind - 1) & (kTeLimitedKinds - 1)])) return 0;
  if (!bpf_ringbuf_output(&te_events, event, sizeof *event, 0)) return 1;
  struct TeLosses* losses = te_losses_entry();
  if (losses) te_add(&losses->events, 1);
  return 0;
}

/* The kinds of event, as TE_EVENT_BITs, that a packet of a known flow gives rise to; notes a changed source port. */
static __always_inline __u32 te_events_of(struct TeFlow* flow, const struct TePacket* packet, __u16* old_port) {
  __u32 events = 0;
  __u16 seen = TE_READ_ONCE(flow->source_port);
  int has_port = !(packet->traits & kTeOpCnp); /* NICs send CNPs from any port, 0 included */
  if (TE_UNLIKELY(!seen)) {
    if (has_port) TE_WRITE_ONCE(flow->source_port, packet->source_port);
    if (has_port || !flow->packets) events |= TE_EVENT_BIT(kTeNewFlow);
  } else if (TE_UNLIKELY(seen != packet->source_port) && has_port) {
    TE_WRITE_ONCE(flow->source_port, packet->source_port);
    *old_port = seen;
    events |= TE_EVENT_BIT(kTePortChanged);
  }
  if (TE_UNLIKELY((packet->traits & (kTeOpKnown | kTeOpAck | kTeOpCnp | kTeOpRare)) != kTeOpKnown)) {
    if (te_is_nak(packet)) events |= TE_EVENT_BIT(kTeNak);
    if (packet->traits & kTeOpCnp) events |= TE_EVENT_BIT(kTeCnp);
    if (!(packet->traits & kTeOpKnown) || (packet->traits & kTeOpRare)) events |= TE_EVENT_BIT(kTeRareOpcode);
  }
  return events;
}

static __always_inline void te_fill_event(struct TeEvent* event, const struct TePacket* packet, __u32 ifindex,
                                          __u8 direction, __u16 old_port) {
  event->direction = direction;
  event->opcode = packet->opcode;
  event->syndrome = packet->traits & kTeOpAck ? packet->syndrome : 0;
  event->old_port = old_port;
  event->new_port = packet->source_port;
  event->psn = packet->psn;
  event->ifindex = ifindex;
  event->destination_qpn = packet->destination_qpn;
}

static __always_inline void te_send_events(struct TeEvent* event, struct TeFlow* flow, __u32 events) {
  for (__u8 kind = kTeNewFlow; kind <= kTeRareOpcode; ++kind) {
    if (!(events & TE_EVENT_BIT(kind))) continue;
    event->kind = kind;
    te_send_event(event, flow);
  }
}

#endif
