/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What the tc programs and the agent share. Any change of these structs, of the maps, or of what the programs do takes
 * a new kTeAbiVersion: an agent adopts pinned programs only of its own version. From those of another it takes the
 * steering over, by the names of these fields, which therefore stay: ifindex, destination_qpn, source and destination
 * of a key, steer_port of a flow; and of the maps, te_flows_v4 and te_flows_v6. */
#ifndef TE_ABI_H
#define TE_ABI_H

#include <linux/types.h>
#ifdef __cplusplus
#include <cstddef>
#define TE_ABI_ASSERT(condition) static_assert(condition, #condition)
#else
#include <stddef.h>
#define TE_ABI_ASSERT(condition) _Static_assert(condition, #condition)
#endif

enum {
  kTeAbiVersion = 3,
  kTeMaxFlows = 16384,            /* of each address family */
  kTeEventRingBytes = 256 * 1024, /* a power of two and of pages */
  kTeEventsPerSecond = 10,        /* of one kind, of one flow */
  kTeIcrcRows = 9216 / 4 + 1,     /* UDP datagrams up to 9216 bytes can be steered */
  kTeProbeMark = 0x7e70,          /* skb->mark of the agent's own path probes: they pass untouched and uncounted */
};

enum TeDirection { kTeEgress = 0, kTeIngress = 1 };

/* Addresses in network order; destination_qpn: 24 bits, host order. */
struct TeFlowKeyV4 {
  __u32 ifindex;
  __u32 destination_qpn;
  __u8 source[4];
  __u8 destination[4];
};

struct TeFlowKeyV6 {
  __u32 ifindex;
  __u32 destination_qpn;
  __u8 source[16];
  __u8 destination[16];
};

/* Events of one kind let through in the window (one second) that began at window_start_ns (CLOCK_MONOTONIC). */
struct TeEventLimit {
  __u64 window_start_ns;
  __u32 sent;
  __u32 reserved;
};

enum TeEventKind { kTeNewFlow = 0, kTePortChanged = 1, kTeNak = 2, kTeCnp = 3, kTeRareOpcode = 4, kTeLimitedKinds = 4 };

enum { kTePsnValid = 1u << 31 };

/* One direction of a flow. Ports in host order. The first 64 bytes are all that an ordinary packet touches. */
struct TeFlow {
  __u64 packets;
  __u64 bytes;         /* of IP packets */
  __u64 payload_bytes; /* message data: no headers, pad or ICRC */
  __u32 next_psn;      /* the PSN one past the newest request, with kTePsnValid; 0: not known */
  __u32 missing_psn;   /* the first PSN that a gap left out and that did not come since, with kTePsnValid; 0: none */
  __u16 source_port;   /* as sent by the QP; 0: only CNPs, or nothing, seen so far */
  __u16 wire_port;     /* of the newest packet, after any rewrite */
  __u16 steer_port;    /* 0: not steered */
  __u8 direction;      /* TeDirection */
  __u8 reserved0;
  __u32 flow_label; /* IPv6, newest packet */
  __u32 resume_psn; /* where the newest request was when a missing PSN came, with kTePsnValid; 0: none did yet */
  __u64 ack_packets;
  __u64 steered_packets;

  __u64 ecn_ce_packets;
  __u64 cnp_packets;
  __u64 nak_sequence;
  __u64 nak_rnr;
  __u64 nak_other;
  __u64 duplicate_packets;
  __u64 psn_gaps;
  __u64 reordered_packets; /* of psn_gaps, those that a late packet filled: nothing was lost */

  struct TeEventLimit limits[kTeLimitedKinds]; /* by TeEventKind - 1 */
};

/* A rare thing, as it goes through the ring buffer. IPv4 addresses use the first 4 bytes. */
struct TeEvent {
  __u8 kind;      /* TeEventKind */
  __u8 direction; /* TeDirection */
  __u8 family;    /* 4 or 6 */
  __u8 opcode;
  __u8 syndrome;
  __u8 reserved[3];
  __u16 old_port;
  __u16 new_port;
  __u32 psn;
  __u32 ifindex;
  __u32 destination_qpn;
  __u8 source[16];
  __u8 destination[16];
};

struct TeLosses {
  __u64 events; /* ring buffer full */
  __u64 flows;  /* packets not counted because the flow map was full */
  __u64
      unsteered_packets; /* of steered flows, sent with their own port: too long, or the packet could not be changed */
};

/* What the ICRC takes when the source port changes, for one UDP length: XOR of delta[i][nibble i of (old ^ new)], the
 * port's bytes on the wire read as a little-endian integer. */
struct TeIcrcRow {
  __u32 delta[4][16];
};

enum TeControlOperation { kTeControlSteer = 1, kTeControlErase = 2 };

/* Request to the control program. It changes single fields, so that counters go on meanwhile. The program's return
 * value is 0 or -errno: EINVAL bad request or an ingress flow, ENOENT no such flow, EBUSY steered, E2BIG map full. */
struct TeControl {
  __u32 operation;  /* TeControlOperation */
  __u16 steer_port; /* kTeControlSteer: 0 lets the flow go */
  __u8 family;      /* 4 or 6 */
  __u8 reserved;
  struct TeFlowKeyV4 key_v4;
  struct TeFlowKeyV6 key_v6;
};

TE_ABI_ASSERT(sizeof(struct TeFlowKeyV4) == 16);
TE_ABI_ASSERT(sizeof(struct TeFlowKeyV6) == 40);
TE_ABI_ASSERT(offsetof(struct TeFlowKeyV6, destination) == 24);
TE_ABI_ASSERT(sizeof(struct TeEventLimit) == 16);
TE_ABI_ASSERT(offsetof(struct TeFlow, next_psn) == 24);
TE_ABI_ASSERT(offsetof(struct TeFlow, source_port) == 32);
TE_ABI_ASSERT(offsetof(struct TeFlow, flow_label) == 40);
TE_ABI_ASSERT(offsetof(struct TeFlow, ack_packets) == 48);
TE_ABI_ASSERT(offsetof(struct TeFlow, ecn_ce_packets) == 64);
TE_ABI_ASSERT(offsetof(struct TeFlow, limits) == 128);
TE_ABI_ASSERT(sizeof(struct TeFlow) == 192);
TE_ABI_ASSERT(offsetof(struct TeEvent, old_port) == 8);
TE_ABI_ASSERT(offsetof(struct TeEvent, source) == 24);
TE_ABI_ASSERT(sizeof(struct TeEvent) == 56);
TE_ABI_ASSERT(sizeof(struct TeLosses) == 24);
TE_ABI_ASSERT(sizeof(struct TeIcrcRow) == 256);
TE_ABI_ASSERT(offsetof(struct TeControl, key_v4) == 8);
TE_ABI_ASSERT(offsetof(struct TeControl, key_v6) == 24);
TE_ABI_ASSERT(sizeof(struct TeControl) == 64);

#endif
