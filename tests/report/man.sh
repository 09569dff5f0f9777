# The manual pages and the completion in docs/man are what tools/man.c makes of today's options.
"$CC" -D_GNU_SOURCE -Wall -Wextra -o make_man "$ROOT/tools/man.c"
mkdir pages
./make_man pages
diff -ru "$ROOT/docs/man" pages || fail "docs/man is out of date; tools/man.c says how to make it anew"
for page in pages/*.1; do
    if command -v groff >/dev/null; then
        groff -man -Tutf8 -ww "$page" >/dev/null 2>warnings || fail "groff on $page"
        [ ! -s warnings ] || { cat warnings; fail "groff warns about $page"; }
    fi
done
if command -v bash >/dev/null; then bash -n pages/memprof.bash || fail 'memprof.bash'; fi
