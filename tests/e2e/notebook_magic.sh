# %memprof and %%memprof in notebooks that nobody saved: tables to the byte, on the kernel that 'memprof kernel install'
# writes, and nothing without memprof; the text of cells and of made code is in the recording.
need python3
has_modules /usr/bin/python3 ipykernel nbclient nbformat ||
    skip "python3-ipykernel and python3-nbclient are not installed"
export JUPYTER_DATA_DIR="$PWD/data" IPYTHONDIR="$PWD/ipython" PYTHONDONTWRITEBYTECODE=1
spec=$PWD/data/kernels/memprof/kernel.json
equal "where it is" "$spec" "$("$MEMPROF" kernel install --user --python /usr/bin/python3)"
"$MEMPROF" kernel install --user --python /usr/bin/python3 >said || fail "once more"
/usr/bin/python3 "$ROOT/tests/programs/notebook_cells.py" plain memprof || fail "plain"
mv memprof-kernel.db out.db
"$MEMPROF" report >report.txt || fail "the first report"
sound
# a cell, made code: of files that were never there, read when all of it is gone
equal "a cell" 1 "$(value "SELECT count(*) FROM file WHERE path GLOB '/tmp/ipykernel_*/*.py'
    AND source GLOB '*def func(count):*'")"
equal "made code" "made = bytearray(5000000)  # in no file" "$(value "SELECT source FROM file WHERE path = '<made>'")"
"$MEMPROF" lines --func func --during 'cell ?3?#1' >lines.txt
contains "its lines afterwards" lines.txt "kept.append(bytearray(count"
if has_modules /usr/bin/python3 torch; then
    /usr/bin/python3 "$ROOT/tests/programs/notebook_cells.py" torch memprof || fail "PyTorch"
fi

# a kernel that is not recorded
PYTHONPATH=$("$MEMPROF" python-path) /usr/bin/python3 "$ROOT/tests/programs/notebook_cells.py" unrecorded python3 ||
    fail "not recorded"
