"""pytest's tests as ranges, with limits by a marker and figures by a fixture (docs/check.md): -p memprof.pytest.

    @pytest.mark.memprof(max_peak="64M", max_leak="1K")
    def test_load(): ...

    def test_parse(memprof):
        parse()
        assert memprof.allocs() < 1000

Where nothing records, limits are not checked, which the last lines of pytest say, and figures are 0.
"""
import gc
import os

import pytest

from . import Error, figures, range as span, report, reset
from ._hook import Bytes

_BYTES = ('max_peak', 'max_leak', 'max_allocated')
_LIMITS = _BYTES + ('max_allocs',)
_WORDS = {'max_peak': 'active bytes at their peak', 'max_leak': 'bytes that are left',
          'max_allocated': 'bytes allocated', 'max_allocs': 'allocations'}
_ROWS = {'max_peak': ('at_peak_bytes', 'start_bytes'), 'max_leak': ('end_bytes', 'start_bytes'),
         'max_allocated': ('alloc_bytes',), 'max_allocs': ('alloc_count',)}
_LINES = 3  # that broke a limit


def _amount(name, value):
    """A number, or of bytes also "64M": units of 1024, as memprof's options."""
    words = str(value).strip()
    unit = 'KMGTP'.find(words[-1:].upper()) if name in _BYTES and words else -1
    try:
        amount = float(words[:-1] if unit >= 0 else words) * (1024 ** (unit + 1))
        if isinstance(value, bool) or not 0 <= amount < 2 ** 63:
            raise ValueError
    except ValueError:
        raise pytest.UsageError('memprof: %s=%r: expected %s' % (
            name, value, 'a size, such as "64M"' if name in _BYTES else 'a number'))
    return int(amount)


def _limits(item):
    """Of each marker: the device, and limits by their name."""
    found = []
    for marker in item.iter_markers('memprof'):
        rules = dict(marker.kwargs)
        device = rules.pop('device', 'host')
        unknown = sorted(set(rules) - set(_LIMITS))
        if unknown or marker.args or not rules:
            raise pytest.UsageError('%s: @pytest.mark.memprof: %s; it takes device and %s' % (
                item.nodeid, 'no limit ' + unknown[0] if unknown else 'no limit', ', '.join(_LIMITS)))
        found.append((device, {name: _amount(name, value) for name, value in rules.items()}))
    return found


def _measured(device):
    """What a device did since the last reset(); None: not known."""
    now = figures(device)
    if now is None:
        return None
    left = now.alloc_bytes - now.free_bytes
    return {'max_peak': Bytes(now.peak_active_bytes - (now.active_bytes - left)), 'max_leak': Bytes(left),
            'max_allocated': now.alloc_bytes, 'max_allocs': now.alloc_count}


class Measured:
    """What a device did since the test began, exact up to the call; 0 where that is not known."""

    def __init__(self, is_known, device='host'):
        self.is_known, self.device = is_known, device

    def peak(self):
        """The most that was live above what was live when the test began."""
        return self._get('max_peak')

    def leak(self):
        """What is live above that now."""
        return self._get('max_leak')

    def allocated(self):
        """Bytes allocated."""
        return self._get('max_allocated')

    def allocs(self):
        """Allocations."""
        return self._get('max_allocs')

    def of(self, device):
        """The same of another device, such as "cuda:0"; "cuda": of all of that type."""
        return Measured(self.is_known, device)

    def _get(self, limit):
        return (self.is_known and _measured(self.device) or {'max_allocs': 0}).get(limit, Bytes(0))


def _shares_recording(config):
    return hasattr(config, 'workerinput')  # pytest-xdist: figures are of all its processes together


def _is_known(item):
    return not _shares_recording(item.config) and figures('host', now=False) is not None


def _place(row):
    if row['function'] is None:
        return '%s+%#x' % (os.path.basename(row['module'] or '??'), row['offset'] or 0)
    return row['function'] + ('  %s:%d' % (os.path.relpath(row['file']), row['line']) if row['file'] else '')


def _rows(item, device):
    """The report's lines, or why there is none: what is broken is told all the same."""
    try:
        return [row for row in report(by='line', during=item.nodeid + '#all', device=device) if row['kind'] == 'all']
    except (Error, OSError) as error:
        return error


def _who(rows, limit):
    """The lines that have most of it."""
    def amount(row):
        plus, *minus = [row[column] or 0 for column in _ROWS[limit]]
        return plus - sum(minus)
    if isinstance(rows, Exception):
        return '\n  %s' % rows
    most = sorted((row for row in rows if amount(row) > 0), key=amount, reverse=True)[:_LINES]
    return ''.join('\n  +%s  %s' % (Bytes(amount(row)) if limit in _BYTES else amount(row), _place(row))
                   for row in most)


def _amount_text(limit, amount):
    return '%s (%s)' % (Bytes(amount), format(amount, ',d')) if limit in _BYTES else format(amount, ',d')


def _broken(limits):
    """(device, limit, what is said) of each that does not hold."""
    found = []
    for device, rules in limits:
        measured = _measured(device) or {}
        for limit, most in rules.items():
            if measured.get(limit, 0) > most:
                found.append((device, limit, '%s %s, %s: %s, at most %s' % (
                    limit, device, _WORDS[limit], _amount_text(limit, measured[limit]), _amount_text(limit, most))))
    return found


def pytest_configure(config):
    config.addinivalue_line('markers', 'memprof(%s, device="host"): limits of what the test allocates, where memprof '
                            'records it' % ', '.join(name + '=...' for name in _LIMITS))
    config.memprof_unchecked = config.memprof_in_workers = 0
    config.memprof_broken = {}


def pytest_collection_modifyitems(items):
    for item in items:
        _limits(item)  # a wrong one is no limit that holds


@pytest.fixture
def memprof(request):
    """What the test did on the host so far: memprof.peak(), leak(), allocated(), allocs()."""
    return Measured(_is_known(request.node))


def _measure(item):
    limits, broken = _limits(item), []
    if not _is_known(item):
        item.config.memprof_unchecked += bool(limits)
        yield
        return
    collect = gc.collect if any('max_leak' in rules for _, rules in limits) else int
    collect()  # what earlier tests left is freed for none of this one
    with span(item.nodeid):
        reset('pytest:' + item.nodeid)
        outcome = yield
        if outcome.excinfo is None:
            collect()  # what only a cycle keeps is no leak
            broken = _broken(limits)
    if broken:
        rows = {device: _rows(item, device) for device in {device for device, _, _ in broken}}
        item.config.memprof_broken[item.nodeid] = [text + _who(rows[device], limit) for device, limit, text in broken]


def _is_function(item):
    return getattr(type(item), 'runtest', None) is pytest.Function.runtest


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem):  # without what pytest does before it, such as setting PYTEST_CURRENT_TEST
    if _is_function(pyfuncitem):
        yield from _measure(pyfuncitem)
    else:
        yield


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item):  # of unittest's methods, of doctests
    if _is_function(item):
        yield
    else:
        yield from _measure(item)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    told = outcome.get_result()
    broken = item.config.memprof_broken.pop(item.nodeid, None) if call.when == 'call' else None
    if broken and told.passed:
        told.outcome = 'failed'
        told.longrepr = 'memprof: ' + '\n\nmemprof: '.join(broken)


def pytest_sessionfinish(session):
    if _shares_recording(session.config):
        session.config.workeroutput['memprof_unchecked'] = session.config.memprof_unchecked


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node, error):  # of pytest-xdist
    node.config.memprof_in_workers += getattr(node, 'workeroutput', {}).get('memprof_unchecked', 0)


def pytest_terminal_summary(terminalreporter, config):
    for count, why in (
            (config.memprof_in_workers, 'the processes of pytest-xdist share their figures'),
            (config.memprof_unchecked, "nothing records; 'memprof run --python-module python3 -m pytest "
                                       "-p memprof.pytest' does")):
        if count:
            terminalreporter.write_line('memprof: the limits of %d test%s were not checked: %s' % (
                count, '' if count == 1 else 's', why))
