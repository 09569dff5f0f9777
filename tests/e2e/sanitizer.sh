# A program built with a sanitizer is run plainly, and told so in one line. So is one that a recorded program starts, by
# an exec or a posix_spawn: it says what it says without memprof, and its row says why it is not recorded.
printf 'int main(void) { return 6; }\n' >clean.c
for kind in address thread; do
    "$CC" -fsanitize=$kind -o clean clean.c 2>/dev/null || skip "$CC has no -fsanitize=$kind"
    status=0
    "$MEMPROF" run -o out.db -- ./clean >run.out 2>run.err || status=$?
    equal "$kind: status" 6 $status
    contains "$kind: message" run.err "running it without recording"
    contains "$kind: message" run.err "Sanitizer"
    for child in "sh -c './clean; exit \$?'" "python3 -c 'import os; os._exit(os.waitstatus_to_exitcode(os.waitpid(
        os.posix_spawn(\"./clean\", [\"clean\"], os.environ), 0)[1]))'"; do
        status=0
        eval "\"\$MEMPROF\" run -o out.db -- $child" >run.out 2>run.err || status=$?
        equal "$kind, in $child: status" 6 $status
        grep -v '^memprof: ' run.out run.err >said && fail "$kind, in $child: it says more"
        equal "$kind, in $child: why" 1 "$(value "SELECT count(*) FROM process WHERE not_recorded LIKE '%Sanitizer%'")"
    done
done
