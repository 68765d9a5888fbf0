# SPDX-License-Identifier: Apache-2.0
"""Writes what passes an interface into a pcap file. Runs in the interface's namespace, by capture() or by itself:

    capture.py INTERFACE SECONDS MOST_PACKETS FILE
"""
import socket
import struct
import sys
import time

ETH_P_ALL = 3
MAX_FRAME = 9300
LINKTYPE_ETHERNET = 1


def write_pcap(interface, seconds, most_packets, path):
    with open(path, "wb") as file, socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL)) as listener:
        listener.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE
        listener.bind((interface, ETH_P_ALL))
        listener.settimeout(0.05)
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, MAX_FRAME, LINKTYPE_ETHERNET))
        end = time.monotonic() + seconds
        written = 0
        while written < most_packets and time.monotonic() < end:
            try:
                frame = listener.recv(MAX_FRAME)
            except TimeoutError:
                continue
            now = time.time()
            file.write(struct.pack("<IIII", int(now), int(now % 1 * 1e6), len(frame), len(frame)) + frame)
            written += 1


def capture(lab, node, interface, path, seconds=3.0, most_packets=100_000):
    """Starts a capture; wait() on the result ends with the file written."""
    return lab.popen(node, ["/usr/bin/python3", __file__, interface, seconds, most_packets, path])


if __name__ == "__main__":
    write_pcap(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
