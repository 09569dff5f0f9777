"""Chromium's DevTools protocol over its WebSocket, with nothing but a socket: JSON in text frames, one answer a command."""
import json
import socket
import struct

LONGEST_S = 120  # that a command may take


class BrowserError(Exception):
    pass


class Devtools:
    """A connection to one target, a page or the whole browser: commands, and the events told of that came meanwhile."""

    def __init__(self, port, path, told=()):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LONGEST_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer, self.last, self.answers, self.kept, self.told = bytearray(), 0, {}, told, []
        self.socket.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                            "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self._receive()
        head, _, rest = bytes(self.buffer).partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise BrowserError(f"no WebSocket at {path}: {head[:100]}")
        self.buffer = bytearray(rest)

    def _receive(self):
        try:
            data = self.socket.recv(1 << 20)
        except TimeoutError:
            raise BrowserError(f"the browser did not answer for {LONGEST_S} s") from None
        if not data:
            raise BrowserError("the browser is gone")
        self.buffer += data

    def _take(self, count):
        while len(self.buffer) < count:
            self._receive()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    def _message(self):
        """The next text; Chromium sends each as one frame, and asks for nothing that would have to be answered."""
        while True:
            first, size = self._take(2)
            if size > 125:
                size = int.from_bytes(self._take(2 if size == 126 else 8), "big")
            data = self._take(size)
            if first == 0x81:
                return json.loads(data)
            if first == 0x88:
                raise BrowserError("the browser closed the connection")

    def send(self, method, params):
        """Without waiting for the answer: its number, for answer()."""
        self.last += 1
        data = json.dumps({"id": self.last, "method": method, "params": params}).encode()
        size = struct.pack("!B", 0x80 | len(data)) if len(data) < 126 else struct.pack("!BH", 0xfe, len(data)) if len(data) < 1 << 16 else struct.pack("!BQ", 0xff, len(data))
        self.socket.sendall(b"\x81" + size + bytes(4) + data)  # a mask of zeros leaves the data as they are
        return self.last

    def _read(self):
        message = self._message()
        if "id" in message:
            self.answers[message["id"]] = message
        elif message["method"] == "Page.javascriptDialogOpening":
            self.send("Page.handleJavaScriptDialog", {"accept": False})
            raise BrowserError(f"a dialog: {message['params']['message']}")
        elif message["method"] == "Inspector.targetCrashed":
            raise BrowserError("the page crashed")
        elif message["method"] in self.kept:
            self.told.append(message)

    def answered(self, numbers):
        return all(number in self.answers for number in numbers)

    def answer(self, number):
        while number not in self.answers:
            self._read()
        message = self.answers.pop(number)
        if "error" in message:
            raise BrowserError(message["error"]["message"])
        return message["result"]

    def call(self, method, **params):
        return self.answer(self.send(method, params))

    def wait_for(self, event, since):
        """Until it is told of that event, behind the first since."""
        while not any(e["method"] == event for e in self.told[since:]):
            self._read()

    def close(self):
        self.socket.close()
