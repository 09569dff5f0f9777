# pytest's tests as ranges, limits by the marker, figures by the fixture: tests that leak and hold too much are told
# from those that do not, to the byte, with their lines. Debian's pytest.
. "$ROOT/tests/lib.sh"
has_modules /usr/bin/python3 pytest || skip 'python3-pytest is not installed'
cat >test_it.py <<'END'
import pytest

kept = []

@pytest.mark.parametrize("i", range(12))
def test_leak(i):
    kept.append(bytearray(100000))

@pytest.mark.parametrize("i", range(12))
def test_twin(i):
    bytearray(100000)

def test_large():
    bytearray(300000)
END
cat >test_limits.py <<'END'
import unittest

import pytest

kept = []

@pytest.mark.memprof(max_peak="64K", max_allocs=1)
def test_peak():
    two = bytearray(99999), bytearray(99999)

@pytest.mark.memprof(max_leak=99999)
def test_leak():
    kept.append(bytearray(99999))

@pytest.mark.memprof(max_peak="1M")
@pytest.mark.memprof(device="cuda", max_peak=0)
@pytest.mark.memprof(max_leak=0, max_allocs=4, max_allocated=300000)
def test_kept():
    cycle = [bytearray(99999)]
    cycle.append(cycle)
    bytearray(199999)

@pytest.mark.memprof(max_leak=0, max_peak=0, max_allocs=0, max_allocated=0)
def test_nothing():
    pass

@pytest.mark.memprof(max_peak=0)
def test_fails_itself():
    bytearray(99999)
    assert 0

@pytest.mark.memprof(max_peak=0)
@pytest.mark.xfail
def test_expected():
    bytearray(99999)
    assert 0

class Case(unittest.TestCase):
    @pytest.mark.memprof(max_peak="64K")
    def test_method(self):
        bytearray(99999)

def test_fixture(memprof):
    before = memprof.peak()
    block = bytearray(99999)
    known = memprof.allocs() > 0
    assert memprof.leak() - before == (100000 if known else 0)
    del block
    assert (memprof.peak(), memprof.leak()) == ((100000, 0) if known else (0, 0))
    assert memprof.of("cuda").peak() == 0
END
tests() { /usr/bin/python3 -m pytest -q -p no:cacheprovider -p memprof.pytest "$@"; }
PYTHONPATH=$("$MEMPROF" python-path)
export PYTHONPATH

# where nothing records
status=0
tests >alone 2>&1 || status=$?
equal 'without memprof: status' 1 $status
contains 'without memprof: one fails itself' alone '1 failed, 31 passed, 1 xfailed'
contains 'without memprof: what is not checked' alone 'memprof: the limits of 7 tests were not checked: nothing records'

# rules of check
status=0
"$MEMPROF" check --max-growth-per 'test_it.py::test_leak*=1K' --max-growth-per 'test_it.py::test_twin*=1K' \
    --max-line-total test_it.py:test_large=300K --max-line-total test_it.py:test_twin=64K -q -- \
    /usr/bin/python3 -m pytest -q -p no:cacheprovider -p memprof.pytest test_it.py >got 2>got.err || status=$?
cat got
equal status 1 $status
contains 'the leak' got 'broken  max-growth-per test_it.py::test_leak*'
grep -q '^  +[0-9.]* KiB (10[0-9],[0-9]\{3\})  test_leak  test_it.py:7' got || fail 'its line'
contains 'its twin' got 'kept    max-growth-per test_it.py::test_twin*'
# 300,000 bytes and their end, less than 307,200; 100,000 and more than 65,536
contains 'the large one' got 'kept    max-line-total test_it.py:test_large'
contains 'too large' got 'broken  max-line-total test_it.py:test_twin'

# limits: a bytearray takes one byte more than was asked for
status=0
"$MEMPROF" run -q -o limits.db -- /usr/bin/python3 -m pytest -q -p no:cacheprovider -p memprof.pytest test_limits.py \
    >got 2>&1 || status=$?
cat got
equal "pytest's status" 1 $status
contains 'how many' got '4 failed, 3 passed, 1 xfailed'
contains 'a peak' got 'memprof: max_peak host, active bytes at their peak: 195.31 KiB (200,000), at most 64.00 KiB'
contains 'allocations' got 'memprof: max_allocs host, allocations: 2, at most 1'
contains 'its line' got '  +195.31 KiB  test_peak  test_limits.py:9'
contains 'a leak' got 'memprof: max_leak host, bytes that are left: 97.66 KiB (100,000), at most 97.66 KiB (99,999)'
contains 'a method of unittest' got '  +97.66 KiB  Case.test_method  test_limits.py:'
lacks 'none is unchecked' got 'not checked'
equal 'the figures are the recording'\''s' 200000 "$("$MEMPROF" report limits.db --during test_limits.py::test_peak \
    --by line --csv | awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; next }
        $at["function"] == "test_peak" { print $at["alloc_bytes"] }')"

# what is no limit is an error, not a limit that holds
for wrong in 'max_peek="1M"' 'max_peak="1X"' ''; do
    printf 'import pytest\n@pytest.mark.memprof(%s)\ndef test_it(): pass\n' "$wrong" >test_wrong.py
    status=0
    tests test_wrong.py >got 2>&1 || status=$?
    equal "$wrong: status" 4 $status
    contains "$wrong: what is said" got 'ERROR: '
    contains "$wrong: of what" got memprof
done
# a test that fails: pytest's own status
echo 'def test_no(): assert 0' >test_no.py
status=0
"$MEMPROF" check --max-peak 1 -q -- /usr/bin/python3 -m pytest -q -p no:cacheprovider test_no.py >got 2>&1 || status=$?
equal "pytest's status" 1 $status
"$MEMPROF" check --max-peak 1 -q -- /usr/bin/python3 -m pytest -q -p no:cacheprovider test_none.py >got 2>&1 ||
    status=$?
equal "pytest's status without tests" 4 $status
