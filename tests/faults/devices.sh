# An output file that is no regular file is written to, never replaced; a link stays a link.
"$MEMPROF" run -q -- "$SAMPLES/net" >/dev/null
page() { "$MEMPROF" report --html="$1" out.db; }
snapshot() { "$MEMPROF" export --format torch-snapshot -o "$1" out.db; }
for write in page snapshot; do
    rm -f fifo link target whole
    $write whole >/dev/null 2>&1
    size=$(wc -c <whole)
    at_least "$write: bytes" 100 "$size"
    mkfifo fifo
    wc -c <fifo >read &
    $write fifo >said 2>&1
    wait $!
    [ -p fifo ] || fail "$write: the pipe was replaced"
    at_least "$write: bytes in the pipe" 100 "$(cat read)"
    echo before >target
    ln -s target link
    $write link >/dev/null 2>&1
    [ -L link ] || fail "$write: the link was replaced"
    at_least "$write: bytes behind the link" 100 "$(wc -c <target)"
    code=0
    $write . >said 2>&1 || code=$?
    equal "$write: a directory" 1 $code
    equal "$write: what is left" "fifo link out.db read said target whole" "$(echo $(ls | grep -v '^log$'))"
done
at_least "the page through /dev/stdout" 10000 "$(page /dev/stdout | wc -c)"
if [ "$(id -u)" = 0 ] && mknod -m 666 null c 1 3 2>/dev/null; then
    page null >/dev/null
    snapshot null 2>/dev/null
    [ -c null ] || fail "the device was replaced"
fi
