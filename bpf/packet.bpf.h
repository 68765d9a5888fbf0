/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* From a frame to a RoCEv2 packet, behind no VLAN tag, one, or two. Whatever is not exactly one - options, extension
 * headers, fragments, GSO packets, lengths that do not fit - is none of ours. */
#ifndef TE_PACKET_BPF_H
#define TE_PACKET_BPF_H

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/udp.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#include "opcode.bpf.h"
#include "te_abi.h"

#define TE_LIKELY(condition) __builtin_expect(!!(condition), 1)
#define TE_UNLIKELY(condition) __builtin_expect(!!(condition), 0)

enum {
  kTeRoceUdpPort = 4791,
  kTeIcrcBytes = 4,
  kTeEcnCe = 3,
  kTeIpv4Fragment = 0x3FFF, /* more fragments, and the offset */
  kTeMinFrameBytes = 60,    /* shorter frames arrive with link padding */
  kTeVlanBytes = 4,
  kTeMostVlans = 2, /* 802.1ad outside, 802.1Q inside */
};

/* A tag as it lies behind the two addresses: its own type is the one before. */
struct TeVlan {
  __be16 tag;
  __be16 inner_type;
};

/* Base transport header, and the first word after it: AETH where there is one, else data or the ICRC. */
struct TeBth {
  __u8 opcode;
  __u8 flags; /* solicited event, migration, 2 bits pad count, 4 bits transport version */
  __be16 pkey;
  __be32 destination_qpn; /* 8 bits of congestion flags, 24 of QPN */
  __be32 psn;             /* 8 bits with the ACK request, 24 of PSN */
  __u8 syndrome;
  __u8 msn[3];
};

struct TePacket {
  __u32 ip_offset;  /* from the start of the frame */
  __u32 udp_offset; /* from the start of the frame */
  __u32 udp_bytes;
  __u32 ip_bytes;
  __u32 payload_bytes;
  __u32 psn;
  __u32 destination_qpn;
  __u32 flow_label;
  __u16 source_port; /* host order */
  __u16 checksum;    /* UDP, as on the wire */
  __u16 traits;      /* of the opcode: kTeOp... */
  __u8 opcode;
  __u8 syndrome;
  __u8 ecn;
};

struct TeCursor {
  void* at;
  void* end;
};

/* The next `bytes` of the frame, or NULL. */
static __always_inline void* te_take(struct TeCursor* cursor, __u32 bytes) {
  void* header = cursor->at;
  if (header + bytes > cursor->end) return NULL;
  cursor->at = header + bytes;
  return header;
}

/* A cursor at the start of the frame; pulls the first `bytes` out of page fragments where a driver left them there. */
static __always_inline int te_open_frame(struct __sk_buff* skb, __u32 bytes, struct TeCursor* cursor) {
  cursor->at = (void*)(long)skb->data;
  cursor->end = (void*)(long)skb->data_end;
  if (TE_LIKELY(cursor->at + bytes <= cursor->end)) return 1;
  if (skb->len < bytes || bpf_skb_pull_data(skb, bytes)) return 0;
  cursor->at = (void*)(long)skb->data;
  cursor->end = (void*)(long)skb->data_end;
  return 1;
}

static __always_inline int te_is_vlan(__be16 type) {
  return type == bpf_htons(ETH_P_8021Q) || type == bpf_htons(ETH_P_8021AD);
}

/* Whether the frame is this one IP packet. A tag that the kernel keeps beside the frame is no part of its length. */
static __always_inline int te_is_whole(struct __sk_buff* skb, const struct TePacket* packet) {
  __u32 frame_bytes = packet->ip_offset + packet->ip_bytes;
  if (skb->len != frame_bytes && (skb->len != kTeMinFrameBytes || frame_bytes > kTeMinFrameBytes)) return 0;
  return !skb->gso_size;
}

/* Reads UDP, BTH and syndrome; packet->ip_bytes, udp_offset and udp_bytes (as the IP header has it) are set already. */
static __always_inline int te_parse_transport(struct TeCursor* cursor, struct TePacket* packet) {
  struct udphdr* udp = te_take(cursor, sizeof *udp);
  if (!udp || udp->dest != bpf_htons(kTeRoceUdpPort)) return 0;
  struct TeBth* bth = te_take(cursor, sizeof *bth);
  if (!bth || (bth->flags & 0x0F)) return 0;
  if (bpf_ntohs(udp->len) != packet->udp_bytes || (packet->udp_bytes & 3)) return 0;

  packet->opcode = bth->opcode;
  packet->destination_qpn = bpf_ntohl(bth->destination_qpn) & 0xFFFFFF;
  /* QPN 0 and 1 are management, UD has no connection: neither is a flow. */
  if (packet->destination_qpn <= 1 || (__u8)(packet->opcode - kTeOpcodeUdFirst) < kTeOpcodeUdCount) return 0;
  packet->traits = te_opcode_traits[packet->opcode];
  packet->psn = bpf_ntohl(bth->psn) & 0xFFFFFF;
  packet->syndrome = bth->syndrome;
  packet->source_port = bpf_ntohs(udp->source);
  packet->checksum = udp->check;

  __u32 around = sizeof *udp + 12 + kTeIcrcBytes + ((bth->flags >> 4) & 3) + 4 * (packet->traits & kTeOpExtensionWords);
  if (packet->udp_bytes < around) return 0;
  packet->payload_bytes = packet->traits & kTeOpKnown ? packet->udp_bytes - around : 0;
  return 1;
}

static __always_inline int te_parse_v4(struct __sk_buff* skb, struct TeCursor* cursor, struct TePacket* packet,
                                       struct TeFlowKeyV4* key) {
  struct iphdr* ip = te_take(cursor, sizeof *ip);
  if (!ip || ip->protocol != IPPROTO_UDP || *(__u8*)ip != 0x45 || (ip->frag_off & bpf_htons(kTeIpv4Fragment))) return 0;
  packet->ip_bytes = bpf_ntohs(ip->tot_len);
  packet->udp_bytes = packet->ip_bytes - sizeof *ip;
  packet->udp_offset = packet->ip_offset + sizeof *ip;
  packet->ecn = ip->tos & 3;
  packet->flow_label = 0;
  if (!te_parse_transport(cursor, packet) || !te_is_whole(skb, packet)) return 0;
  key->ifindex = skb->ifindex;
  key->destination_qpn = packet->destination_qpn;
  __builtin_memcpy(key->source, &ip->saddr, sizeof key->source);
  __builtin_memcpy(key->destination, &ip->daddr, sizeof key->destination);
  return 1;
}

static __always_inline int te_parse_v6(struct __sk_buff* skb, struct TeCursor* cursor, struct TePacket* packet,
                                       struct TeFlowKeyV6* key) {
  struct ipv6hdr* ip = te_take(cursor, sizeof *ip);
  if (!ip || ip->nexthdr != IPPROTO_UDP) return 0;
  __u32 first = bpf_ntohl(*(__be32*)ip);
  if (first >> 28 != 6) return 0;
  packet->udp_bytes = bpf_ntohs(ip->payload_len);
  packet->ip_bytes = packet->udp_bytes + sizeof *ip;
  packet->udp_offset = packet->ip_offset + sizeof *ip;
  packet->ecn = (first >> 20) & 3;
  packet->flow_label = first & 0xFFFFF;
  if (!te_parse_transport(cursor, packet) || !te_is_whole(skb, packet)) return 0;
  key->ifindex = skb->ifindex;
  key->destination_qpn = packet->destination_qpn;
  __builtin_memcpy(key->source, &ip->saddr, sizeof key->source);
  __builtin_memcpy(key->destination, &ip->daddr, sizeof key->destination);
  return 1;
}

#endif
