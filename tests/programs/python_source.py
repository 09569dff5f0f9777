"""Driven by tests/e2e/python_source.sh: code that is in no file, in a doctest, made by exec, and of a library's kind.

>>> def inner(n):
...     return bytearray(n)  # in a doctest
>>> kept = inner(2000000)
>>> [row['code'].strip() for row in memprof.lines(inner) if row['alloc_bytes'] > 1000000]
['return bytearray(n)  # in a doctest']
"""
import doctest
import linecache

import memprof

made = 'def make(n):\n    return bytearray(n)  # \u00e4 made\n'
space = {}
exec(compile(made, '<made 1>', 'exec'), space)
linecache.cache['<made 1>'] = (len(made), None, made.splitlines(True), '<made 1>')
kept = space['make'](3000000)
# more than a process may say: the others are there all the same
large = '# x\n' * 300000
linecache.cache['<large>'] = (len(large), None, large.splitlines(True), '<large>')
assert doctest.testmod(extraglobs={'memprof': memprof}) == (0, 3), 'the doctest'
# what is in a file is not said
linecache.getlines(__file__)
