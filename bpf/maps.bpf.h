/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* The maps. Plain hashes, preallocated: a full map is counted and never evicts, since an evicted entry would take its
 * steering with it. */
#ifndef TE_MAPS_BPF_H
#define TE_MAPS_BPF_H

#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>

#include "te_abi.h"

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kTeMaxFlows);
  __type(key, struct TeFlowKeyV4);
  __type(value, struct TeFlow);
} te_flows_v4 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_HASH);
  __uint(max_entries, kTeMaxFlows);
  __type(key, struct TeFlowKeyV6);
  __type(value, struct TeFlow);
} te_flows_v6 SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, kTeEventRingBytes);
} te_events SEC(".maps");

struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, 1);
  __type(key, __u32);
  __type(value, struct TeLosses);
} te_losses SEC(".maps");

/* By UDP length / 4. */
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY);
  __uint(max_entries, kTeIcrcRows);
  __type(key, __u32);
  __type(value, struct TeIcrcRow);
} te_icrc_rows SEC(".maps");

/* Shared by all CPUs: a port change moves a flow to another receive queue. */
static __always_inline void te_add(__u64* counter, __u64 amount) { __sync_fetch_and_add(counter, amount); }

static __always_inline struct TeLosses* te_losses_entry(void) {
  __u32 only = 0;
  return bpf_map_lookup_elem(&te_losses, &only);
}

#endif
