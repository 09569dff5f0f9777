"""GPUs that the program gives back for a while: `memprof yield` of the memprof that records it, on this process."""
import os
import subprocess
import threading

from . import _hook, _report

_lock = threading.Lock()
_depth = 0  # of `with` within each other, of all threads: the outermost one acts


def _run(command, *options):
    binary = _report._recording()[0]
    done = subprocess.run([binary, command, *options, str(os.getpid())], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_report._environment(),
                          encoding='utf-8', errors='replace', close_fds=False)
    if done.returncode:
        raise _report.Error(done.stderr.strip().replace('memprof: ', '', 1) or 'exit status %d' % done.returncode)


class Yielded:
    def __init__(self, timeout=None):
        self._options = [] if timeout is None else ['--timeout=%dms' % max(1, round(timeout * 1000))]

    def __enter__(self):
        global _depth
        with _lock:
            if _depth == 0 and not _hook.is_ended():
                _run('yield', *self._options)
            _depth += 1
        return self

    def __exit__(self, *exception):
        global _depth
        with _lock:
            _depth -= 1
            if _depth == 0 and not _hook.is_ended():
                _run('restore', '--wait', *self._options)
        return False
