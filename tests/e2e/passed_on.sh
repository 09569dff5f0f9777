# A signal that somebody sends to memprof reaches the program; one of the terminal, which reaches both, arrives once; ^Z
# stops both.
need python3
cat >driver.py <<'EOF'
import fcntl, os, pty, select, signal, struct, sys, termios, time

class Heard:
    """The program under memprof on a terminal of its own: the foreground job of a small shell, this process's child."""
    def __init__(self, *command):
        asked, self.ask = os.pipe()
        self.answer, answers = os.pipe()
        self.shell, self.terminal = pty.fork()
        if self.shell == 0:
            self.shell_main(command, asked, answers)
        self.text = ""
        self.job = int(self.answers())

    def shell_main(self, command, asked, answers):
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)
        job = os.fork()
        if job == 0:
            os.setpgid(0, 0)
            os.tcsetpgrp(0, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)
            os.execvp(command[0], command)
        os.write(answers, b"%d\n" % job)
        while True:
            _, status = os.waitpid(job, os.WUNTRACED)
            if os.WIFSTOPPED(status):
                os.write(answers, b"stopped by %d\n" % os.WSTOPSIG(status))
                os.read(asked, 1)
                os.killpg(job, signal.SIGCONT)
            else:
                os.write(answers, b"ended %d\n" % os.waitstatus_to_exitcode(status))
                os._exit(0)

    def answers(self):
        if not select.select([self.answer], [], [], 20)[0]:
            sys.exit("no answer of the shell; so far: %r" % self.text)
        return os.read(self.answer, 100).decode()

    def expect(self, line):
        end = time.monotonic() + 20
        while line + "\n" not in self.text:
            if not select.select([self.terminal], [], [], max(0, end - time.monotonic()))[0]:
                sys.exit("%s did not come; so far: %r" % (line, self.text))
            self.text += os.read(self.terminal, 1000).decode().replace("\r", "")
        before, self.text = self.text.split(line + "\n", 1)
        if before:
            sys.exit("before %s came %r" % (line, before))

    def type(self, key):
        os.write(self.terminal, key)

    def send(self, number):
        os.kill(self.job, number)

    def quiet(self):
        time.sleep(0.3)
        if select.select([self.terminal], [], [], 0)[0]:
            sys.exit("once more: %r" % os.read(self.terminal, 1000))

    def end(self):
        self.quiet()
        self.send(signal.SIGUSR1)
        self.expect("end")
        print("status:", self.answers().strip())

run = sys.argv[1:]
h = Heard(*run)
no_echo = termios.tcgetattr(h.terminal)
no_echo[3] &= ~termios.ECHO
termios.tcsetattr(h.terminal, termios.TCSANOW, no_echo)
h.expect("ready")
for key, name in ((b"\x03", "INT"), (b"\x1c", "QUIT"), (b"\x1a", "TSTP")):
    h.type(key)
    h.expect(name)
    h.quiet()
    print("terminal:", name)
fcntl.ioctl(h.terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 99, 0, 0))
h.expect("WINCH")
h.quiet()
print("terminal: WINCH")
for name in ("INT", "QUIT", "WINCH", "TSTP", "CONT"):
    h.send(getattr(signal, "SIG" + name))
    h.expect(name)
    h.quiet()
    print("sent:", name)
h.end()

h = Heard(*run, "stop")
termios.tcsetattr(h.terminal, termios.TCSANOW, no_echo)
h.expect("ready")
for stop in (lambda: h.type(b"\x1a"), lambda: h.send(signal.SIGTSTP)):
    stop()
    print("job:", h.answers().strip())
    os.write(h.ask, b"x")
    h.expect("CONT")
    h.quiet()
    print("continued once")
h.end()
EOF
python3 driver.py "$MEMPROF" run -q -o out.db -- "$PROGRAMS/heard" >said 2>&1 || { cat said; fail "see above"; }
cat >expected <<EOF
terminal: INT
terminal: QUIT
terminal: TSTP
terminal: WINCH
sent: INT
sent: QUIT
sent: WINCH
sent: TSTP
sent: CONT
status: ended 5
job: stopped by 20
continued once
job: stopped by 20
continued once
status: ended 5
EOF
cmp said expected || { diff expected said; fail "signals"; }
sound
