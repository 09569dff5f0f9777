# The page of a real program with many stacks and deep recursion: python3.
. "$ROOT/tests/page/page.inc"
cat >work.py <<'EOF'
import json
kept = []
for i in range(24):
    kept.append({str(k): [k] * 5 for k in range(3000)})
    json.loads(json.dumps(kept[-1]))
    if len(kept) > 20:
        kept.pop(0)
EOF
PYTHONMALLOC=malloc
export PYTHONMALLOC
record_ok "$(python3 -c 'import sys; print(sys.executable)')" work.py # not a launcher of it
check_page python3 --events --ended
