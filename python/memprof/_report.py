"""Reports of the recording that this process is in, by the memprof that records it."""
import os
import re
import time

from . import _hook

_NO_ANSWER = -3  # the collector got no processor for a second: MEMPROF_NO_ANSWER
_TRIES, _PAUSE_S = 200, 0.05


class Error(Exception):
    """memprof could not make the report; the text is its own."""


class Table:
    """rows: a dict a row, as in --json. str(): the terminal's table. data: all of the JSON."""

    def __init__(self, text='', data=None):
        self.text, self.data = text, data if data is not None else {}
        self.rows = next((self.data[key] for key in ('lines', 'rows', 'names', 'executions', 'totals')
                          if isinstance(self.data.get(key), list)), [])

    def __str__(self):
        return self.text

    def __repr__(self):
        return self.text or '<empty memprof table>'

    def __iter__(self):
        return iter(self.rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index]

    def _repr_html_(self):
        import html

        def cell(value):
            number = isinstance(value, (int, float))
            shown = '' if value is None else str(value)
            return '<td style="text-align:%s;white-space:pre">%s</td>' % ('right' if number else 'left',
                                                                        html.escape(shown))
        # a column that no row says anything in is left out
        keys = [key for key in (self.rows[0] if self.rows else ()) if any(row.get(key) is not None for row in self)]
        head = ''.join('<th>%s</th>' % html.escape(key) for key in keys)
        body = ''.join('<tr>%s</tr>' % ''.join(cell(row.get(key)) for key in keys) for row in self)
        return '<table><thead><tr>%s</tr></thead><tbody>%s</tbody></table>' % (head, body)


def _recording():
    """The binary that records this process, and the file that it writes: the one with a write-ahead log beside it."""
    session = re.match(r'/proc/(\d+)/fd/', os.environ.get('MEMPROF_SESSION', ''))
    if not session:
        raise Error('not recorded: MEMPROF_SESSION names no collector')
    directory = '/proc/%s/fd' % session.group(1)
    try:
        files = set()
        for entry in os.listdir(directory):
            try:
                files.add(os.readlink(os.path.join(directory, entry)))
            except OSError:
                pass
        binary = os.readlink('/proc/%s/exe' % session.group(1))
    except OSError as error:
        raise Error('the collector is not there any more: %s' % error)
    for file in sorted(files):
        if file + '-wal' in files:
            return binary, file
    raise Error('the collector has no recording open')


def _environment():
    """A report is not part of what is recorded."""
    environment = {key: value for key, value in os.environ.items() if key != 'MEMPROF_SESSION'}
    for key, separator in (('LD_PRELOAD', '[: ]'), ('LD_AUDIT', ':')):
        kept = [part for part in re.split(separator, environment.pop(key, ''))
                if part and not os.path.basename(part).startswith('libmemprof')]
        if kept:
            environment[key] = ':'.join(kept)
    return environment


def _arguments(options):
    for key, value in options.items():
        option = '--' + key.replace('_', '-')
        for each in value if isinstance(value, (list, tuple)) else (value,):
            if each is True:
                yield option
            elif each is not None and each is not False:
                yield '%s=%s' % (option, each)


def _start(command, options):
    import subprocess
    binary, file = _recording()
    return subprocess.Popen([binary, command, file] + list(_arguments(options)), stdin=subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), encoding='utf-8',
                            errors='replace')


def _finish(process, output, problem):
    if process.returncode:
        raise Error(problem.strip().replace('memprof: ', '', 1) or 'exit status %d' % process.returncode)
    return output


def _run(processes):
    results = [process.communicate() for process in processes]
    return [_finish(process, *result) for process, result in zip(processes, results)]


def _sync():
    status = _hook.library.memprof_hook_sync() if _hook.library else -1
    for _ in range(_TRIES):
        if status != _NO_ANSWER:
            break
        time.sleep(_PAUSE_S)
        status = _hook.library.memprof_hook_sync()
    if status not in (0, -1):
        raise Error('the collector does not answer (status %d of memprof_sync)' % status)
    return status == 0


def table(command, options):
    if not _sync():
        return Table()
    import json
    for reserved in ('json', 'csv', 'html', 'output'):
        if reserved in options:
            raise TypeError('%s: a table has its rows and its text already; page() writes HTML' % reserved)
    rows = dict(options)
    rows.pop('columns', None)  # rows have all of them
    text, data = _run([_start(command, dict(options, color='never')), _start(command, dict(rows, json=True))])
    return Table(text, json.loads(data))


def page(path, options):
    if not _sync():
        return None
    _run([_start('report', dict(options, html=os.fspath(path)))])
    return path


_tables = []


def at_exit(name, make):
    """Prints the table of a function that was called, when the interpreter ends."""
    if not _tables:
        import atexit
        atexit.register(_print, os.getpid())
    _tables.append((name, make))


def _print(pid):
    import sys
    if os.getpid() != pid:  # a forked child: its parent prints
        return
    for name, make in _tables:
        try:
            table = make()
            if table.text:
                sys.stderr.write('\n%s\n%s' % (name, table))
        except Exception as error:  # never called, or the collector has gone: the program's end is its own
            sys.stderr.write('memprof: %s: %s\n' % (name, error))
