"""%memprof and %%memprof, for notebooks and IPython: `%load_ext memprof` (docs/python-module.md)."""
import argparse
import contextlib
import sys

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring
from IPython.display import display

from . import _hook, _report, lines, page, range

PLAIN = ("memprof: this kernel is not recorded, so there are no tables; 'memprof kernel install --user' adds the kernel "
         "\"Python 3 (memprof)\" to the menu, which is")
_DEFAULT = ('start.bytes', 'active.at_peak', 'net.growth', 'end.bytes', 'alloc.count', 'temporary.count')


class _Runs:
    """Ranges of this kernel so far, by name: which of its name the next one is."""
    count = {}

    @classmethod
    def next(cls, name):
        cls.count[name] = cls.count.get(name, 0) + 1
        return '%s#%d' % (name, cls.count[name])


def _columns(arguments):
    asked = [each for listed in arguments.column for each in listed.split(',') if each]
    if arguments.no_default_columns and not asked:
        raise UsageError('-D leaves no column; -c NAME shows one, such as -c alloc.bytes')
    if not asked:
        return None
    return asked if arguments.no_default_columns else [each for each in _DEFAULT if each not in asked] + asked


def _device(text):
    return 'cuda:' + text if text and text.isdigit() else text


@contextlib.contextmanager
def _replaced(thing, name, value):
    """An attribute of this one object for a while; runs of runs nest."""
    before = vars(thing).get(name)
    setattr(thing, name, value)
    try:
        yield
    finally:
        if before is None:
            delattr(thing, name)
        else:
            setattr(thing, name, before)


@magics_class
class MemprofMagics(Magics):
    @magic_arguments()
    @argument('-f', '--function', metavar='FUNC', action='append', default=[],
              help='show the lines of this function; may be repeated. Without it: of the cell, and what it defines')
    @argument('-c', '--column', metavar='NAME', action='append', default=[],
              help="show this statistic, too ('memprof lines --columns help' lists them); may be repeated")
    @argument('-D', '--no-default-columns', action='store_true', help='show those of -c alone')
    @argument('-d', '--device', metavar='DEVICE', help='of this device alone: host, cuda:0, or 0 for that')
    @argument('-g', '--gpu', metavar='DEVICE', dest='device', help=argparse.SUPPRESS)
    @argument('-T', '--dump-profile', metavar='FILE', help='write the table as text to FILE')
    @argument('-r', '--return-profiler', action='store_true', help='return the table instead of showing it')
    @argument('-q', '--quiet', action='store_true', help='show nothing')
    @argument('--page', action='store_true', help='the HTML page of what happened in the cell, too')
    @argument('statement', nargs=argparse.REMAINDER, help='what to run; in %%%%memprof the cell')
    @line_cell_magic
    def memprof(self, line='', cell=None):
        """Runs a statement or a cell, and shows by line what it allocated and what stayed."""
        arguments = parse_argstring(self.memprof, line)
        code = ' '.join(arguments.statement) if cell is None else cell
        if cell is not None and arguments.statement:
            raise UsageError('%%%%memprof takes options only, and the cell runs; not %r' % arguments.statement[0])
        if not code.strip():
            raise UsageError('nothing to run: %memprof -f FUNC STATEMENT, or %%memprof and a cell')
        columns = _columns(arguments)
        if not _hook.library:
            print(PLAIN, file=sys.stderr)
        during, files, error = self._run(code)
        table = _report.Table() if not _hook.library else self._table(arguments, columns, during, files, error)
        if error is not None:
            raise error
        return table if arguments.return_profiler else None

    def _run(self, code):
        """By the shell itself, so that lines have the numbers of the cell and names are the kernel's."""
        shell = self.shell
        if shell.should_run_async(code, transformed_cell=shell.transform_cell(code)):
            raise UsageError('top-level await within %memprof: the kernel runs its loop already; put it into a cell of '
                             'its own, and "with memprof.range(...)" around what it awaits')
        name = 'cell [%d]' % shell.execution_count
        during, files, shown = _Runs.next(name), [], []
        cache = shell.compile.cache

        def remember(*arguments, **options):
            files.append(cache(*arguments, **options))
            return files[-1]

        with _replaced(shell.compile, 'cache', remember), \
                _replaced(shell, '_showtraceback', lambda *what: shown.append(what)), range(name):
            result = shell.run_cell(code, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if error is not None and shown:  # it is shown once, by whoever runs this magic, as it would have been
            text = shown[-1][2]
            error._render_traceback_ = lambda: text
        return during, files[:1], error

    def _function(self, name):
        try:
            return eval(name, self.shell.user_global_ns, self.shell.user_ns)
        except Exception:
            return name  # a pattern, or one that the program deleted

    def _table(self, arguments, columns, during, files, failed):
        options = dict(during=during, columns=columns, device=_device(arguments.device))
        try:
            if arguments.function:
                table = lines([self._function(name) for name in arguments.function], **options)
            else:
                table = lines(file=files, **options)
        except _report.Error as error:
            if failed is None:
                print('memprof: %s' % error, file=sys.stderr)
            table = error.table or _report.Table()
        if arguments.dump_profile:
            with open(arguments.dump_profile, 'w', encoding='utf-8') as file:
                file.write(str(table))
        if not arguments.quiet and not arguments.return_profiler and table.text:
            display(table)
        if arguments.page:
            shown = page('memprof-%s.html' % during.replace('cell [', 'cell-').replace(']', '').replace('#', '-'),
                         during=during)
            if not arguments.quiet:
                display(shown)
        return table


def load(shell):
    shell.register_magics(MemprofMagics)
    if not _hook.library:
        print(PLAIN, file=sys.stderr)
