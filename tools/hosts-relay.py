"""A wire between two network namespaces: a TAP device in each, and this program between them.

It can hold frames, for a time that differs by direction, and drop or corrupt datagrams of a load. Frames stay in order. What it
counted is the truth of what a wire lost: this kernel may have no netem, and netem's own counters are not those of one load.

Usage: hosts-relay.py NETNS DEVICE NETNS DEVICE [--out US] [--back US] [--jitter US] [--port PORT --frame BYTES [--drop N] [--corrupt N]
[--first COUNT]] [--counts FILE]. --out is the time from the first device to the second, --jitter the most that is added to both, another for each frame.
A load is UDP over IPv4 to --port in frames of --frame bytes, from the first device to the second; one without a frame for a second is
a new one. Of its first COUNT frames each N-th is dropped, or gets another last byte, so that its UDP checksum is wrong. FILE is written
ten times a second: frames of all loads that came, were dropped or corrupted, and were taken by the second device. Corrupted ones are
among those taken. Ends when it is killed, and when a frame to corrupt has no right checksum; the devices go with it.
"""

import argparse
import collections
import ctypes
import fcntl
import heapq
import json
import os
import random
import select
import struct
import sys
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF = 0x400454CA
# IFF_TAP | IFF_NO_PI: whole frames without a header of the driver's.
TAP = 0x1002
# The longest frame of a TAP device with an MTU of 1500, and a VLAN tag.
LONGEST = 2048
# Frames of one device in a row, so that the other one is not kept waiting.
IN_A_ROW = 64
PAUSE_NS = 1_000_000_000
WRITE_NS = 100_000_000


def enter(namespace):
    """Brings this process into a network namespace."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace.fileno(), CLONE_NEWNET):
        sys.exit(f"hosts-relay: {namespace.name}: setns: {os.strerror(ctypes.get_errno())}")


def tap(netns, device):
    """A TAP device in a network namespace. This process does not stay there: it is none of the host's."""
    with open("/proc/self/ns/net") as own, open(f"/run/netns/{netns}") as namespace:
        enter(namespace)
        file = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
        fcntl.ioctl(file, TUNSETIFF, struct.pack("16sH22x", device.encode(), TAP))
        enter(own)
    return file


def port_of(frame):
    """The destination of a datagram over IPv4; None for other frames."""
    if len(frame) < 38 or frame[12:14] != b"\x08\x00" or frame[23] != 17:
        return None
    at = 14 + (frame[14] & 15) * 4
    return int.from_bytes(frame[at + 2:at + 4], "big")


def has_checksum(frame):
    """Whether a datagram over IPv4 has a right UDP checksum. A kernel may leave it to a card, or send none."""
    at, end = 14 + (frame[14] & 15) * 4, 14 + int.from_bytes(frame[16:18], "big")
    datagram = frame[at:end]
    # The addresses, the protocol and the length are summed too (RFC 768).
    summed = frame[26:34] + struct.pack("!HH", 17, len(datagram)) + datagram + bytes(len(datagram) % 2)
    # The sum of a right one is 0xffff in ones' complement.
    is_right = sum(struct.unpack(f"!{len(summed) // 2}H", summed)) % 0xFFFF == 0
    return is_right and datagram[6:8] != bytes(2)


def corrupted(frame):
    """The frame with another last byte of its datagram. Only a checksum that was right shows that to the receiver."""
    if not has_checksum(frame):
        sys.exit("hosts-relay: a datagram has no right UDP checksum: its receiver would not see that it is corrupted")
    last = 14 + int.from_bytes(frame[16:18], "big") - 1
    return frame[:last] + bytes([frame[last] ^ 0xFF]) + frame[last + 1:]


class Relay:
    """Two devices, and the frames that are held between them."""

    def __init__(self, words):
        self.words = words
        self.devices = [tap(words.netns1, words.device1), tap(words.netns2, words.device2)]
        self.holds_ns = [words.out * 1000, words.back * 1000]
        # When the last frame of each direction is let go: none overtakes it.
        self.last_ns = [0, 0]
        self.held = []
        self.number = 0
        self.counts = collections.Counter(came=0, dropped=0, corrupted=0, taken=0)
        self.of_load, self.load_ns, self.written_ns = 0, 0, 0

    def through(self, frame, now):
        """Counts a frame of the load: what goes on of it, None if it is dropped."""
        if now - self.load_ns > PAUSE_NS:
            self.of_load = 0
        self.load_ns = now
        self.of_load += 1
        self.counts["came"] += 1
        if self.is_each(self.words.drop):
            self.counts["dropped"] += 1
            return None
        if self.is_each(self.words.corrupt):
            self.counts["corrupted"] += 1
            return corrupted(frame)
        return frame

    def is_each(self, n):
        """Whether the last frame is an n-th of the first ones."""
        return n > 0 and self.of_load <= self.words.first and self.of_load % n == 0

    def take(self, side):
        """Takes what a device has."""
        for _ in range(IN_A_ROW):
            try:
                frame = os.read(self.devices[side], LONGEST)
            except BlockingIOError:
                return
            except OSError:
                # The device is down.
                time.sleep(0.001)  # why: the device is down for a while, and nothing says when it is up
                return
            now = time.monotonic_ns()
            is_load = side == 0 and len(frame) == self.words.frame and port_of(frame) == self.words.port
            if is_load:
                frame = self.through(frame, now)
            if frame is None:
                continue
            jitter = random.randrange(self.words.jitter * 1000 + 1)
            self.last_ns[side] = max(self.last_ns[side], now + self.holds_ns[side] + jitter)
            self.number += 1
            heapq.heappush(self.held, (self.last_ns[side], self.number, side, is_load, frame))

    def let_go(self):
        """Writes the frames whose time has come; seconds until that of the next one."""
        while self.held:
            wait_ns = self.held[0][0] - time.monotonic_ns()
            if wait_ns > 0:
                return wait_ns / 1e9
            _, _, side, is_load, frame = heapq.heappop(self.held)
            try:
                os.write(self.devices[1 - side], frame)
                self.counts["taken"] += is_load
            except OSError:
                pass  # The device is down, or takes nothing now: that loss is none of the relay's own.
        return WRITE_NS / 1e9

    def write(self):
        """Writes the counts, a whole file at a time."""
        now = time.monotonic_ns()
        if self.words.counts and now - self.written_ns >= WRITE_NS:
            self.written_ns = now
            with open(self.words.counts + ".new", "w") as out:
                json.dump(self.counts, out)
            os.rename(self.words.counts + ".new", self.words.counts)

    def run(self):
        while True:
            wait = min(self.let_go(), WRITE_NS / 1e9)
            ready, _, _ = select.select(self.devices, [], [], wait)
            for file in ready:
                self.take(self.devices.index(file))
            self.write()


def main():
    reader = argparse.ArgumentParser(usage=__doc__)
    for name in "netns1", "device1", "netns2", "device2":
        reader.add_argument(name)
    for option in "--out", "--back", "--jitter", "--port", "--frame", "--drop", "--corrupt", "--first":
        reader.add_argument(option, type=int, default=0)
    reader.add_argument("--counts")
    Relay(reader.parse_args()).run()


main()
