# Colours only on a terminal and not under NO_COLOR; a pipe gets plain text; a closed pipe is no crash.
"$MEMPROF" run -q -o out.db -- "$SAMPLES/leak" 2>/dev/null
escape=$(printf '\033')
for command in report lines leaks info; do
    "$MEMPROF" $command out.db >piped
    lacks "$command in a pipe" piped "$escape"
    [ -s piped ] || fail "$command prints nothing"
    code=0
    { "$MEMPROF" $command out.db; echo $? >code; } | head -n 1 >/dev/null
    at_most "$command into a closed pipe" 141 "$(cat code)"
done
need script
export TERM=xterm # without one there are no colours, as it should be
if script -qec true /dev/null </dev/null >/dev/null 2>&1; then
    script -qec "'$MEMPROF' report out.db" /dev/null </dev/null >tty
    contains "colours on a terminal" tty "$escape"
    NO_COLOR=1 script -qec "'$MEMPROF' report out.db" /dev/null </dev/null >tty
    lacks "NO_COLOR" tty "$escape["
fi
