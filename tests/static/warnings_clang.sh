# The whole tree compiles without a warning with clang.
. "$ROOT/tests/static/warnings.inc"
compiles clang -O0
