# The program keeps its standard input and output, descriptors, environment (but for what preloading needs), and
# signals.
head -c 300000 /dev/urandom >data
"$MEMPROF" run -o out.db -- cat <data >copy 2>err
cmp data copy || fail "stdin to stdout"
"$MEMPROF" run -o out.db -- sh -c 'echo out; echo err >&2' >out 2>err
equal "stdout" out "$(cat out)"
contains "stderr" err err
"$MEMPROF" run -q -o out.db -- sh -c 'echo err >&2' >out 2>err
equal "stderr with --quiet" err "$(cat err)"
"$MEMPROF" run -q -o out.db -- env |
    grep -v -e '^MEMPROF_SESSION=' -e '^LD_PRELOAD=' -e '^NVTX_INJECTION64_PATH=' -e '^_=' | sort >env
env | grep -v '^_=' | sort >env_plain
cmp env env_plain || { diff env env_plain; fail "environment"; }
"$MEMPROF" run -q -o out.db -- sh -c 'ls /proc/self/fd | wc -l' >fds
sh -c 'ls /proc/self/fd | wc -l' >fds_plain
cmp fds fds_plain || fail "descriptors: $(cat fds) against $(cat fds_plain)"
for options in '' 'trap "" PIPE;' 'trap "" INT;'; do
    sh -c "$options grep Sig[BIC] /proc/self/status" >sig_plain
    sh -c "$options '$MEMPROF' run -q -o out.db -- grep 'Sig[BIC]' /proc/self/status" >sig
    cmp sig sig_plain || { diff sig sig_plain; fail "signals after $options"; }
done
record_ok "$PROGRAMS/closefds" "$PWD/scratch"
equal "a program that closes all descriptors" "1000|21000|1000" "$(by_function work | cut -d'|' -f1-3)"
# output into a pipe that closes early: the program dies of SIGPIPE as it would alone
code=0
sh -c "'$MEMPROF' run -q -o out.db -- sh -c 'while echo y; do :; done'; echo \$? >code" | head -n 1 >/dev/null
at_least "status after SIGPIPE" 1 "$(cat code)"
