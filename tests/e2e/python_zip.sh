# The source of modules that Python imports from a zip file: packed, stored, and behind a script's first line. And of
# commands.
need python3
python=$(command -v python3)
for kind in ZIP_DEFLATED ZIP_STORED; do
    rm -f app.zip
    python3 -c "import zipfile
open('app.zip', 'wb').write(b'#!/usr/bin/env python3\n')
z = zipfile.ZipFile('app.zip', 'a', zipfile.$kind)
z.writestr('pkg/__init__.py', '')
z.writestr('pkg/mod.py', 'keep = []\n\n\ndef inside():\n    keep.append(bytes(400000))  # kept in the list\n')
z.close()"
    record_ok "$python" \
        -c "import sys; sys.path.insert(0, '$PWD/app.zip'); import pkg.mod; [pkg.mod.inside() for _ in range(3)]"
    "$MEMPROF" lines --func inside >lines.txt
    contains "$kind" lines.txt "# kept in the list"
    equal "$kind: bytes" $((3 * 400033)) \
        "$(value "SELECT alloc_bytes FROM v_line
        WHERE file = '$PWD/app.zip/pkg/mod.py' AND line = 5 AND kind = 'heap'")"
    "$MEMPROF" report --html=page.html >/dev/null
    python3 "$ROOT/tests/page/page_text.py" page.html >page.txt
    grep -qF "# kept in the list" page.txt || fail "$kind: not in the page"
    # cut anywhere, the source is not there and the table is
    for bytes in 1 22 60 100 150 200; do
        head -c $bytes app.zip >cut && mv cut app.zip.cut
        cp app.zip whole && mv app.zip.cut app.zip
        "$MEMPROF" lines --func inside >lines.txt
        lacks "$kind: cut" lines.txt "# kept in the list"
        contains "$kind: cut" lines.txt "inside"
        mv whole app.zip
    done
done
RUN_OPTIONS=--source
record_ok "$python" -c "import sys; sys.path.insert(0, '$PWD/app.zip'); import pkg.mod; pkg.mod.inside()"
rm app.zip
"$MEMPROF" lines --func inside >lines.txt
contains "source in the recording" lines.txt "# kept in the list"

RUN_OPTIONS=
# A command without an ending: its first line says that it is Python. One that does not say so is not read into a page.
for first in "#!$python" 'secret = 1'; do
    printf '%s\n%s\n' "$first" 'keep = bytes(400000)  # kept by the command' >tool
    record_ok "$python" "$PWD/tool"
    "$MEMPROF" report --html=page.html >/dev/null
    python3 "$ROOT/tests/page/page_text.py" page.html >page.txt
    found=$(grep -cF "# kept by the command" page.txt || true)
    case $first in
    secret*) equal "of no kind: in the page" 0 "$found" ;;
    *) equal "command: in the page" 1 "$found" ;;
    esac
done
