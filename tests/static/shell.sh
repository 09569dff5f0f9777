# Scripts: no errors by shellcheck.
need shellcheck
cd "$ROOT"
shellcheck -s sh -S error tools/deps tools/demo tools/embed.sh demo check .ci/run tests/run.sh tests/bench/*.sh
