# Hostile text in arguments, names, paths: of a made recording that has it everywhere, and of a real command line.
. "$ROOT/tests/page/page.inc"
synthetic 200000
check_page hostile --hostile --events --hands --says "</script><script>alert(1)</script>"
cp "$(command -v ls)" './<svg onload=x>"'"'"
record "./<svg onload=x>\"'" "</script><script>window.owned = 1</script>" "\"'><img src=x onerror=window.owned=2>" \
    '${1}`id`' "$(printf 'a\tb\001c\nd')"
check_page command --hostile --basic --says "window.owned = 1"

# what is not UTF-8 in a command line is none in the page
record true "$(printf 'caf\351 \377 \355\240\200')"
"$MEMPROF" report out.db --html=page.html >/dev/null
python3 -S -c '
open("page.html", encoding="utf-8", errors="strict").read().index("caf\ufffd \ufffd \ufffd\ufffd\ufffd")' ||
    fail "the page is not UTF-8"
