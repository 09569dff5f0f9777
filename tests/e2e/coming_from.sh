# What docs/coming-from.md tells: its commands are there, and the figures that it quotes are those of the programs'
# ledgers and of memprof's own tables.
. "$ROOT/tests/lib.sh"
DOC=$ROOT/docs/coming-from.md

echo 'commands and options'
python3 - "$MEMPROF" "$DOC" <<'END' || fail 'a command of docs/coming-from.md'
import re, subprocess, sys
memprof, doc = sys.argv[1:]
text = open(doc).read()
said = re.findall(r'`(memprof [a-z][^`]*)`', text) + re.findall(r'^\$ (memprof .*)$', text, re.M)
helps, checked = {}, 0
for command in said:
    for part in re.split(r' && |; ', ' '.join(command.split())):
        words = part.split()
        if words[0] != 'memprof' or len(words) < 2:
            continue
        if words[1] not in helps:
            got = subprocess.run([memprof, words[1], '--help'], capture_output=True, text=True)
            helps[words[1]] = set(re.findall(r'--[a-z][a-z-]*', got.stdout)) if got.returncode == 0 else None
        assert helps[words[1]] is not None, 'no such command: ' + part
        for option in re.findall(r' (--[a-z][a-z-]*)', part.split(' python3 ')[0]):
            assert option in helps[words[1]], (option, part)
            checked += 1
assert len(said) > 40 and checked > 25, (len(said), checked)
END

has_modules /usr/bin/python3 torch || skip 'PyTorch is not installed'
export PYTHONDONTWRITEBYTECODE=1
RUN_OPTIONS='--paused --python-module --range step'
record_ok /usr/bin/python3 "$ROOT/tests/programs/coming_from.py" "$PWD/ledger.json"
equal 'MemLord' 'allocated 4.00 MiB' "$(cat run.out)"
contains 'MemLord' "$DOC" 'allocated 4.00 MiB'
"$MEMPROF" lines --file coming_from.py --json >lines.json
"$MEMPROF" lines --func step --file coming_from.py --during 'step#3' --columns \
    allocated_bytes.all.allocated,net.growth --json >step.json
"$MEMPROF" report --every step --json >every.json
for mark in tied hidden share; do
    "$MEMPROF" report --names --at mark:$mark --also-json $mark.json >$mark.txt
done
python3 - "$DOC" <<'END' || fail 'figures'
import json, re, sys
doc = open(sys.argv[1]).read()
load = lambda name: json.load(open(name + '.json'))
ledger = load('ledger')
MIB = 1 << 20

def near(value, bytes, more=60000):  # Python's objects around the tensors
    assert bytes <= value <= bytes + more, (value, bytes)

code = {row['code'].strip(): row for row in load('lines')['lines'] if row['device'] == 'host'}
live = 0
for i, text in enumerate(('linear = torch.nn.Linear(100, 100)', 'linear2 = torch.nn.Linear(100, 100)', 'inner()')):
    near(code[text]['alloc_bytes'], ledger['linear'][i % 2])
    assert text in doc
    # memlab's own two columns: the device's at that line, with what the lines before hold
    live += ledger['linear'][i % 2]
    near(code[text]['active_peak_bytes'], live)
    assert code[text]['reserved_peak_bytes'] >= live

executions = load('every')['executions']
assert [row['nth'] for row in executions] == [1, 2, 3], executions
for row in executions[1:]:
    near(row['net_growth_bytes'], ledger['step'][0])
    near(row['alloc_bytes'], ledger['step'][1])
step = {row['code'].strip(): row for row in load('step')['lines']}
near(step['kept.append(torch.zeros(256, 1024))']['net_growth_bytes'], ledger['step'][0])
near(step['return torch.zeros(512, 1024).sum()']['alloc_bytes'], ledger['step'][1] - ledger['step'][0])

tied = load('tied')
assert tied['named_bytes'] == ledger['tied'], (tied['named_bytes'], ledger['tied'])
named = ledger['tied'] / MIB, tied['named_blocks'], len(tied['names'])
assert 'Named: %.2f MiB in %d blocks, by %d names' % named in doc, named

tensors, both, freed, peak = ledger['account']  # 4 MiB, and 12 with the same as doubles
assert tensors == 4 * MIB
near(freed, both, 200000)
near(peak, both, 200000)

hidden = open('hidden.txt').read()
assert ledger['hidden'] == 2 * MIB and re.search(r'2\.0\d MiB .*hidden', hidden), hidden
assert ledger['share'] == [4 * MIB, 4 * MIB, 1], ledger
# the rows of tables, but for where they were taken
rows = {' '.join(line.split()[:4]) for name in ('tied', 'share') for line in open(name + '.txt')}
for line in doc.splitlines():
    if re.match(r'\s*(moved\.part\d|part\d|[01]\.(weight|bias))', line):
        assert ' '.join(line.split()[:4]) in rows, (line, rows)
END
