"""A terminal for tests: a program in a pty of a given size, and what its screen shows, for the few sequences that
memprof writes. wait(condition) reads until it holds of a whole frame that has no line too long and none too many, or
fails after LIMIT seconds with the screen."""
import codecs
import errno
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import termios
import time

LIMIT = 60
SEQUENCE = re.compile("\x1b\\[(\\??)([0-9;]*)([A-Za-z])")


class Screen:
    def __init__(self, command, width=80, height=24, **environment):
        self.modes, self.raw, self.rest = set(), "", ""
        self.is_over = self.fits = False  # this frame, and the last one that is whole, in the screen's size
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.resize_screen(width, height)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
                for name, value in dict(TERM="xterm", LC_ALL="C.UTF-8", **environment).items():
                    os.environ[name] = value
                os.environ.pop("COLUMNS", None)
                os.execvp(command[0], command)
            finally:
                os._exit(126)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.attributes = termios.tcgetattr(self.fd)

    def resize_screen(self, width, height):
        self.width, self.height, self.row, self.column = width, height, 0, 0
        self.lines = [[" "] * width for _ in range(height)]
        self.fits = False

    def resize(self, width, height):
        self.resize_screen(width, height)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        os.kill(self.pid, signal.SIGWINCH)

    def sequence(self, private, numbers, letter):
        if private and letter in "hl":
            for number in numbers.split(";"):
                (self.modes.add if letter == "h" else self.modes.discard)(number)
        elif letter == "H":
            self.row = self.column = 0
            self.is_over = False
        elif letter == "K":
            self.lines[self.row][self.column:] = [" "] * (self.width - self.column)
        elif letter == "J":
            for row in range(self.row + (numbers != "2"), self.height):
                self.lines[row] = [" "] * self.width
            if numbers == "2":
                self.lines = [[" "] * self.width for _ in range(self.height)]
            else:
                self.lines[self.row][self.column:] = [" "] * (self.width - self.column)
                self.fits = not self.is_over
        elif letter != "m":
            raise AssertionError("a sequence that no terminal was told of: %s%s%s" % (private, numbers, letter))

    def character(self, c):
        if c == "\r":
            self.column = 0
        elif c == "\n":
            self.is_over |= self.row == self.height - 1
            self.row = min(self.row + 1, self.height - 1)
        elif c >= " " and self.column < self.width:
            self.lines[self.row][self.column] = c
            self.column += 1
        elif c >= " ":
            self.is_over = True

    def feed(self, text):
        self.raw += text
        text = self.rest + text
        at = 0
        while at < len(text):
            if text[at] == "\x1b":
                match = SEQUENCE.match(text, at)
                if not match:
                    break
                self.sequence(*match.groups())
                at = match.end()
            else:
                self.character(text[at])
                at += 1
        self.rest = text[at:]

    def read(self, seconds):
        """Whether there was something; None: it has ended."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.fd, 65536)
        except OSError as e:
            if e.errno != errno.EIO:
                raise
            data = b""
        if not data:
            return None
        self.feed(self.decoder.decode(data))
        return True

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def wait(self, what, condition):
        end = time.monotonic() + LIMIT
        while not (self.fits and condition(self.text())):
            if self.read(0.5) is None or time.monotonic() > end:
                sys.exit("FAIL: %s\n%s" % (what, self.text()))
        print("  " + what)

    def send(self, keys):
        os.write(self.fd, keys.encode())

    def end(self):
        """Waits for its end. Returns its status as the shell has it."""
        end = time.monotonic() + LIMIT
        while self.read(0.5) is not None:
            if time.monotonic() > end:
                sys.exit("FAIL: it does not end\n" + self.text())
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

    def is_restored(self):
        return not self.modes & {"1049"} and "25" in self.modes and "7" in self.modes
