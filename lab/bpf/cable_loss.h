/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0 */
/* What cable.bpf.c shares with user space: one entry of `cable_losses` for each direction of a cable that loses
 * packets. */
#pragma once

#include <linux/types.h>

/* The key: twice the index of the cable's interface, plus 1 for the direction that end b sends. */
struct te_cable_loss {
  __u64 threshold; /* a packet is lost when a random 32-bit number is below; 2^32: always */
  __u64 passed_packets;
  __u64 lost_packets;
};
