# The source of a notebook's cells, whose code has the name of a file that is not there: from the notebook, as it was
# when it ran; with what a kernel does, and with the real kernel where it is installed.
need python3
python3 -c '
import json
cells = ["keep = []",
         "def forward(n):\n    keep.append(bytes(n * 100000))  # in the notebook: \u00e4\n    return len(keep)\n",
         "for i in range(3):\n    forward(i + 1)"]
cells = [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": c.splitlines(True)}
         for c in cells]
json.dump({"cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# forward"]}, *cells],
           "metadata": {}, "nbformat": 4, "nbformat_minor": 4}, open("train it.ipynb", "w"), indent=1)'
check() { # NAME
    equal "$1: bytes" "$((600000 + 3 * 33))" \
        "$(value "SELECT sum(alloc_bytes) FROM v_line
        WHERE function = 'forward' AND line = 2 AND kind = 'heap' AND file GLOB '/tmp/ipykernel_*/[0-9]*.py'
        AND largest_bytes > 100000")"
    "$MEMPROF" lines --func forward >lines.txt
    contains "$1: source" lines.txt "# in the notebook: ä"
    contains "$1: line" lines.txt "     2      keep.append"
}
cp 'train it.ipynb' saved
record_ok /usr/bin/python3 "$ROOT/tests/programs/python_notebook.py" 'train it.ipynb'
echo '{"cells": []}' >'train it.ipynb' # edited after it ran
check "named"
cp saved other.ipynb
mkdir elsewhere
cp saved elsewhere/x
record_ok /usr/bin/python3 "$ROOT/tests/programs/python_notebook.py" elsewhere/x
check "in the directory where it began"
rm other.ipynb
record_ok /usr/bin/python3 "$ROOT/tests/programs/python_notebook.py" elsewhere/x
"$MEMPROF" lines --func forward >lines.txt
lacks "nowhere" lines.txt "# in the notebook"
contains "nowhere: the table" lines.txt "## forward"

has_modules /usr/bin/python3 ipykernel nbclient nbformat ||
    skip "python3-ipykernel and python3-nbclient are not installed"
cp saved 'train it.ipynb'
record_ok /usr/bin/python3 "$ROOT/tests/programs/python_notebook.py" 'train it.ipynb' kernel
check "the real kernel"
