/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* User space changes flows through a program, because it must never write a whole value: the counters in it go on. */
#ifndef TE_CONTROL_BPF_H
#define TE_CONTROL_BPF_H

#include "observe.bpf.h"

enum { kTeNoEntry = 2, kTeTooBig = 7, kTeBusy = 16, kTeInvalid = 22 };

static __always_inline int te_control_flow(void* flows, const void* key, __u32 operation, __u16 steer_port) {
  struct TeFlow* flow = bpf_map_lookup_elem(flows, key);
  if (operation == kTeControlErase) {
    if (!flow) return -kTeNoEntry;
    if (flow->steer_port) return -kTeBusy;
    return bpf_map_delete_elem(flows, key);
  }
  if (operation != kTeControlSteer) return -kTeInvalid;
  if (!flow) {
    if (!steer_port) return -kTeNoEntry;
    struct TeFlow fresh = {.direction = kTeEgress};
    bpf_map_update_elem(flows, key, &fresh, BPF_NOEXIST);
    flow = bpf_map_lookup_elem(flows, key);
    if (!flow) return -kTeTooBig;
  }
  if (flow->direction != kTeEgress) return -kTeInvalid;
  TE_WRITE_ONCE(flow->steer_port, steer_port);
  return 0;
}

#endif
