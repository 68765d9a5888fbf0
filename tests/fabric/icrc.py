# SPDX-License-Identifier: Apache-2.0
"""The RoCEv2 invariant CRC once more, from the specification alone and with zlib's CRC-32: it shares no code with the product.

A capture is read without any library, so that IPv4 and IPv6 packets take the same way.
"""

import struct
import zlib

ROCE_PORT = 4791


def packets(path):
    """Yields (Ethernet type, bytes from the IP header on) of every frame in a classic little-endian Ethernet pcap."""
    data = open(path, "rb").read()
    magic, linktype = struct.unpack_from("<I16xI", data)
    assert magic in (0xA1B2C3D4, 0xA1B23C4D) and linktype == 1, "not a little-endian Ethernet pcap"
    offset = 24
    while offset + 16 <= len(data):
        captured, original = struct.unpack_from("<8xII", data, offset)
        assert captured == original, "truncated capture"
        frame = data[offset + 16:offset + 16 + captured]
        offset += 16 + captured
        yield struct.unpack_from(">H", frame, 12)[0], frame[14:]


def roce_packets(path):
    """Yields the RoCEv2 packets of a capture, from the IP header to the ICRC, link padding cut off."""
    for ether_type, ip in packets(path):
        if ether_type == 0x0800 and ip[9] == 17:
            length, header = struct.unpack_from(">H", ip, 2)[0], (ip[0] & 15) * 4
        elif ether_type == 0x86DD and ip[6] == 17:
            length, header = 40 + struct.unpack_from(">H", ip, 4)[0], 40
        else:
            continue
        if struct.unpack_from(">H", ip, header + 2)[0] == ROCE_PORT:
            yield ip[:length]


def is_ipv6(ip):
    return ip[0] >> 4 == 6


def source_port(ip):
    return struct.unpack_from(">H", ip, 40 if is_ipv6(ip) else 20)[0]


def destination_qpn(ip):
    return int.from_bytes(ip[(53 if is_ipv6(ip) else 33):][:3], "big")


def carried(ip):
    """The ICRC that the packet carries."""
    return struct.unpack("<I", ip[-4:])[0]


def computed(ip):
    """The ICRC that the packet should carry: CRC-32 over 64 one bits and the packet with its mutable fields all ones."""
    masked = bytearray(ip[:-4])
    if is_ipv6(ip):
        udp = 40
        masked[0] |= 0x0F        # traffic class, flow label
        masked[1:4] = b"\xff" * 3
        masked[7] = 0xFF         # hop limit
    else:
        udp = 20
        masked[1] = 0xFF         # type of service
        masked[8] = 0xFF         # time to live
        masked[10:12] = b"\xff\xff"
    masked[udp + 6:udp + 8] = b"\xff\xff"  # UDP checksum
    masked[udp + 8 + 4] = 0xFF             # FECN, BECN, reserved
    return zlib.crc32(bytes(masked), zlib.crc32(b"\xff" * 8))
