# Written by 'memprof run --range' and gone when the run is over: as sitecustomize, it has the functions that were named
# say where each call of them begins and ends. Their source is read and compiled with a call before the body and one
# behind it: they stay the same functions, at the same lines, and no frame is added. It never fails the program.
import os
import sys

_directory = os.environ.get('MEMPROF_RANGE', '')
_NAMES_TOLD = 200


def _tell(line):
    try:
        with open(os.path.join(_directory, 'said-%d' % os.getpid()), 'a', encoding='utf-8', errors='replace') as f:
            f.write(' '.join(line.split()) + '\n')
    except OSError:
        pass


class _Range:
    """FUNC of the program's own file, FILE.py:FUNC or MODULE:FUNC."""

    def __init__(self, index, text):
        self.index = index
        place, _, self.name = text.rpartition(':')
        is_file = place.endswith('.py') or '/' in place
        self.file = self._end(place) if is_file else None
        self.module = place if place and not is_file else None

    @staticmethod
    def _end(path):
        """What the path of the file ends with."""
        path = os.path.normpath(path)
        while path.startswith('../'):
            path = path[3:]
        return '/' + path.lstrip('/')

    def is_in(self, module, path, is_main):
        if self.module:
            return self.module == module
        if self.file:
            return ('/' + path).endswith(self.file)
        return is_main


def _is_generator(function, ast):
    """Whether its body runs in parts: what is within functions of its own is not its body."""
    nodes = list(function.body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            nodes.extend(ast.iter_child_nodes(node))
    return False


def _functions(tree, ast, prefix=''):
    """All functions below a node, as (qualified name, node)."""
    for node in ast.iter_child_nodes(tree):
        below = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + node.name, node
            below = prefix + node.name + '.<locals>.'
        elif isinstance(node, ast.ClassDef):
            below = prefix + node.name + '.'
        yield from _functions(node, ast, below)


def _call(ast, function, *values):
    return ast.Expr(ast.Call(ast.Name(function, ast.Load()), [ast.Constant(v) for v in values], []))


def _place(node, at, ast):
    for each in ast.walk(node):
        each.lineno, each.col_offset = at.lineno, at.col_offset
        each.end_lineno, each.end_col_offset = at.lineno, at.col_offset
    return node


def _first_statement(body, ast):
    """Behind the docstring, which has to stay first."""
    return int(bool(body) and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant)
               and isinstance(body[0].value.value, str))


def _own_locals(function, ast):
    """The variables that nothing but the function itself can use, in the order in which they come: they would be gone
    where it has returned. Those that a function, a class or a comprehension within it mentions are left out."""
    nested = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp,
              ast.GeneratorExp)
    a = function.args
    names = [p.arg for p in a.posonlyargs + a.args + [a.vararg] + a.kwonlyargs + [a.kwarg] if p]
    others, nodes = set(), list(reversed(function.body))
    while nodes:
        node = nodes.pop()
        if isinstance(node, nested):
            others.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            others.update(node.names)
        else:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.append(node.id)
            nodes.extend(reversed(list(ast.iter_child_nodes(node))))
    return [n for n in dict.fromkeys(names) if n not in others]


def _enclose(function, name, ast):
    """BODY becomes: push; try: BODY finally: if no exception is on its way: all locals = None; pop."""
    first = _first_statement(function.body, ast)
    at = function.body[first] if first < len(function.body) else function.body[0]
    body = function.body[first:] or [_place(ast.Pass(), at, ast)]
    last = [_call(ast, '__memprof_range_pop__')]
    own = _own_locals(function, ast)
    if own:
        error = ast.Subscript(_call(ast, '__memprof_range_error__').value, ast.Constant(0), ast.Load())
        last.insert(0, ast.If(ast.Compare(error, [ast.Is()], [ast.Constant(None)]), [
            ast.Assign([ast.Name(each, ast.Store())], ast.Constant(None)) for each in own], []))
    whole = ast.Try(body, [], [], [_place(each, at, ast) for each in last])
    whole.lineno, whole.col_offset, whole.end_lineno, whole.end_col_offset = \
        at.lineno, at.col_offset, at.end_lineno, at.end_col_offset
    push = _place(_call(ast, '__memprof_range_push__', name.encode('utf-8', 'replace')[:1000]), at, ast)
    function.body[first:] = [push, whole]


def _begin():
    """Whether this process is recorded: what the compiled calls call is then there."""
    import builtins
    if hasattr(builtins, '__memprof_range_push__'):
        return True
    import ctypes
    library = ctypes.PyDLL(None)  # which keeps the GIL: no other thread gets to run because of us
    try:
        push, pop = library.memprof_hook_range_push, library.memprof_hook_range_pop
    except AttributeError:
        return False
    push.argtypes, push.restype = [ctypes.c_char_p], None
    pop.argtypes, pop.restype = [], None
    builtins.__memprof_range_push__, builtins.__memprof_range_pop__ = push, pop
    builtins.__memprof_range_error__ = sys.exc_info
    return True


def _instrument(source, path, ranges, is_main):
    """The tree with the functions that are meant enclosed; None: there are none of these."""
    import ast
    tree = ast.parse(source, path)
    functions = list(_functions(tree, ast))
    found, missing = False, list(ranges)
    for name, function in functions:
        for wanted in ranges:
            if wanted.name != name:
                continue
            if wanted in missing:
                missing.remove(wanted)
            if isinstance(function, ast.AsyncFunctionDef):
                _tell('refused %d a coroutine' % wanted.index)
            elif _is_generator(function, ast):
                _tell('refused %d a generator' % wanted.index)
            elif _begin():
                _enclose(function, name, ast)
                _tell('found %d' % wanted.index)
                found = True
    if missing and is_main:
        for name, _ in functions[:_NAMES_TOLD]:
            _tell('has %s' % name)
    return tree if found else None


def _code(tree, path):
    return compile(tree, path, 'exec', dont_inherit=True)


class _Finder:
    """Has modules that are meant compiled from their source, without their cache, which stays as it is."""

    def __init__(self, ranges, main):
        self.ranges, self.main = ranges, main  # main: the module of python3 -m, or None

    def find_spec(self, name, path=None, target=None):
        is_main = self.main is not None and name in (self.main, self.main + '.__main__', '__main__')
        if not any(r.file or r.module == name or (is_main and not r.module) for r in self.ranges):
            return None
        spec = None
        for finder in sys.meta_path:
            if finder is not self and hasattr(finder, 'find_spec'):
                spec = finder.find_spec(name, path, target)
                if spec is not None:
                    break
        origin = spec and spec.origin
        ranges = [r for r in self.ranges if origin and r.is_in(name, origin, is_main)]
        if ranges:
            self._prepare(spec, origin, ranges, is_main)
        return spec

    def _prepare(self, spec, origin, ranges, is_main):
        from importlib.machinery import SourceFileLoader
        loader = spec.loader
        if not isinstance(loader, SourceFileLoader):
            for r in ranges:
                _tell('refused %d in a module that is not loaded from a source file (%s)'
                      % (r.index, type(loader).__name__))
            return
        real = loader.get_code

        def get_code(name):
            try:
                tree = _instrument(loader.get_data(origin), origin, ranges, is_main)
            except (SyntaxError, ValueError, OSError):  # Python says it better
                tree = None
            return real(name) if tree is None else _code(tree, origin)

        loader.get_code = get_code


class _Script:
    """The path hook, the finder and the loader of the script itself: a path that has an importer is run by it."""

    def __init__(self, path, tree):
        self.path, self.tree = path, tree

    def __call__(self, path):
        if not isinstance(path, str) or os.path.abspath(path) != self.path:
            raise ImportError(path)
        self.path = path  # as Python has it for __file__
        return self

    def find_spec(self, name, target=None):
        if name != '__main__':
            return None
        from importlib.machinery import ModuleSpec
        return ModuleSpec(name, self, origin=self.path)

    def get_code(self, name):
        import ast
        import builtins
        body = self.tree.body
        first = _first_statement(body, ast)
        while first < len(body) and isinstance(body[first], ast.ImportFrom) and body[first].module == '__future__':
            first += 1
        at = body[min(first, len(body) - 1)]
        body.insert(first, _place(ast.Expr(ast.Call(ast.Name('__memprof_range_main__', ast.Load()), [
            ast.Call(ast.Name('globals', ast.Load()), [], [])], [])), at, ast))
        builtins.__memprof_range_main__ = self.enter
        code = _code(self.tree, self.path)
        self.tree = None
        return code

    def enter(self, main):
        """As it is without us: __main__, the path, and nothing of ours."""
        import builtins
        from importlib.machinery import SourceFileLoader
        del builtins.__memprof_range_main__
        main.update(__spec__=None, __package__=None, __cached__=None,
                    __loader__=SourceFileLoader('__main__', self.path))
        sys.path_hooks.remove(self)
        sys.path_importer_cache.pop(self.path, None)
        if sys.path and sys.path[0] == self.path:
            sys.path[:1] = [] if getattr(sys.flags, 'safe_path', False) else [
                os.path.dirname(os.path.realpath(self.path))]


def _words():
    """The command line of the interpreter; before 3.10 only the kernel has it."""
    if hasattr(sys, 'orig_argv'):
        return sys.orig_argv
    with open('/proc/self/cmdline', 'rb') as f:
        return [os.fsdecode(word) for word in f.read().split(b'\0')[:-1]]


def _module_of(words):
    """NAME of 'python3 -m NAME'; None where there is none. Options of a letter may stand together: -um NAME, -BmNAME."""
    words = iter(words[1:])
    for word in words:
        if word == '--check-hash-based-pycs':
            next(words)
        elif not word.startswith('--'):
            for k, letter in enumerate(word[1:], 2):
                if letter == 'm':
                    return word[k:] or next(words)
                if letter in 'WX':  # whose value may be the next word
                    if k == len(word):
                        next(words)
                    break
    return None


def _start(ranges):
    name = sys.argv[0] if getattr(sys, 'argv', None) else ''
    main = None
    if name == '-m':
        main = _module_of(_words())
    elif os.path.isdir(name):
        main = '__main__'
    elif os.path.isfile(name) and not name.endswith('.pyc'):
        path = os.path.abspath(name)
        meant = [r for r in ranges if r.module == '__main__' or (not r.module and r.is_in('__main__', path, True))]
        with open(path, 'rb') as f:
            source = f.read()
        try:
            tree = _instrument(source, path, meant, True) if meant else None
        except (SyntaxError, ValueError):  # Python says it better; or a zip file, which has a __main__
            tree, main = None, '__main__'
        if tree is not None:
            sys.path_hooks.insert(0, _Script(path, tree))
    if main or any(r.file or r.module for r in ranges):
        sys.meta_path.insert(0, _Finder(ranges, main))


if _directory and sys.version_info < (3, 9):
    _tell('failed Python %d.%d is older than 3.9' % sys.version_info[:2])
elif _directory:
    try:
        with open(os.path.join(_directory, 'functions'), encoding='utf-8', errors='surrogateescape') as _f:
            _start([_Range(_i, _line) for _i, _line in enumerate(_f.read().split('\n')) if _line])
    except Exception as _error:
        _tell('failed %s: %s' % (type(_error).__name__, _error))
