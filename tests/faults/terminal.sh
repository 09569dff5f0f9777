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
    # names from programs: as they are for other programs, visible on a terminal
    query="SELECT char(27) || '[2J' AS a, char(155) || '2J' AS \"$escape[1m\""
    "$MEMPROF" sql out.db --csv "$query" >piped
    contains "CSV in a pipe is as it is" piped "$escape[2J"
    QUERY=$query script -qec "'$MEMPROF' sql out.db --csv \"\$QUERY\"" /dev/null </dev/null >tty
    lacks "CSV on a terminal" tty "$escape"
    lacks "CSV on a terminal, one byte" tty "$(printf '\302\233')"
    contains "CSV on a terminal shows it" tty '\x1b[2J'
    QUERY=$query script -qec "'$MEMPROF' sql out.db --json \"\$QUERY\"" /dev/null </dev/null >tty
    lacks "JSON on a terminal" tty "$escape"
    lacks "JSON on a terminal, one byte" tty "$(printf '\302\233')"
    contains "JSON on a terminal shows it" tty '\u009b2J'
fi
