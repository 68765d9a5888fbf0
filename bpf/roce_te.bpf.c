// SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
// The tc programs of a host. They return "next" always: TC_ACT_OK would end the chain for programs after ours.
#include "control.bpf.h"

enum { kTeNext = -1 }; /* TC_ACT_UNSPEC under clsact, TCX_NEXT under TCX */

SEC("tc")
int te_egress(struct __sk_buff* skb) {
  te_observe(skb, kTeEgress);
  return kTeNext;
}

SEC("tc")
int te_ingress(struct __sk_buff* skb) {
  te_observe(skb, kTeIngress);
  return kTeNext;
}

SEC("syscall")
int te_control(struct TeControl* request) {
  if (request->family == 4) {
    struct TeFlowKeyV4 key = request->key_v4;
    return te_control_flow(&te_flows_v4, &key, request->operation, request->steer_port);
  }
  if (request->family == 6) {
    struct TeFlowKeyV6 key = request->key_v6;
    return te_control_flow(&te_flows_v6, &key, request->operation, request->steer_port);
  }
  return -kTeInvalid;
}

char LICENSE[] SEC("license") = "GPL"; /* the half of the licence that the kernel asks for */
