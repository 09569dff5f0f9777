"""The text of code that is in no file, for the recording: notebooks' cells, doctests, the interactive interpreter's
input, and whatever else a program gives to linecache, as attrs and dataclass-like libraries do."""
import linecache
import os
import sys

from . import _hook

BYTES_MAX = 1 << 20  # of a process: libmemprof.so takes no more
_said = set()


def _is_file(name):
    return not (name.startswith('<') and name.endswith('>')) and os.path.exists(name)


def _say(name, lines):
    if not lines or name in _said:
        return
    _said.add(name)
    if _is_file(name):
        return
    text = ''.join(lines).encode('utf-8', 'replace')
    if len(text) <= BYTES_MAX:
        _hook.library.memprof_hook_source(os.fsencode(name), text, len(text))


def _names(key, entry):
    # Since 3.13 the interpreter's input has a key that begins with names and ends with a line.
    yield key if isinstance(key, str) else next((part for part in key if str(part).startswith('<')), '')
    if isinstance(entry[3], str):
        yield entry[3]


def _running():
    for frame in list(sys._current_frames().values()):
        while frame is not None:
            yield frame.f_code.co_filename
            frame = frame.f_back


def say():
    """Says what is new since the last call."""
    if not _hook.library:
        return
    caches = dict(linecache.cache), dict(getattr(linecache, '_interactive_cache', ()))
    for cache in caches:
        for key, entry in cache.items():
            if len(entry) == 4:
                for name in _names(key, entry):
                    _say(name, entry[2])
    for name in set(_running()) - _said:  # doctest's are asked for, and kept nowhere
        if name.startswith('<'):
            _say(name, linecache.getlines(name))
