# The page shortens names of functions as sentences do (tests/unit/test_table.c): one table for both.
. "$ROOT/tests/page/page.inc"
open_browser
python3 -S - "$ROOT" >names.html <<'END'
import json, re, sys
root = sys.argv[1]
string = r'"((?:[^"\\]|\\.)*)"'
rows = []
for row in open(root + "/tests/short_names.h").read().split("\nROW(")[1:]:
    parts = [json.loads('"' + "".join(re.findall(string, part)) + '"') if '"' in part else None
             for part in re.split(r",\s+(?=NULL|\")(?=(?:[^\"]|\"(?:[^\"\\]|\\.)*\")*$)", row.strip().rstrip(")"))]
    if len(parts) != 3:
        sys.exit("not understood: " + row)
    rows.append((parts[0], parts[2].replace("(anonymous namespace)", "(anonymous)").replace("..", "\u2026")))
print("<!DOCTYPE html><meta charset=utf-8><script>%s</script><pre id=out></pre><script>"
      "const rows = %s; document.getElementById('out').textContent = rows.map(([name, wanted]) => "
      "shortName(name) === wanted ? 'as wanted' : `${name}: ${shortName(name)}, not ${wanted}`).join('\\n');</script>"
      "<pre id=apart></pre><script>const apart = ['os::commit(char*, long, bool)', "
      "'os::commit(char*, long, long, bool)', 'put<int>(int)', 'put<char>(char)', 'get(int)', 'get(char)', "
      "'one(int)']; const placeOf = (i) => i === 4 ? 'a.c:1' : '';"
      "document.getElementById('apart').textContent = distinctNames(apart, placeOf).join('; ');</script>"
      % (open(root + "/templates/units.js").read().replace("</", "<\\/"), json.dumps(rows).replace("</", "<\\/")))
END
python3 -S - "$ROOT/tests/page" <<'END' || fail "the page of names"
import os, sys
sys.path.insert(0, sys.argv[1])
from browser import served
b = served(os.environ["BROWSER"])
b.open(os.path.abspath("names.html"))
for name in "out", "apart":
    with open(name, "w", encoding="utf-8") as f:
        f.write(b.js("return document.getElementById(arguments[0]).textContent + '\\n'", name))
END
sort out | uniq -c >out.txt
lacks "names" out.txt ", not "
equal "all rows as wanted" "$(grep -c '^ROW(' "$ROOT/tests/short_names.h")" "$(awk '/as wanted/ { print $1 }' out.txt)"
# those of several functions at one place keep what tells them apart
equal "told apart" "os::commit(…bool); os::commit(…long, bool); put<int>; put<char>; get; get; one" "$(cat apart)"
