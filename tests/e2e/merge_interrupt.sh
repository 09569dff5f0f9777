# ^C while a merge reads its files and while it writes: the unfinished file goes, and what was there before stays.
. "$ROOT/tests/lib.sh"
need python3 strace

"$MEMPROF" run -q -o many.db -- "$PROGRAMS/many_stacks" 25000 >run.out 2>&1 || { cat run.out; fail run; }
mkdir in
for i in $(seq 40); do ln many.db in/$i.db; done
# interrupted COUNT DELAY: a merge of COUNT files, DELAY seconds after it began its file. A job of a shell is started
# with SIGINT ignored, which stays so.
interrupted() {
    python3 -c 'import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$MEMPROF" merge -q -o all.db "$1" 2>merge.err &
    pid=$!
    for _ in $(seq 2000); do
        [ -z "$(find . -name 'all.db.merge-*' | head -n 1)" ] || break
        sleep 0.01
    done
    sleep "$2"
    kill -INT $pid
    status=0
    wait $pid || status=$?
    equal "status, $2 s after it began" 130 $status
    equal 'what is left' "$expected" "$(find . -name 'all.db*' | sort | tr '\n' ' ')"
}
expected=
for delay in 0.05 0.5; do interrupted 'in/*.db' $delay; done
"$MEMPROF" merge -q -o all.db in/1.db in/2.db
cp all.db first
expected='./all.db '
interrupted 'in/*.db' 0.2
cmp all.db first || fail 'the merged file from before'

# at each file that it opens or makes, the first and the last of them, too
for rank in 0 1; do "$MEMPROF" run -q -o rank$rank.db -- "$PROGRAMS/ranks" $rank; done
rm -f all.db
strace -qq -o trace -e trace=openat "$MEMPROF" merge -q -o all.db rank0.db rank1.db
# interrupted_at N SIGNAL STATUS FILE...
interrupted_at() {
    n=$1 signal=$2 want=$3
    shift 3
    rm -f all.db
    status=0
    strace -qq -o /dev/null -e trace=openat -e inject=openat:signal="$signal":when="$n" "$MEMPROF" merge -q -o all.db \
        "$@" 2>merge.err || status=$?
    [ $status = "$want" ] || fail "$signal at file $n: status $status"
    left=$(find . -name 'all.db.*')
    [ -z "$left" ] || fail "$signal at file $n: $left is left"
}
files=$(wc -l <trace)
for n in $(seq "$files"); do interrupted_at "$n" SIGINT 130 rank0.db rank1.db; done
# who reads what a merge says may go away; the merge of one file is its copy
rm -f all.db
at=$(grep -n 'all.db.merge-' trace | head -n 1 | cut -d : -f 1)
interrupted_at $((at + 2)) SIGPIPE 141 rank0.db rank1.db
strace -qq -o trace -e trace=openat "$MEMPROF" merge -q -o all.db rank0.db
at=$(grep -n 'all.db.merge-' trace | tail -n 1 | cut -d : -f 1)
interrupted_at "$at" SIGTERM 143 rank0.db
interrupted_at "$((at + 1))" SIGHUP 129 rank0.db
