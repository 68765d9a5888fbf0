# SPDX-License-Identifier: Apache-2.0
"""Sends small RoCEv2-like packets, run in a host's namespace by send() or trace():

    roce_sender.py send TARGET COUNT     standard input: {"flows": [[SOURCE PORT, QPN], ...]}, each flow COUNT times
    roce_sender.py trace TARGET TTL      one packet of that TTL; prints the address that answered it, or null

The hash of a connected socket would follow its packets through the switches, so the sockets are raw.
"""
import json
import select
import socket
import struct
import sys
import time

ROCE_PORT = 4791
TIME_EXCEEDED = {socket.AF_INET: (socket.IPPROTO_ICMP, 11), socket.AF_INET6: (socket.IPPROTO_ICMPV6, 3)}


def datagram(source_port, qpn):
    """UDP header without checksum (IPv6: wrong, but switches do not look), BTH and 4 bytes in place of the ICRC."""
    bth = struct.pack("!BBHII", 0x04, 0, 0xFFFF, qpn, 0)
    return struct.pack("!HHHH", source_port, ROCE_PORT, 8 + len(bth) + 4, 0) + bth + bytes(4)


def open_sender(target):
    family = socket.AF_INET6 if ":" in target else socket.AF_INET
    sender = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_UDP)
    sender.setsockopt(socket.SOL_SOCKET, 32, 16 << 20)  # SO_SNDBUFFORCE
    return sender


def send(target, count, flows):
    """Each flow `count` times, in turns, in bursts that no queue of a switch overflows by."""
    with open_sender(target) as sender:
        packets = [datagram(port, qpn) for port, qpn in flows]
        for number in range(count):
            for packet in packets:
                sender.sendto(packet, (target, 0))
            if number * len(packets) % 200 < len(packets):
                time.sleep(0.002)


def trace(target, ttl):
    with open_sender(target) as sender:
        family = sender.family
        protocol, wanted = TIME_EXCEEDED[family]
        listener = socket.socket(family, socket.SOCK_RAW, protocol)
        hops = (socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS) if family == socket.AF_INET6 else (socket.IPPROTO_IP, socket.IP_TTL)
        sender.setsockopt(*hops, ttl)
        with listener:
            for _ in range(3):
                sender.sendto(datagram(50000, 77), (target, 0))
            end = time.monotonic() + 0.5
            while select.select([listener], [], [], max(0.0, end - time.monotonic()))[0]:
                message, (source, *_) = listener.recvfrom(2048)
                kind = message[0] if family == socket.AF_INET6 else message[(message[0] & 15) * 4]
                if kind == wanted:
                    return source
    return None


if __name__ == "__main__":
    if sys.argv[1] == "send":
        send(sys.argv[2], int(sys.argv[3]), json.load(sys.stdin)["flows"])
    else:
        print(json.dumps(trace(sys.argv[2], int(sys.argv[3]))))
