# A Go binary, statically linked: one line, its own status.
need go
cat >main.go <<'END'
package main
import "os"
func main() { os.Exit(21) }
END
HOME=$PWD GOCACHE=$PWD/cache CGO_ENABLED=0 GOFLAGS=-mod=mod go build -o program main.go >log 2>&1 || {
    cat log
    skip "go build does not work here"
}
code=0
"$MEMPROF" run -o out.db -- ./program 2>err || code=$?
equal "status" 21 $code
equal "lines" 1 "$(wc -l <err)"
contains "message" err "memprof: "
[ ! -e out.db ] || fail "a database was left"
