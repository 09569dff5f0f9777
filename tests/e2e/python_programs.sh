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
    at_least "$name: Python lines" 20 \
        "$(value "SELECT count(DISTINCT file_id || ':' || line) FROM frame WHERE language = 'python'")"
}
same json.tool python3 -m json.tool --sort-keys
same json.tool-fails python3 -c 'import json, sys; json.loads("[" + sys.stdin.read(1))'
# programs of Debian packages (tools/packages: test), each found or the test says so
for program in pygmentize rst2html hg; do
    [ -x /usr/bin/$program ] || skip "/usr/bin/$program is not installed"
done
python3 -c 'for i in range(300):
    print("static int f%d(struct node *n, int x) { return n->value[%d] + x * %d; }" % (i, i % 7, i))' >a.c
same pygmentize /usr/bin/pygmentize -f html -O full -l c a.c
same pygmentize-fails /usr/bin/pygmentize -l no_such_language a.c
python3 -c 'for i in range(60):
    print("Section %d\n==========\n\n*Text* of ``section`` %d.\n\n- one\n- two\n" % (i, i))' >a.rst
same rst2html /usr/bin/rst2html --no-datestamp a.rst
HGPLAIN=1
export HGPLAIN
hg -q init repository
cp a.c a.rst repository
hg -q --cwd repository add
hg -q --cwd repository commit -m first -u tester -d '0 0'
sed -i 's/node/item/' repository/a.c
same hg /usr/bin/hg --cwd repository diff --nodates # the dates of a working directory are now
same hg-fails /usr/bin/hg --cwd repository update no-such-revision
