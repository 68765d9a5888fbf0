// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0
// What a switch does other than to hash five fields, at the ingress of each of its ports. A choice among equal-cost
// ports is left in the packet's mark (1: the first), for which the switch has routing rules: the kernel still routes,
// counts down the TTL, answers and queues. Marks end with the namespace.
#include <linux/bpf.h>
#include <linux/pkt_cls.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETHERNET_BYTES 14
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86DD
#define IPV4_BYTES 20
#define IPV6_BYTES 40
#define PROTOCOL_UDP 17
#define ROCE_PORT 4791
#define FRAGMENT_MASK 0x3FFF /* more fragments, offset */

const volatile __u32 members = 1;  // equal-cost ports
const volatile __u32 seed = 0;

/// The UDP header's destination port, and the BTH as far as the destination QPN.
struct roce_start {
  __u16 ports[2];
  __u16 udp_rest[2];
  __u8 opcode_to_pkey[4];
  __u32 qpn;  // the first byte is reserved
};

struct packet {
  __u32 addresses[8];  // source, destination; of IPv4 two words, the others are 0
  __u32 offset;        // of the UDP header; 0: this is no UDP
  __u8 ttl;
  __u8 is_multicast;
};

static __always_inline int parse_ipv4(struct __sk_buff* skb, struct packet* packet) {
  __u8 header[IPV4_BYTES];
  if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, header, sizeof(header)) != 0) return -1;
  packet->ttl = header[8];
  packet->is_multicast = header[16] >= 224;
  __builtin_memcpy(packet->addresses, header + 12, 8);
  const __u16 fragment = (__u16)(header[6] << 8 | header[7]) & FRAGMENT_MASK;
  if (header[9] == PROTOCOL_UDP && fragment == 0) packet->offset = ETHERNET_BYTES + (header[0] & 15) * 4;
  return 0;
}

static __always_inline int parse_ipv6(struct __sk_buff* skb, struct packet* packet) {
  __u8 header[IPV6_BYTES];
  if (bpf_skb_load_bytes(skb, ETHERNET_BYTES, header, sizeof(header)) != 0) return -1;
  packet->ttl = header[7];
  packet->is_multicast = header[24] == 0xFF;
  __builtin_memcpy(packet->addresses, header + 8, 32);
  if (header[6] == PROTOCOL_UDP) packet->offset = ETHERNET_BYTES + IPV6_BYTES;
  return 0;
}

static __always_inline int parse(struct __sk_buff* skb, struct packet* packet) {
  if (skb->protocol == bpf_htons(ETHERTYPE_IPV4)) return parse_ipv4(skb, packet);
  if (skb->protocol == bpf_htons(ETHERTYPE_IPV6)) return parse_ipv6(skb, packet);
  return -1;
}

/// Reads the start of a RoCE packet; not 0 when it is none.
static __always_inline int load_roce(struct __sk_buff* skb, const struct packet* packet, struct roce_start* roce) {
  if (packet->offset == 0) return -1;
  if (bpf_skb_load_bytes(skb, packet->offset, roce, sizeof(*roce)) != 0) return -1;
  return roce->ports[1] == bpf_htons(ROCE_PORT) ? 0 : -1;
}

static __always_inline __u32 mix(__u32 hash, __u32 word) {
  hash = (hash ^ word) * 0x9E3779B1u;
  return hash ^ hash >> 15;
}

static __always_inline void choose(struct __sk_buff* skb, __u32 random) {
  skb->mark = 1 + (__u32)((__u64)random * members >> 32);
}

SEC("tc")
int choose_by_qpn(struct __sk_buff* skb) {
  struct packet packet = {};
  struct roce_start roce;
  if (parse(skb, &packet) != 0 || load_roce(skb, &packet, &roce) != 0) return TC_ACT_UNSPEC;
  __u32 hash = seed;
#pragma unroll
  for (int word = 0; word < 8; ++word) hash = mix(hash, packet.addresses[word]);
  hash = mix(hash, bpf_ntohl(roce.qpn) & 0xFFFFFF);
  choose(skb, mix(hash, 0));
  return TC_ACT_UNSPEC;
}

SEC("tc")
int choose_at_random(struct __sk_buff* skb) {
  struct packet packet = {};
  struct roce_start roce;
  if (parse(skb, &packet) != 0 || load_roce(skb, &packet, &roce) != 0) return TC_ACT_UNSPEC;
  choose(skb, bpf_get_prandom_u32());
  return TC_ACT_UNSPEC;
}

/// Drops what expires here before the kernel can answer.
SEC("tc")
int answer_nothing(struct __sk_buff* skb) {
  struct packet packet = {};
  if (parse(skb, &packet) != 0 || packet.is_multicast) return TC_ACT_UNSPEC;
  return packet.ttl <= 1 ? TC_ACT_SHOT : TC_ACT_UNSPEC;
}

char LICENSE[] SEC("license") = "Dual BSD/GPL";
