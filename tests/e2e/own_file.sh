# `lines --file NAME` where the program's own file has the name of another one: its own is shown, and a line says which
# is not and how to see it. Whose a file is, the run's directory says, or the script's.
need python3
mkdir -p work/app other work/site-packages
cat >work/app/pool.py <<'EOF'
def fill():
    return [bytes(300000) for _ in range(10)]
EOF
cat >other/pool.py <<'EOF'
def drain():
    return [bytes(200000) for _ in range(10)]
EOF
cp other/pool.py work/site-packages/pool.py
cat >work/app/main.py <<'EOF'
import importlib.util, os, sys
import pool
def load(path):
    spec = importlib.util.spec_from_file_location("other_pool", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
kept = [pool.fill(), load(sys.argv[1]).drain()]
EOF
base=$PWD
shown() { # HOW FILE...: of the files that were asked for, those of which there is a table
    how=$1
    shift
    args=
    for file; do args="$args --file $file"; done
    set -f
    "$MEMPROF" lines out.db $args >lines.txt || fail "lines $args"
    set +f
    equal "$how" "$expected" "$(sed -n 's/^## \([a-z]*\) .*/\1/p' lines.txt | sort | xargs)"
}
in_dir() {
    (cd "$1" && shift && "$MEMPROF" run -q -o "$base/out.db" -- "$@") >run.out 2>&1 || { cat run.out; fail "run"; }
}

in_dir work python3 app/main.py "$base/other/pool.py"
expected=fill shown "the run's directory" pool.py
contains "what is left out" lines.txt "$base/other/pool.py has the same name and is left out: --file with the whole"
expected=fill shown "a longer end of its own" app/pool.py
lacks "nothing is left out" lines.txt "left out"
expected=drain shown "a longer end" other/pool.py
expected=drain shown "the whole path" "$base/other/pool.py"
expected="drain fill" shown "both" pool.py other/pool.py
expected="drain fill" shown "a pattern" '*pool.py'
"$MEMPROF" lines out.db --file pool.py --csv >lines.csv
contains "CSV has all" lines.csv "other/pool.py"

mkdir elsewhere
in_dir elsewhere python3 ../work/app/main.py "$base/other/pool.py"
expected=fill shown "the script's directory" pool.py
in_dir work python3 app/main.py "$base/work/site-packages/pool.py"
expected=fill shown "what is installed there is another's" pool.py
# none is its own: both are shown
in_dir elsewhere env PYTHONPATH="$base/work/app" python3 -c 'import importlib.util, pool, sys
spec = importlib.util.spec_from_file_location("other_pool", sys.argv[1])
module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
kept = [pool.fill(), module.drain()]' "$base/other/pool.py"
expected="drain fill" shown "no directory of the run's" pool.py
