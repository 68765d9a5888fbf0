# SPDX-License-Identifier: Apache-2.0
"""Run in a leaf's namespace: looks at the packets that leave towards the spines and says which flow takes which uplink.

    watch_uplinks.py SECONDS PORT...

Prints {"PORT": [["SOURCE ADDRESS", "DESTINATION ADDRESS", DESTINATION QPN, SOURCE PORT], ...], ...}.
"""
import json
import socket
import struct
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
ACKNOWLEDGE = 0x11
CNP = 0x81
UDP = 17
ROCE_PORT = 4791


def data_flow(packet):
    """(source, destination, QPN, source port) of a RoCEv2 data packet from its Ethernet header on; None for all else."""
    kind = struct.unpack_from("!H", packet, 12)[0]
    if kind == 0x0800 and packet[14] == 0x45 and packet[23] == UDP:
        addresses, udp, family = (packet[26:30], packet[30:34]), 34, socket.AF_INET
    elif kind == 0x86DD and packet[20] == UDP:
        addresses, udp, family = (packet[22:38], packet[38:54]), 54, socket.AF_INET6
    else:
        return None
    source_port, destination_port = struct.unpack_from("!HH", packet, udp)
    if destination_port != ROCE_PORT or len(packet) < udp + 20 or packet[udp + 8] in (ACKNOWLEDGE, CNP):
        return None
    source, destination = (socket.inet_ntop(family, address) for address in addresses)
    return source, destination, int.from_bytes(packet[udp + 13:udp + 16], "big"), source_port


def watch(seconds, ports):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as listener:
        listener.settimeout(0.05)
        seen = {port: set() for port in ports}
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                packet, (port, _, packet_type, *_) = listener.recvfrom(96)
            except TimeoutError:
                continue
            if packet_type == PACKET_OUTGOING and port in seen:
                flow = data_flow(packet)
                if flow:
                    seen[port].add(flow)
        return {port: sorted(flows) for port, flows in seen.items()}


if __name__ == "__main__":
    print(json.dumps(watch(float(sys.argv[1]), sys.argv[2:])))
