# A release says one version everywhere. The pipelines of samples/ci are YAML, and their `memprof check` works.
version=$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")
equal "debian/changelog" "memprof ($version-1)" "$(head -n 1 "$ROOT/debian/changelog" | cut -d ' ' -f 1,2)"
equal "CHANGELOG.md" "$version" "$(sed -n 's/^## \([0-9.]*\).*/\1/p' "$ROOT/CHANGELOG.md" | head -n 1)"
equal "memprof --version" "memprof $version" "$("$MEMPROF" --version | head -n 1)"
/usr/bin/python3 -c 'import yaml' 2>/dev/null || skip "python3-yaml is not installed"
/usr/bin/python3 - "$ROOT/samples/ci" <<'END' || fail "samples/ci"
import sys, yaml
github = yaml.safe_load(open(sys.argv[1] + "/github.yml"))
gitlab = yaml.safe_load(open(sys.argv[1] + "/gitlab.yml"))
steps = github["jobs"]["memory"]["steps"]
runs = [step["run"] for step in steps if "run" in step]
for name, lines in ("github", runs), ("gitlab", gitlab["memory"]["script"]):
    check, = [line for line in lines if line.startswith("memprof check ")]
    open(name, "w").write(check + "\n")
    if name == "gitlab":
        lines = gitlab["memory"]["before_script"] + lines
    open(name + ".all", "w").write("\n".join(lines).replace("${{ vars.MEMPROF_DEB }}", "$MEMPROF_DEB") + "\n")
assert gitlab["memory"]["artifacts"]["reports"]["junit"] == "memory.xml"
END
mkdir bin tests
ln -s "$MEMPROF" bin/memprof
ln -s "$SAMPLES/leak" app
PATH=$PWD/bin:$PATH
for name in github gitlab; do # samples/leak leaves 7,296 bytes
    echo 'max-leak 7296' >tests/memory.txt
    sh ./$name >said 2>&1 || { cat said; fail "$name: a rule that is kept"; }
    echo 'max-leak 7295' >tests/memory.txt
    status=0
    sh ./$name >said 2>&1 || status=$?
    equal "$name: a rule that is broken" 1 $status
    contains "$name" memory.xml "<failure"
    [ $name = gitlab ] || contains "$name" said "::error "
done

# and all of their commands, word for word, in an empty directory; what would install is written down instead
printf '#!/bin/sh\necho "${0##*/} $*" >>"$CALLS"\n' >bin/apt-get
cp bin/apt-get bin/curl
chmod +x bin/apt-get bin/curl
export CALLS="$PWD/calls" MEMPROF_DEB=https://packages.invalid/memprof.deb
for name in github gitlab; do
    mkdir "$name.dir" "$name.dir/tests" && : >calls
    cp tests/memory.txt "$name.dir/tests" && : >"$name.dir/tests/input"
    echo 'max-leak 7296' >"$name.dir/tests/memory.txt"
    printf 'app:\n\tcp %s app\n' "$SAMPLES/leak" >"$name.dir/Makefile"
    (cd "$name.dir" && sh -e "../$name.all" >../said 2>&1) || { cat said; fail "the commands of $name"; }
    equal "$name installs" "apt-get update
apt-get install -qy --no-install-recommends gcc libc6-dev make curl ca-certificates
curl -fsSLo /tmp/memprof.deb $MEMPROF_DEB
apt-get install -qy --no-install-recommends /tmp/memprof.deb" "$(cat calls)"
    [ -s "$name.dir/memory.xml" ] && [ -s "$name.dir/out.db" ] || fail "$name: what it keeps is not there"
done
