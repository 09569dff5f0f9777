# The page of a real program with many stacks and deep recursion: python3.
. "$ROOT/tests/page/page.inc"
cat >work.py <<'EOF'
import json
kept = []
for i in range(8):
    kept.append({str(k): [k] * 5 for k in range(3000)})
    json.loads(json.dumps(kept[-1]))
    if len(kept) > 6:
        kept.pop(0)
EOF
PYTHONMALLOC=malloc
export PYTHONMALLOC
record_ok "$(python3 -c 'import sys; print(sys.executable)')" work.py # not a launcher of it
check_page python3 --events --ended --hands

# The child's end is one of several; what the interpreter freed is most of what lies between.
cat >>work.py <<'EOF'
import subprocess
subprocess.run(["./child"], check=True)
EOF
cat >child.c <<'EOF'
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
    memset(malloc(100000), 1, 100000);
    usleep(30000);
    return 0;
}
EOF
"$CC" -g -O1 -fno-builtin -o child child.c
record_ok "$(python3 -c 'import sys; print(sys.executable)')" work.py
check_page child --basic --child
