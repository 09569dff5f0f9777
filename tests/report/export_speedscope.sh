# speedscope's own format, by its schema and in its own page (npm's package, fetched once), with names that are traps.
# Totals: export_totals.sh.
. "$ROOT/tests/report/export.inc"
scope() { "$MEMPROF" export --format speedscope "$@" 2>err || { cat err; fail "export $*"; }; }

record_ok "$SAMPLES/net"
scope out.db
scope net.db
scope net.db --stat temporary.bytes --device cuda -o stat.json
scope out.db --at end -o empty.json
hostile trap.db
scope trap.db
python3 - <<'END' || fail "not what the sample's source says"
import json

def read(name):
    file = json.load(open(name))
    frames = file["shared"]["frames"]
    for profile in file["profiles"]:
        assert all(weight > 0 for weight in profile["weights"]), profile["name"]
        assert sum(profile["weights"]) == profile["endValue"] and profile["startValue"] == 0
        assert len(profile["samples"]) == len(profile["weights"])
    return file, frames, {profile["name"]: profile for profile in file["profiles"]}

# of samples/net.c: see there
file, frames, profiles = read("out.speedscope.json")
assert {(name, p["unit"], p["endValue"]) for name, p in profiles.items()} == {
    ("host: live at the peak", "bytes", 963072), ("host: allocated", "bytes", 7472128),
    ("host: allocations", "none", 216)}
assert file["profiles"][file["activeProfileIndex"]]["name"] == "host: live at the peak"
allocated = profiles["host: allocated"]
stacks = {tuple(frames[i]["name"] for i in s): w for s, w in zip(allocated["samples"], allocated["weights"])}
assert stacks["main", "train", "update"] == 6553600, stacks # inlined functions are there
own = [frames[s[-1]] for s in allocated["samples"] if frames[s[-1]]["name"] == "update"]
assert [f["line"] for f in own] == [159] and own[0]["file"].endswith("samples/net.c"), own

devices = {p["name"].rsplit(": ", 1)[0] for p in read("net.speedscope.json")[0]["profiles"]}
assert devices == {"host", "cuda:0"}, devices
assert [p["name"] for p in read("stat.json")[0]["profiles"]] == [
    "cuda:0: temporary.bytes, bytes of those"], read("stat.json")[2].keys()
empty = read("empty.json")[0]["profiles"]
assert len(empty) == 1 and not empty[0]["samples"]
trap, plain = read("trap.speedscope.json"), read("net.speedscope.json")
assert [p["endValue"] for p in trap[0]["profiles"]] == [p["endValue"] for p in plain[0]["profiles"]]
assert max(len(f["name"]) for f in trap[1]) <= 4000
print("  numbers, frames and names")
END

need npm chromium
. "$ROOT/tests/report/npm.inc"
package=$(npm_package speedscope 1.25.0) || skip "npm's package speedscope cannot be had here"
release=$package/dist/release
/usr/bin/python3 -c 'import jsonschema' 2>/dev/null || skip "python3-jsonschema is not installed"
/usr/bin/python3 - "$release/file-format-schema.json" out net trap empty <<'END' || fail "not what its schema wants"
import json, os, sys, jsonschema
schema = json.load(open(sys.argv[1]))
for name in sys.argv[2:]:
    path = name + ".json" if os.path.exists(name + ".json") else name + ".speedscope.json"
    jsonschema.validate(json.load(open(path)), schema)
print("  as the schema has them:", *sys.argv[2:])
END
# shown FILE TEXT: the page with the file shows the text
shown() {
    printf 'speedscope.loadFileFromBase64("%s", "%s")' "$1" "$(base64 -w0 "$1")" >load.js
    timeout 120 chromium --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files \
        --user-data-dir="$PWD/profile" --virtual-time-budget=20000 --dump-dom \
        "file://$release/index.html#localProfilePath=$PWD/load.js" >dom.html 2>chromium.err ||
        { tail chromium.err; fail "chromium"; }
    contains "the page with $1" dom.html "$2"
}
shown net.speedscope.json 'host: live at the peak'
shown trap.speedscope.json 'host: live at the peak'
