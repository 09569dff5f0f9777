# Unmodified Python programs print and return what they do without memprof.
need python3
python3 -c 'import json
print(json.dumps([{"key%d" % i: [i, str(i) * 20, None, {"a": i / 7}]} for i in range(2000)]))' >in.json
same() {
    name=$1
    shift
    expected_status=0
    "$@" <in.json >plain.out 2>plain.err || expected_status=$?
    rm -f out.db
    got=0
    "$MEMPROF" run -q -o out.db -- "$@" <in.json >run.out 2>run.err || got=$?
    equal "$name: status" $expected_status $got
    cmp plain.out run.out || fail "$name: another output"
    cmp plain.err run.err || fail "$name: other messages"
    sound >/dev/null || fail "$name: unsound"
    at_least "$name: Python lines" 20 "$(value "SELECT count(DISTINCT file_id || ':' || line) FROM frame WHERE language = 'python'")"
}
same json.tool python3 -m json.tool --sort-keys
same json.tool-fails python3 -c 'import json, sys; json.loads("[" + sys.stdin.read(1))'
echo 'int main(void) { return 0; }' >a.c
programs=0
for try in "pygmentize -l c a.c" "hg --version" "yapf --version" "rst2html --version" "meson --version" "reportbug --version"; do
    set -- $try
    file=$(command -v "$1") || continue
    head -1 "$file" | grep -q python || continue
    same "$1" "$@"
    programs=$((programs + 1))
done
[ $programs -ge 2 ] || echo "  only $programs programs of Debian packages are installed"
