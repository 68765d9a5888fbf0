/* SPDX-License-Identifier: Apache-2.0 */
/* What tag.bpf.c and te-lab agree on. */
#pragma once

enum { kMostVlans = 2 };
