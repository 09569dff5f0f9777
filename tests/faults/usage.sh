# Mistakes on the command line: exit 2 and a line that names them.
wrong() { # text, arguments...
    text=$1
    shift
    code=0
    "$MEMPROF" "$@" >out 2>err || code=$?
    equal "status of $*" 2 $code
    contains "$*" err "$text"
    contains "$*" err "memprof: "
}
wrong run run
wrong bogus bogus
wrong bogus run --bogus -- true
wrong bogus report --by bogus
wrong depth run --depth 0 -- true
wrong depth run --depth 5000 -- true
wrong x1 run --max-events x1 -- true
"$MEMPROF" --help >help.txt
for command in run report lines leaks info sql; do
    contains "help" help.txt "$command"
    "$MEMPROF" $command --help >one.txt
    contains "$command --help" one.txt "$command"
done
"$MEMPROF" --version >version.txt
contains "version" version.txt "$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")"
