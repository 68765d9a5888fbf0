# SPDX-License-Identifier: Apache-2.0
"""A controller for tests of one agent: takes its sessions, keeps what it says and when, and sends what the test wants.
Messages are those of common/proto/te/v1/agent.proto, by their field numbers."""
import ctypes
import os
import select
import socket
import ssl
import struct
import threading
import time

from te_lab import LIBC, wait_for

CLONE_NEWNET = 0x40000000

# Fields of AgentMessage and ControllerMessage.
HELLO, FLOWS, PROBE_RESULT, STEERING_REPORT, EVENT, SOURCES, LINKS = 1, 2, 3, 4, 5, 6, 7
HELLO_REPLY, PROBE_REQUEST, STEERING_SET = 1, 2, 3


def in_netns(name, make):
    """What `make()` returns when it runs in a network namespace; sockets made there stay there."""
    outcome = []

    def enter_and_make():
        descriptor = os.open(f"/run/netns/{name}", os.O_RDONLY)
        try:
            if LIBC.setns(descriptor, CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), f"enter {name}")
            outcome.append(make())
        finally:
            os.close(descriptor)

    thread = threading.Thread(target=enter_and_make)
    thread.start()
    thread.join()
    return outcome[0]


def varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def encode(*fields):
    """(number, value) pairs as a protobuf message: integers as varints, bytes as they are."""
    text = b""
    for number, value in fields:
        if isinstance(value, bytes):
            text += varint(number << 3 | 2) + varint(len(value)) + value
        else:
            text += varint(number << 3) + varint(int(value))
    return text


def read_varint(text, place):
    number = shift = 0
    while True:
        byte = text[place]
        place += 1
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return number, place


def decode(text):
    """A protobuf message as {field number: [value, ...]}."""
    fields = {}
    place = 0
    while place < len(text):
        tag, place = read_varint(text, place)
        if tag & 7 == 0:
            value, place = read_varint(text, place)
        elif tag & 7 == 1:
            value, place = text[place:place + 8], place + 8
        elif tag & 7 == 2:
            size, place = read_varint(text, place)
            value, place = text[place:place + size], place + size
        else:
            raise ValueError(f"wire type {tag & 7}")
        fields.setdefault(tag >> 3, []).append(value)
    return fields


def number(message, field):
    return message.get(field, [0])[-1]


def links_of(update):
    """{interface: report} of a LinkUpdate."""
    reports = [decode(link) for link in update.get(1, [])]
    return {link[2][0].decode(): {"ifindex": number(link, 3), "up": number(link, 4), "carrier": number(link, 5),
                                  "carrier_changes": number(link, 6), "sent_packets": number(link, 8)} for link in reports}


class Session:
    """One connection of an agent: its messages, as (time, kind, fields)."""

    def __init__(self, stream):
        stream.setblocking(False)
        self.stream = stream
        self.lock = threading.Lock()    # two threads must not be in one TLS stream at a time
        self.certificate = stream.getpeercert(binary_form=True)
        self.messages = []

    def send(self, kind, body):
        message = encode((kind, body))
        left = struct.pack(">I", len(message)) + message
        while left:
            try:
                with self.lock:
                    left = left[self.stream.send(left):]
            except ssl.SSLWantWriteError:
                self._wait([], [self.stream])

    def receive(self, size):
        """So many bytes; EOFError when the agent is gone."""
        text = b""
        while len(text) < size:
            try:
                with self.lock:
                    part = self.stream.recv(size - len(text))
            except ssl.SSLWantReadError:
                self._wait([self.stream], [])
                continue
            if not part:
                raise EOFError
            text += part
        return text

    @staticmethod
    def _wait(readers, writers):
        try:
            select.select(readers, writers, [], 1.0)
        except ValueError as closed:
            raise OSError("the session is closed") from closed

    def steer(self, revision, entries):
        """Wants `entries`: {encoded FlowKey: port}."""
        steering = [(2, encode((1, key), (2, port))) for key, port in entries.items()]
        self.send(STEERING_SET, encode((1, revision), *steering))

    def close(self):
        with self.lock:
            try:
                self.stream.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass    # the agent was first
            self.stream.close()

    def of_kind(self, kind):
        return [(when, message) for when, what, message in list(self.messages) if what == kind]

    def wait(self, kind, fits=lambda message: True, seconds=10, after=0.0):
        """(time, message) of the first message of a kind that fits and came after a time."""
        found = []

        def look():
            found.extend(entry for entry in self.of_kind(kind) if entry[0] > after and fits(entry[1]))
            return found

        wait_for(look, seconds, f"no message of kind {kind} that fits")
        return found[0]


class FakeController:
    """Listens on port 7411 of an address of a namespace for sessions. Use it in a `with`."""

    def __init__(self, netns, address, authority, interval_ms=100):
        self.interval_ms = interval_ms
        self.sessions = []
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.load_cert_chain(*authority.issue("te-controller"))
        self.context.load_verify_locations(authority.certificate)
        self.context.verify_mode = ssl.CERT_REQUIRED
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.listener = in_netns(netns, lambda: socket.create_server((address, 7411), family=family))
        threading.Thread(target=self._serve, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()
        for session in self.sessions:
            session.close()

    def wait_session(self, count=1, seconds=15):
        """The `count`th session, accepted."""
        wait_for(lambda: len(self.sessions) >= count, seconds, f"no {count} sessions")
        return self.sessions[count - 1]

    def _serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._converse, args=(connection,), daemon=True).start()

    def _converse(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            session = Session(self.context.wrap_socket(connection, server_side=True))
            while True:
                body = session.receive(struct.unpack(">I", session.receive(4))[0])
                when = time.monotonic()
                (kind, [message, *_]), *_ = decode(body).items()
                session.messages.append((when, kind, decode(message)))
                if kind == HELLO:
                    session.send(HELLO_REPLY, encode((1, 1), (3, self.interval_ms)))
                    self.sessions.append(session)
        except (OSError, EOFError, ValueError):
            pass
        finally:
            connection.close()
