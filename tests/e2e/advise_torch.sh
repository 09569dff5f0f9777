# memprof advise of an imported snapshot of PyTorch: what its caching allocator rounds up to 512 bytes at the peak. The
# mended one has the same bytes in one tensor.
need python3
cat >make.py <<'END'
import random
import sys
sys.path.insert(0, sys.argv[1])
import make_snapshot as m
device = m.Device(0, random.Random(1))
frames = [{'name': 'small', 'filename': '/srv/train/small.py', 'line': 7}]
many = [100] * 3000 if sys.argv[2] == 'many' else [300000]
blocks = [device.alloc(size, frames) for size in many]
device.release(device.alloc(700000, [{'name': 'other', 'filename': '/srv/train/other.py', 'line': 9}]), frames)
for block in blocks:
    device.release(block, frames)
with open('s.pickle', 'wb') as out:
    m.dump({'segments': device.final(), 'device_traces': [device.trace], 'allocator_settings': m.SETTINGS,
            'external_annotations': []}, out, 4, False)
END
advise() {
    rm -f out.db
    python3 make.py "$ROOT/tests/torch" "$1" && "$MEMPROF" import -q s.pickle -o out.db || fail "$1: import"
    "$MEMPROF" advise out.db --json >advise.json
    sqlite3 :memory: "SELECT json_extract(value, '\$.rule'), json_extract(value, '\$.function'),
        json_extract(value, '\$.line'), json_extract(value, '\$.saved_bytes'), json_extract(value, '\$.saved_of'),
        json_extract(value, '\$.peak_bytes') FROM json_each(readfile('advise.json'), '\$.findings')
        WHERE json_extract(value, '\$.rule') = 'waste'"
}
# 3,000 of 100 bytes take 512 each; 700,000 more make the peak
equal "3,000 small tensors" "waste|small|7|$((3000 * 412))|beside|1000000" "$(advise many)"
equal "one large one" "" "$(advise one)"
