# pytest's tests as ranges, by the fixture that docs/check.md shows: a test that leaks and one that holds too much are
# told from those that do not. Debian's pytest.
. "$ROOT/tests/lib.sh"
/usr/bin/python3 -c 'import pytest' 2>/dev/null || skip 'python3-pytest is not installed'
awk '/^```python/ { inside = 1; next } /^```/ { inside = 0 } inside' "$ROOT/docs/check.md" >conftest.py
at_least 'lines of the fixture' 10 "$(wc -l <conftest.py)"
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
/usr/bin/python3 -m pytest -q -p no:cacheprovider >alone 2>&1 || { cat alone; fail 'without memprof'; }
status=0
"$MEMPROF" check --max-growth-per 'test_it.py::test_leak*=1K' --max-growth-per 'test_it.py::test_twin*=1K' \
    --max-line-total test_it.py:test_large=300K --max-line-total test_it.py:test_twin=64K -q -- \
    /usr/bin/python3 -m pytest -q -p no:cacheprovider >got 2>got.err || status=$?
cat got
equal status 1 $status
contains 'the leak' got 'broken  max-growth-per test_it.py::test_leak*'
grep -q '^  +[0-9.]* KiB (10[0-9],[0-9]\{3\})  test_leak  test_it.py:7' got || fail 'its line'
contains 'its twin' got 'kept    max-growth-per test_it.py::test_twin*'
# 300,000 bytes and their end, less than 307,200; 100,000 and more than 65,536
contains 'the large one' got 'kept    max-line-total test_it.py:test_large'
contains 'too large' got 'broken  max-line-total test_it.py:test_twin'
# a test that fails: pytest's own status
echo 'def test_no(): assert 0' >test_no.py
status=0
"$MEMPROF" check --max-peak 1 -q -- /usr/bin/python3 -m pytest -q -p no:cacheprovider test_no.py >got 2>&1 || status=$?
equal "pytest's status" 1 $status
"$MEMPROF" check --max-peak 1 -q -- /usr/bin/python3 -m pytest -q -p no:cacheprovider test_none.py >got 2>&1 ||
    status=$?
equal "pytest's status without tests" 4 $status
