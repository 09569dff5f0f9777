# memprof kernel: one kernelspec where it was asked for, nothing else, and nobody else's is touched.
need python3
mkdir home place
export HOME="$PWD/home"
unset JUPYTER_DATA_DIR XDG_DATA_HOME
fails() { # STATUS TEXT COMMAND...
    status=$1 text=$2
    shift 2
    "$@" >said 2>said.err && fail "$* succeeded" || equal "$*" "$status" "$?"
    contains "$*" said.err "$text"
}
fails 2 "kernel install: where? --user, or --prefix DIR" "$MEMPROF" kernel install
fails 2 "where?" "$MEMPROF" kernel install --user --prefix place
fails 2 "say 'memprof kernel install'" "$MEMPROF" kernel
fails 1 "no such program" "$MEMPROF" kernel install --prefix place --python /no/where
equal "nothing yet" "" "$(find home place -type f)"
python=$(command -v python3)
"$MEMPROF" kernel install --prefix place --python "$python" >said || fail "--prefix"
equal "one file" place/share/jupyter/kernels/memprof/kernel.json "$(find home place -type f)"
python3 - "$MEMPROF" "$python" <<'END'
import json, os, sys
spec = json.load(open('place/share/jupyter/kernels/memprof/kernel.json'))
assert spec['argv'][0] == os.path.realpath(sys.argv[1]) and spec['display_name'] == 'Python 3 (memprof)', spec
assert os.path.realpath(sys.argv[2]) in spec['argv'] and spec['argv'][-1] == '{connection_file}', spec
END
"$MEMPROF" kernel uninstall --prefix place

echo 'a Python without ipykernel'
mkdir empty && ln -s "$(python3 -c 'import sys; print(sys.executable)')" empty/bare
printf '#!/bin/sh\nexec "%s" -I -S "$@"\n' "$PWD/empty/bare" >bare && chmod +x bare
"$MEMPROF" kernel install --prefix place --python "$PWD/bare" >said 2>said.err || fail "bare"
contains "it is said" said.err "memprof: $PWD/bare: has no ipykernel"
"$MEMPROF" kernel uninstall --prefix place
mkdir ipykernel && : >ipykernel/__init__.py
PYTHONPATH=$PWD "$MEMPROF" kernel install --prefix place --python "$python" >said 2>said.err || fail "with it"
lacks "nothing is said" said.err ipykernel
"$MEMPROF" kernel uninstall --prefix place
"$MEMPROF" kernel install --user --python "$python" >said || fail "--user"
equal "its place" home/.local/share/jupyter/kernels/memprof/kernel.json "$(find home place -type f)"
echo '{"argv": []}' >home/.local/share/jupyter/kernels/memprof/kernel.json
fails 1 "is not memprof's" "$MEMPROF" kernel install --user --python "$python"
fails 1 "is not memprof's" "$MEMPROF" kernel uninstall --user
fails 1 "is not there" "$MEMPROF" kernel uninstall --prefix place
equal "it stays" '{"argv": []}' "$(cat home/.local/share/jupyter/kernels/memprof/kernel.json)"
XDG_DATA_HOME=$PWD/xdg "$MEMPROF" kernel install --user --python "$python" >said
JUPYTER_DATA_DIR=$PWD/jupyter "$MEMPROF" kernel install --user --python "$python" >said
equal "by the environment" "jupyter/kernels/memprof/kernel.json xdg/jupyter/kernels/memprof/kernel.json" \
    "$(find xdg jupyter -type f | sort | tr '\n' ' ' | sed 's/ $//')"
