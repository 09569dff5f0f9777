"""Reports of the recording that this process is in, by the memprof that records it."""
import os
import re
import time

from . import _hook

_NO_ANSWER = -3  # the collector got no processor for a second: MEMPROF_NO_ANSWER
_TRIES, _PAUSE_S = 200, 0.05


class Error(Exception):
    """memprof could not make the report; the text is its own. table: what it could make."""
    table = None


class Table:
    """rows: a dict a row, as in --json. str(): the terminal's table. data: all of the JSON. columns: the keys of the
    statistics that were asked for; None: of none."""

    def __init__(self, text='', data=None, columns=None):
        self.text, self.data, self.columns = text, data if data is not None else {}, columns
        self.rows = self.data  # of reports that are rows and nothing else, such as --by category
        if isinstance(self.data, dict):
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
        from . import _html
        document = self.data if isinstance(self.data, dict) else {}
        if isinstance(document.get('lines'), list):
            return _html.lines(document, self.columns)
        return _html.rows(document, self.rows)


class Page(str):
    """The path of a page, which a notebook's cell shows in a frame."""

    def _repr_html_(self):
        import html
        import urllib.parse
        address = html.escape(urllib.parse.quote(self))
        return ('<iframe src="%s" style="width:100%%;height:640px;border:1px solid rgba(128,128,128,.5)"></iframe>'
                '<div><a href="%s" target="_blank">%s</a></div>' % (address, address, html.escape(self)))


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
        binary = '/proc/%s/exe' % session.group(1)  # which is there also when another has been installed since
        os.readlink(binary)
    except OSError as error:
        raise Error('the collector is not there any more: %s' % error)
    for file in sorted(files):
        if file + '-wal' in files:
            return binary, file
    raise Error('the collector has no recording open')


def _environment():
    """A report is no part of what is recorded: an empty MEMPROF_SESSION says so to the hooks of exec."""
    environment = dict(os.environ, MEMPROF_SESSION='')
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


def _run(command, options):
    import subprocess
    binary, file = _recording()
    done = subprocess.run([binary, command, file] + list(_arguments(options)), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=_environment(), encoding='utf-8',
                          errors='replace', close_fds=False)  # so no version of Python forks: that would be recorded
    problem = done.stderr.strip().replace('memprof: ', '', 1) or 'exit status %d' % done.returncode
    return done.stdout, problem if done.returncode else None


def _sync():
    from . import _source
    _source.say()
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
    for reserved in ('json', 'csv', 'html', 'output', 'also_json'):
        if reserved in options:
            raise TypeError('%s: a table has its rows and its text already; page() writes HTML' % reserved)
    memory = os.memfd_create('memprof-rows')
    try:  # one look at the recording gives both
        os.set_inheritable(memory, True)
        text, problem = _run(command, dict(options, color='never', also_json='/proc/self/fd/%d' % memory))
        os.lseek(memory, 0, os.SEEK_SET)
        with open(memory, encoding='utf-8', errors='replace', closefd=False) as file:
            data = file.read()
    finally:
        os.close(memory)
    data = json.loads(data) if data else {}
    made = Table(text, data, data['columns'].split(',') if options.get('columns') and 'columns' in data else None)
    if problem:
        error = Error(problem)
        error.table = made  # of what was there
        raise error
    return made


def page(path, options):
    if not _sync():
        return None
    problem = _run('report', dict(options, html=os.fspath(path)))[1]
    if problem:
        raise Error(problem)
    return Page(os.fspath(path))


_tables = []


def at_exit(name, make):
    """Prints the table of a function that was called, when the interpreter ends."""
    if not _tables:
        import atexit
        atexit.register(_print, os.getpid())
    _tables.append((name, make))


class Every:
    """Prints a table after each N-th call, but at most twice a second, and says how many it left out."""
    LEAST_SECONDS = 0.5

    def __init__(self, name, count, make):
        self.name, self.count, self.make = name, count, make
        self.calls, self.shown_at, self.left_out = 0, None, 0

    def called(self):
        import sys
        import time
        self.calls += 1
        if self.calls % self.count:
            return
        now = time.monotonic()
        if self.shown_at is not None and now - self.shown_at < self.LEAST_SECONDS:
            self.left_out += 1
            return
        try:
            text = str(self.make(self.calls))
        except Error as error:
            text = 'memprof: %s\n' % error
        left_out = ', %d before it left out: at most two tables a second' % self.left_out if self.left_out else ''
        sys.stderr.write('\n%s, call %d%s\n%s' % (self.name, self.calls, left_out, text))
        self.shown_at, self.left_out = time.monotonic(), 0


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
