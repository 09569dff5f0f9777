# The text of code that is in no file: doctests, what exec runs and linecache has, what is typed into Python 3.13.
need python3
source_of() { value "SELECT replace(source, char(10), '|') FROM file WHERE path = '$1'"; }
"$MEMPROF" run -q -o out.db --python-module python3 "$ROOT/tests/programs/python_source.py" || fail "the program"
sound
equal "a doctest" "def inner(n):|    return bytearray(n)  # in a doctest|" "$(source_of '<doctest __main__[0]>')"
equal "made" "def make(n):|    return bytearray(n)  # ä made|" "$(source_of '<made 1>')"
equal "too large, or in a file" 0 \
    "$(value "SELECT count(*) FROM file WHERE source IS NOT NULL AND (path = '<large>' OR path NOT GLOB '<*')")"
"$MEMPROF" lines --func make >lines.txt
contains "its lines" lines.txt "return bytearray(n)  # ä made"

typed=$(ls "$HOME"/.pyenv/versions/3.13.*/bin/python3 2>/dev/null | head -n 1)
[ -n "$typed" ] || skip "Python 3.13 is not installed"
printf 'import memprof\ndef typed(n):\n    return bytearray(n)  # typed\n\nkept = typed(4000000)\n' |
    "$MEMPROF" run -q -o out.db --python-module "$typed" -i >said 2>&1
"$MEMPROF" lines --func typed >lines.txt
contains "typed" lines.txt "return bytearray(n)  # typed"
