# The page shortens names of functions as sentences do (tests/unit/test_table.c): one table for both.
need python3 chromium
python3 - "$ROOT" >names.html <<'END'
import json, re, sys
root = sys.argv[1]
string = r'"((?:[^"\\]|\\.)*)"'
rows = []
for row in open(root + "/tests/short_names.h").read().split("\nROW(")[1:]:
    parts = [json.loads('"' + "".join(re.findall(string, part)) + '"') if '"' in part else None
             for part in re.split(r",\s+(?=NULL|\")(?=(?:[^\"]|\"(?:[^\"\\]|\\.)*\")*$)", row.strip().rstrip(")"))]
    if len(parts) != 3:
        sys.exit("not understood: " + row)
    rows.append((parts[0], parts[2].replace("(anonymous namespace)", "(anonymous)")))
print("<!DOCTYPE html><meta charset=utf-8><script>%s</script><pre id=out></pre><script>"
      "const rows = %s; document.getElementById('out').textContent = rows.map(([name, wanted]) => "
      "shortName(name) === wanted ? 'as wanted' : `${name}: ${shortName(name)}, not ${wanted}`).join('\\n');</script>"
      "<pre id=apart></pre><script>const apart = ['os::commit(char*, long, bool)', "
      "'os::commit(char*, long, long, bool)', 'put<int>(int)', 'put<char>(char)', 'get(int)', 'get(char)', "
      "'one(int)']; const placeOf = (i) => i === 4 ? 'a.c:1' : '';"
      "document.getElementById('apart').textContent = distinctNames(apart, placeOf).join('; ');</script>"
      % (open(root + "/templates/units.js").read().replace("</", "<\\/"), json.dumps(rows).replace("</", "<\\/")))
END
chromium --headless --no-sandbox --disable-gpu --user-data-dir="$PWD/profile" --dump-dom "file://$PWD/names.html" \
    >out.html 2>chromium.err || { cat chromium.err; fail "chromium"; }
python3 -c '
import html, re
print(html.unescape(re.search("<pre id=.out.>(.*?)</pre>", open("out.html").read(), re.S).group(1)))' >lines.txt
sort lines.txt | uniq -c >out.txt
lacks "names" out.txt ", not "
equal "all rows as wanted" "$(grep -c '^ROW(' "$ROOT/tests/short_names.h")" "$(awk '/as wanted/ { print $1 }' out.txt)"
# those of several functions at one place keep what tells them apart
equal "told apart" "os::commit(…bool); os::commit(…long, bool); put<int>; put<char>; get; get; one" \
    "$(python3 -c '
import html, re
print(html.unescape(re.search("<pre id=.apart.>(.*?)</pre>", open("out.html").read(), re.S).group(1)))')"
