# Where the page goes: beside the database, to a name, to stdout; and that an old one is replaced whole or not at all.
. "$ROOT/tests/page/page.inc"
record_ok "$SAMPLES/leak"
"$MEMPROF" report out.db --html >said
equal "what it says" out.html "$(cat said)"
[ -s out.html ] || fail "no out.html beside out.db"
equal "mode" "$(touch plain && stat -c %a plain)" "$(stat -c %a out.html)"
"$MEMPROF" report out.db --html -o - >stdout.html
# the nonce differs, the rest does not
equal "stdout" "$(sed 's/nonce[-="]*[0-9a-f]*//g' out.html | cksum)" \
    "$(sed 's/nonce[-="]*[0-9a-f]*//g' stdout.html | cksum)"
mkdir locked
echo old >locked/page.html
"$MEMPROF" report out.db --html=locked/none/page.html 2>err && fail "wrote into a missing directory"
contains "an error that names it" err locked/none/page.html
(trap "" XFSZ; ulimit -f 20; "$MEMPROF" report out.db --html=locked/page.html 2>err) && fail "wrote more than it may"
equal "the old page" old "$(cat locked/page.html)"
equal "nothing left behind" page.html "$(ls locked)"
if [ "$(id -u)" = 0 ] && mkdir full && mount -t tmpfs -o size=64k none full 2>/dev/null; then
    echo old >full/page.html
    "$MEMPROF" report out.db --html=full/page.html 2>err && status=0 || status=$?
    left=$(ls full) old=$(cat full/page.html)
    umount full
    equal "status on a full disk" 1 "$status"
    equal "the old page on a full disk" old "$old"
    equal "nothing left on a full disk" page.html "$left"
    at_most "lines said" 1 "$(wc -l <err)"
fi
mkdir bin
printf '#!/bin/sh\nprintf %%s "$1" >%s/opened\n' "$PWD" >bin/xdg-open
chmod +x bin/xdg-open
PATH=$PWD/bin:$PATH "$MEMPROF" report out.db --html="page; touch owned.html" --open >/dev/null
for _ in 1 2 3 4 5 6 7 8 9 10; do [ -s opened ] && break; sleep 0.2; done
contains "what was opened" opened "page; touch owned.html"
[ ! -e owned.html ] || fail "the name was given to a shell"
