/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What a packet does to its flow's counters. */
#ifndef TE_FLOW_BPF_H
#define TE_FLOW_BPF_H

#include "maps.bpf.h"
#include "packet.bpf.h"

#define TE_READ_ONCE(field) (*(volatile __typeof__(field)*)&(field))
#define TE_WRITE_ONCE(field, value) (*(volatile __typeof__(field)*)&(field) = (value))

enum {
  kTePsnMask = 0xFFFFFF,
  kTePsnWindow = 1 << 16, /* more than any QP has in flight */
  kTeSyndromeClass = 0xE0,
  kTeSyndromeRnr = 0x20,
  kTeSyndromeNak = 0x60,
  kTeSyndromeNakSequence = 0x60,
};

/* A packet out of order. Follows the responder's view, so that loss at one place is counted once:
 *  - a PSN ahead of the next one is a gap; the first PSN left out is remembered;
 *  - when that PSN comes, the sender has gone back: what it sends again after it was never accepted, so it is new;
 *  - but where the next packets go on as if it had never been missed, it came late: that was no loss;
 *  - any other PSN behind is a duplicate (at the sender's side: a retransmission);
 *  - a jump of more than 2^16 either way is a new connection on the same QPN: tracking starts anew.
 * Two CPUs at once may count one gap or duplicate too many; that is the price of having no lock. */
static __always_inline void te_track_disorder(struct TeFlow* flow, __u32 psn, __u32 next) {
  __u32 ahead = (psn - next) & kTePsnMask;
  __u32 missing = TE_READ_ONCE(flow->missing_psn);
  if (ahead <= kTePsnWindow && TE_READ_ONCE(flow->resume_psn) == (psn | kTePsnValid)) {
    te_add(&flow->reordered_packets, 1);
    TE_WRITE_ONCE(flow->resume_psn, 0);
  } else if (ahead <= kTePsnWindow) {
    te_add(&flow->psn_gaps, 1);
    __u32 age = (next - missing) & kTePsnMask;
    if (!(missing & kTePsnValid) || age > kTePsnWindow) {
      TE_WRITE_ONCE(flow->missing_psn, (next & kTePsnMask) | kTePsnValid);
    }
  } else if (((next - psn) & kTePsnMask) > kTePsnWindow) {
    TE_WRITE_ONCE(flow->missing_psn, 0);
    TE_WRITE_ONCE(flow->resume_psn, 0);
  } else if (missing == (psn | kTePsnValid)) {
    TE_WRITE_ONCE(flow->missing_psn, 0);
    TE_WRITE_ONCE(flow->resume_psn, next);
  } else {
    te_add(&flow->duplicate_packets, 1);
    return;
  }
  TE_WRITE_ONCE(flow->next_psn, ((psn + 1) & kTePsnMask) | kTePsnValid);
}

static __always_inline void te_track_psn(struct TeFlow* flow, __u32 psn) {
  __u32 next = TE_READ_ONCE(flow->next_psn);
  if (TE_UNLIKELY((next & kTePsnValid) && next != (psn | kTePsnValid))) {
    te_track_disorder(flow, psn, next);
    return;
  }
  TE_WRITE_ONCE(flow->next_psn, ((psn + 1) & kTePsnMask) | kTePsnValid);
}

static __always_inline int te_is_nak(const struct TePacket* packet) {
  return (packet->traits & kTeOpAck) && (packet->syndrome & kTeSyndromeClass);
}

/* Everything but data: ACKs, CNPs, and READ requests, after which the next PSN depends on the response. */
static __always_inline void te_count_control(struct TeFlow* flow, const struct TePacket* packet) {
  if (packet->traits & kTeOpAck) {
    __u8 class = packet->syndrome & kTeSyndromeClass;
    if (!class) {
      te_add(&flow->ack_packets, 1);
    } else if (packet->syndrome == kTeSyndromeNakSequence) {
      te_add(&flow->nak_sequence, 1);
    } else if (class == kTeSyndromeRnr) {
      te_add(&flow->nak_rnr, 1);
    } else {
      te_add(&flow->nak_other, 1);
    }
  } else if (packet->traits & kTeOpCnp) {
    te_add(&flow->cnp_packets, 1);
  } else if (packet->traits & kTeOpRead) {
    TE_WRITE_ONCE(flow->next_psn, 0);
  }
}

static __always_inline void te_count(struct TeFlow* flow, const struct TePacket* packet) {
  te_add(&flow->packets, 1);
  te_add(&flow->bytes, packet->ip_bytes);
  if (packet->payload_bytes) te_add(&flow->payload_bytes, packet->payload_bytes);
  if (TE_UNLIKELY(packet->ecn == kTeEcnCe)) te_add(&flow->ecn_ce_packets, 1);
  if (TE_LIKELY(packet->traits & kTeOpOnePsn)) {
    te_track_psn(flow, packet->psn);
  } else {
    te_count_control(flow, packet);
  }
  if (flow->flow_label != packet->flow_label) TE_WRITE_ONCE(flow->flow_label, packet->flow_label);
}

#endif
