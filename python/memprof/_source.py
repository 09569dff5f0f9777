"""The text of code that is in no file, for the recording: notebooks' cells, doctests, the interactive interpreter's
input, and whatever else a program gives to linecache, as attrs and dataclass-like libraries do."""
import itertools
import linecache
import os
import re
import sys

from . import _hook

BYTES_MAX = 1 << 20  # of a process: libmemprof.so takes no more
_said = set()


def _is_file(name):
    return not (name.startswith('<') and name.endswith('>')) and os.path.exists(name)


def _say(name, lines):
    if not lines or not name or name in _said:
        return
    _said.add(name)
    if _is_file(name):
        return
    text = ''.join(lines).encode('utf-8', 'replace')
    if len(text) <= BYTES_MAX:
        _hook.library.memprof_hook_source(os.fsencode(name), text, len(text))


def _name(key):
    # since 3.14 that of the interpreter's input is of a code object: its name, its file, its line
    return key if isinstance(key, str) else key[1] if len(key) > 1 and isinstance(key[1], str) else ''


def _doctests(name):
    """All examples of the doctest that one is of, in their order."""
    test = re.match(r'(<doctest .+\[)\d+\]>$', name)
    for number in itertools.count() if test else ():
        example = '%s%d]>' % (test.group(1), number)
        try:
            lines = linecache.getlines(example)
        except IndexError:  # doctest's own way to say that there are no more
            return
        if not lines:
            return
        yield example, lines


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
                _say(_name(key), entry[2])
    for name in {name for name in _running() if name.startswith('<doctest ')}:  # kept nowhere: doctest itself is asked
        for example, lines in _doctests(name):
            _say(example, lines)
