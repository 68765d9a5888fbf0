/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* What each BTH opcode means for counting. InfiniBand Architecture Specification 1.7, 9.2 and annexes A14, A16, A17,
 * A19. */
#ifndef TE_OPCODE_BPF_H
#define TE_OPCODE_BPF_H

#include <linux/types.h>

enum {
  kTeOpExtensionWords = 0x0F, /* bytes / 4 of the headers between BTH and message data */
  kTeOpOnePsn = 0x10,         /* a request that takes one PSN per packet: SEND, WRITE, atomics */
  kTeOpRead = 0x20,           /* a request that takes as many PSNs as its response has packets */
  kTeOpAck = 0x40,
  kTeOpRare = 0x80, /* told to user space */
  kTeOpCnp = 0x100,
  kTeOpKnown = 0x200,
};

enum { kTeOpcodeUdFirst = 0x60, kTeOpcodeUdCount = 0x20 };

#define TE_REQUEST(words) (kTeOpKnown | kTeOpOnePsn | (words))
#define TE_RARE_REQUEST(words) (kTeOpKnown | kTeOpOnePsn | kTeOpRare | (words))

/* SEND and WRITE; `extra`: words of XRCETH. RETH is 4 words, an immediate or invalidated key 1. */
#define TE_SEND_AND_WRITE(base, extra)                                                                           \
  [(base) + 0x00] = TE_REQUEST(extra), [(base) + 0x01] = TE_REQUEST(extra), [(base) + 0x02] = TE_REQUEST(extra), \
            [(base) + 0x03] = TE_REQUEST((extra) + 1), [(base) + 0x04] = TE_REQUEST(extra),                      \
            [(base) + 0x05] = TE_REQUEST((extra) + 1), [(base) + 0x06] = TE_REQUEST((extra) + 4),                \
            [(base) + 0x07] = TE_REQUEST(extra), [(base) + 0x08] = TE_REQUEST(extra),                            \
            [(base) + 0x09] = TE_REQUEST((extra) + 1), [(base) + 0x0A] = TE_REQUEST((extra) + 4),                \
            [(base) + 0x0B] = TE_REQUEST((extra) + 5)

/* READ, ACK, atomics, SEND with invalidate, FLUSH, atomic WRITE. AETH is 1 word, AtomicETH 7, AtomicAckETH 2, FETH 1.
 */
#define TE_RELIABLE(base, extra)                                                                              \
  [(base) + 0x0C] = kTeOpKnown | kTeOpRead | ((extra) + 4), [(base) + 0x0D] = kTeOpKnown | 1,                 \
            [(base) + 0x0E] = kTeOpKnown, [(base) + 0x0F] = kTeOpKnown | 1, [(base) + 0x10] = kTeOpKnown | 1, \
            [(base) + 0x11] = kTeOpKnown | kTeOpAck | 1, [(base) + 0x12] = kTeOpKnown | kTeOpAck | 3,         \
            [(base) + 0x13] = TE_RARE_REQUEST((extra) + 7), [(base) + 0x14] = TE_RARE_REQUEST((extra) + 7),   \
            [(base) + 0x16] = TE_REQUEST((extra) + 1), [(base) + 0x17] = TE_REQUEST((extra) + 1),             \
            [(base) + 0x1C] = TE_RARE_REQUEST((extra) + 5), [(base) + 0x1D] = TE_RARE_REQUEST((extra) + 4)

/* clang-format off */
static const __u16 te_opcode_traits[256] = {
    TE_SEND_AND_WRITE(0x00, 0), TE_RELIABLE(0x00, 0), /* RC */
    TE_SEND_AND_WRITE(0x20, 0),                       /* UC */
    TE_SEND_AND_WRITE(0xA0, 1), TE_RELIABLE(0xA0, 1), /* XRC */
    [0x81] = kTeOpKnown | kTeOpCnp | 4,
};
/* clang-format on */

#endif
