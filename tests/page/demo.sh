# README's first command: what it prints, and the page that it makes, whose place is its last line.
mkdir build && ln -s "$BUILD/memprof" "$BUILD/libmemprof.so" "$BUILD/libmemprof_audit.so" "$BUILD/samples" build/
sh "$ROOT/tools/demo" build >demo.out 2>&1 || { cat demo.out; fail "the demo"; }
contains "the lines at the peak" demo.out samples/net.c:45
contains "the lines of a function" demo.out '## forward   '
page=$PWD/build/demo.html
equal "last line" "The page is $page: open it in a browser, or with: xdg-open $page" "$(tail -n 1 demo.out)"
equal "the page is whole" 1 "$(grep -c '^</html>' "$page")"
contains "the page without scripts" "$page" 'pool_alloc'

. "$ROOT/tests/page/page.inc"
open_browser
python3 -S "$ROOT/tests/page/check.py" "$page" build/demo.db demo "$SHOTS" --basic --pictures ||
    fail "the demo's page in a browser"
