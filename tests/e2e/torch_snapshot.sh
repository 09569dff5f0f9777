# run --torch-snapshot: PyTorch records its own history, which is imported and compared with ours block by block. With a
# stand-in for torch whose allocator reports through libc10 as the real one does.
need python3
FAKE_TORCH=$BUILD/torch/3
PYTHONPATH=$PWD/site:$ROOT/tests/torch/fake
PYTHONDONTWRITEBYTECODE=1
TMPDIR=$PWD/tmp
export FAKE_TORCH PYTHONPATH PYTHONDONTWRITEBYTECODE TMPDIR
mkdir tmp site
# somebody's own, which must run too
cat >site/sitecustomize.py <<'EOF'
import sys
sys.was_here = True
EOF
cat >train.py <<'EOF'
import os, sys
assert sys.was_here and sys.modules['sitecustomize'].__file__.endswith('site/sitecustomize.py')
import torch
def forward(n):
    return [torch.empty(1000 * i, i % 2) for i in range(1, n)]
kept = []
for step in range(5):
    tensors = forward(20)
    kept.append(tensors[3])
    del tensors
print('done')
sys.exit(int(os.environ.get('STATUS', 0)))
EOF
python=$(python3 -c 'import sys; print(sys.executable)')
status=0
"$MEMPROF" run --torch-snapshot -o out.db -- "$python" train.py >out 2>err || status=$?
equal 'status' 0 $status
equal 'output' 'done' "$(cat out)"
# 5 steps of 19 tensors; all but one of each step are freed before the snapshot
contains 'agreement' err \
    '95 allocations and 90 frees agree, block by block (5 of ours came after it); it is in out-torch.db'
contains 'kept in the file' /dev/stdin 'agree, block by block' <<EOF
$(sql "SELECT value FROM meta WHERE key = 'torch_check'")
EOF
equal 'ours: by forward' 95 \
    "$(value "SELECT sum(alloc_count) FROM v_function
    WHERE function = 'forward' AND inclusive = 1 AND device LIKE 'cuda:%' AND kind = 'sub'")"
equal 'theirs: by forward' 95 \
    "$(DB=out-torch.db value \
    "SELECT sum(alloc_count) FROM v_function
    WHERE function = 'forward' AND inclusive = 1 AND device LIKE 'cuda:%' AND kind = 'sub'")"
equal 'theirs: tensors at the end' "$((5 * 4000))" \
    "$(DB=out-torch.db value "SELECT sum(end_active_bytes) FROM v_total WHERE kind = 'all'")"
equal 'nothing is left in TMPDIR' '' "$(ls -A tmp)"

# the program's status stays its own
status=0
STATUS=7 "$MEMPROF" run -q --torch-snapshot -o out.db -- "$python" train.py >out 2>err || status=$?
equal 'status 7' 7 $status
equal 'quiet' '' "$(cat err)"

# a history that is not ours is noticed, and the first difference named
FAKE_TORCH_LIES=1 "$MEMPROF" run --torch-snapshot -o out.db -- "$python" train.py >out 2>err
contains 'a difference' err "do not; the first is number 13 of ours: an allocation at 0x"
# what fails in PyTorch is said, and fails nothing
FAKE_TORCH_FAILS=1 "$MEMPROF" run --torch-snapshot -o out.db -- "$python" train.py >out 2>err
equal 'output in spite of it' 'done' "$(cat out)"
contains 'a failure' err 'recording its history: RuntimeError: no history today'
# no torch
"$MEMPROF" run --torch-snapshot -o out.db -- "$python" -c 'print(1)' >out 2>err
contains 'nobody wrote one' err 'none imported torch and used CUDA'
# a child's fork does not write for its parent; children that import torch themselves have their own
cat >family.py <<'EOF'
import os, subprocess, sys
import torch
a = torch.empty(5000)
if os.fork() == 0:
    sys.exit(0)
os.wait()
subprocess.run([sys.executable, 'train.py'], check=True)
EOF
"$MEMPROF" run --torch-snapshot -o out.db -- "$python" family.py >out 2>err
equal 'processes with a history' 2 "$(grep -c 'agree, block by block' err)"
equal 'files' 2 "$(find . -maxdepth 1 -name 'out-torch*.db' | wc -l)"
for bad in --aggregate '--max-events 10'; do
    status=0
    # shellcheck disable=SC2086
    "$MEMPROF" run --torch-snapshot $bad true 2>err || status=$?
    equal "with $bad" 2 $status
done
