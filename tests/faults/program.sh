# Programs that cannot be run or recorded: one line, the status that a shell gives, no database.
refused() { # what, expected status, text of the message, command...
    what=$1 expected=$2 text=$3
    shift 3
    rm -f out.db
    code=0
    "$MEMPROF" run -o out.db -- "$@" >out 2>err || code=$?
    equal "$what: status" "$expected" $code
    contains "$what" err "$text"
    contains "$what: who speaks" err "memprof: "
    equal "$what: lines" 1 "$(wc -l <err)"
    [ ! -e out.db ] || fail "$what: a database was left"
}
refused "missing program" 127 /nonexistent/program /nonexistent/program
refused "missing program, in PATH" 127 no-such-program-here no-such-program-here
echo 'not a program' >text && chmod 644 text
refused "not executable" 126 text ./text
mkdir directory
refused "a directory" 126 directory ./directory

cat >answer.c <<'END'
#include <stdlib.h>
int main(void) { free(malloc(10)); return 21; }
END
"$CC" -static -o static answer.c
refused "static" 21 static ./static
if "$CC" -m32 -o bits32 answer.c 2>/dev/null; then
    refused "32-bit" 21 32-bit ./bits32
else
    echo "32-bit: gcc -m32 does not work here, not tested"
fi
if [ "$(id -u)" = 0 ]; then
    "$CC" -o setuid answer.c
    chown 65534:65534 setuid && chmod 6755 setuid
    # to root the loader still gives LD_PRELOAD only for programs that do not change the user
    refused "set-uid" 21 set- ./setuid
else
    echo "set-uid: needs root to make one, not tested"
fi
printf '#!/nonexistent/interpreter\n' >script && chmod 755 script
refused "script without its interpreter" 127 script ./script
