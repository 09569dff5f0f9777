# Hostile text in arguments, names, paths: of a made recording that has it everywhere, and of a real command line.
. "$ROOT/tests/page/page.inc"
synthetic 200000
check_page hostile --hostile --events --says "</script><script>alert(1)</script>"
cp "$(command -v ls)" './<svg onload=x>"'"'"
record "./<svg onload=x>\"'" "</script><script>window.owned = 1</script>" "\"'><img src=x onerror=window.owned=2>" \
    '${1}`id`' "$(printf 'a\tb\001c\nd')"
check_page command --hostile --basic --says "window.owned = 1"
