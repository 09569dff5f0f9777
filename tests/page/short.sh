# The page of a program that does next to nothing, and of a sample with marks and source.
. "$ROOT/tests/page/page.inc"
record_ok true
check_page true --basic
at_most "size of an empty page" 400000 "$(stat -c %s page.html)"
record_ok "$SAMPLES/net"
check_page net --events --hands --says "step" --says "validation" --says "void *memory = malloc(size_bytes);"
"$MEMPROF" report out.db --html=bare.html --no-source >/dev/null
python3 -S - <<'EOF' || fail "--no-source left source in the page"
import base64, json, re, zlib
text = open("bare.html").read()
packed = re.search(r'id="data-source">([^<]*)<', text).group(1)
source = json.loads(zlib.decompress(base64.b64decode(packed), -15))
assert source == {"with_source": 0, "files": []}, source
EOF
