# memprof.policy, on and poll: a policy from Python, functions that poll() calls, their exceptions, and PyTorch's cache.
. "$ROOT/tests/lib.sh"
need python3
P=$ROOT/tests/programs/python_policy.py
RUN_OPTIONS=--python-module
record python3 "$P"
equal 'status' 0 $status
equal 'functions' "False True|True False|raised the second|[('drop', 'host'), ('drop', 'host')]" \
    "$(paste -s -d '|' run.out)"
record python3 "$P" torch
equal "PyTorch's cache" 'True|emptied 1' "$(paste -s -d '|' run.out)"
at_least 'as done' 1 "$(value "SELECT count(*) FROM policy_action WHERE action LIKE 'callback%' AND status = 'done'")"
PYTHONPATH=$ROOT/python python3 -c 'import memprof
print(memprof.policy("host 0-101 active >= 0 mark"), memprof.on("a", print), memprof.poll())' >plain.out
equal 'without memprof' 'False False 0' "$(cat plain.out)"
