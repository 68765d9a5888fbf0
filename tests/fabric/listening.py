# SPDX-License-Identifier: Apache-2.0
"""Sends packets of chosen flows from a host and sees on which ports of a switch they leave."""
import ctypes
import json
import os
import socket
import sys
from collections import Counter
from pathlib import Path

from watch_uplinks import ETH_P_ALL, PACKET_OUTGOING, data_flow

SENDER = Path(__file__).with_name("roce_sender.py")
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNET = 0x40000000


def in_netns(name, make):
    """What `make()` returns when it is called in network namespace `name`: a socket stays there."""
    with open("/proc/self/ns/net", "rb") as home, open(f"/run/netns/{name}", "rb") as there:
        if LIBC.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"enter {name}")
        try:
            return make()
        finally:
            if LIBC.setns(home.fileno(), CLONE_NEWNET) != 0:
                os._exit(1)


def open_listener():
    listener = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    listener.setsockopt(socket.SOL_SOCKET, 33, 64 << 20)  # SO_RCVBUFFORCE
    listener.setblocking(False)
    return listener


def send(lab, source, target, flows, count=1):
    """Sends `count` packets of each flow (source port, QPN), in turns."""
    lab.exec(source, [sys.executable, SENDER, "send", lab.attachment(target)[2], count], input=json.dumps({"flows": flows}))


def trace(lab, source, target, ttl):
    """The address that answers packets of this TTL; None: nobody."""
    return json.loads(lab.exec(source, [sys.executable, SENDER, "trace", lab.attachment(target)[2], ttl]))


def ports_taken(lab, switch, source, target, flows, count=1):
    """{port of `switch`: Counter of (source port, QPN)} of the packets that leave it."""
    with in_netns(lab.netns(switch), open_listener) as listener:
        send(lab, source, target, flows, count)
        # Packets may still be on their way: 0.2 s without one is the end.
        taken = {}
        listener.settimeout(0.2)
        while True:
            try:
                packet, (port, _, packet_type, *_) = listener.recvfrom(96)
            except TimeoutError:
                return taken
            flow = data_flow(packet) if packet_type == PACKET_OUTGOING else None
            if flow:
                taken.setdefault(port, Counter())[flow[3], flow[2]] += 1
