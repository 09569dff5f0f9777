# The Debian package that `make deb` built (make check-deb): lintian, dependencies, contents; in a fresh Debian from
# debootstrap it is installed, used and purged, and every file of the system is as before. FRESH=TAR keeps that system
# in a tar file and takes it from there; else it is fetched from $MIRROR or Debian's own.
need lintian dpkg-deb
package=$(ls "$BUILD"/deb/memprof_*_amd64.deb 2>/dev/null) || skip "no package; make deb"
version=$(sed -n 's/^VERSION := //p' "$ROOT/Makefile")
field() { dpkg-deb -f "$package" "$1"; }
equal "version" "$version" "$(field Version | sed 's/-.*//')"
lintian --fail-on error,warning "$package" || fail "lintian"
for each in libc6 libdw1 libelf1 libsqlite3-0 libzstd1 zlib1g; do
    case ", $(field Depends)," in *", $each "* | *", $each,"*) ;; *) fail "$each is not among: $(field Depends)" ;; esac
done
dpkg-deb -c "$package" | awk '{ print $6 }' | sed 's|^\./||' | grep -v '/$' | sort >contents
share=usr/share
for file in usr/bin/memprof usr/lib/memprof/libmemprof.so usr/lib/memprof/libmemprof_audit.so \
    usr/lib/memprof/memprof_events.so usr/lib/python3/dist-packages/memprof/__init__.py \
    usr/include/memprof.h usr/include/memprof_plan.h usr/include/memprof_view.h $share/pkgconfig/memprof.pc \
    $share/bash-completion/completions/memprof $share/zsh/site-functions/_memprof \
    $share/fish/vendor_completions.d/memprof.fish $share/doc/memprof/copyright $share/doc/memprof/changelog.gz \
    $share/doc/memprof/changelog.Debian.gz $share/doc/memprof/README.md; do
    grep -qx "$file" contents || fail "$file is not in the package"
done
for page in "$ROOT"/docs/man/*.1; do
    grep -qx "$share/man/man1/$(basename "$page").gz" contents || fail "no $(basename "$page")"
done
for page in "$ROOT"/docs/*.md; do
    grep -qx "$share/doc/memprof/$(basename "$page")" contents || fail "no $(basename "$page")"
done
equal "elsewhere" "" "$(grep -Ev '^usr/(bin/memprof$|lib/memprof/|lib/python3/dist-packages/memprof/|include/memprof)' \
    contents | grep -Ev "^usr/share/(doc/memprof|man/man1|pkgconfig|bash-completion|zsh|fish|lintian)/" || true)"
# what runs inside the program takes from libc what it takes in any build
dpkg-deb -x "$package" unpacked
nm -D --undefined-only unpacked/usr/lib/memprof/libmemprof.so | awk '{ print $2 }' | sed 's/@.*//' | sort -u >undefined
grep -v '^#' "$ROOT/tests/static/undefined.txt" | sed 's/[[:space:]].*//' | sort -u >allowed
equal "undefined symbols" "" "$(comm -23 undefined allowed)"

need debootstrap
[ "$(id -u)" = 0 ] || skip "package built and looked through; debootstrap needs root"
fresh=$PWD/fresh
wanted=$(field Depends | sed 's/([^)]*)//g; s/|[^,]*//g; s/:any//g; s/[[:space:]]//g')
if [ -n "${FRESH:-}" ] && [ -f "$FRESH" ]; then
    mkdir fresh
    tar -C fresh -xf "$FRESH"
else
    debootstrap --variant=minbase --include="$wanted" bookworm "$fresh" "${MIRROR:-http://deb.debian.org/debian}" \
        >debootstrap.log 2>&1 || {
        tail -n 3 debootstrap.log
        skip "package built and looked through; debootstrap does not run here"
    }
    [ -z "${FRESH:-}" ] || tar -C fresh -cf "$FRESH" .
fi
# inside COMMAND...: in the fresh system, with its own /proc, which is gone with the namespace
inside() {
    unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && exec chroot "$@"' "$fresh" "$fresh" \
        env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C HOME=/tmp/home "$@"
}
inside true || skip "package built and looked through; no namespaces here"
# with the names' kinds and what links lead to; without dpkg's and ldconfig's own notes
system() {
    (cd fresh && find . -path ./proc -prune -o -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o \
        -path ./var/cache -prune -o -printf '%p %y %l\n' | sort)
}
system >before
cp "$package" fresh/memprof.deb
inside dpkg -i /memprof.deb >install.log 2>&1 || { cat install.log; fail "dpkg -i"; }
rm fresh/memprof.deb
equal "in the fresh system" "memprof $version" "$(inside memprof --version | head -n 1)"
cp "$SAMPLES/leak" fresh/tmp/leak
inside memprof run -o /tmp/out.db -- /tmp/leak >run.log 2>&1 || { cat run.log; fail "memprof run"; }
cp fresh/tmp/out.db .
equal "recorded" 2001 "$(total alloc_count)"
inside memprof leaks /tmp/out.db >leaks
contains "leaks" leaks "Live at the end: 7.12 KiB in 101 blocks, from 2 stacks."
inside memprof report /tmp/out.db >report
contains "report" report "parse_line"
inside memprof run -o /tmp/py.db --python-module -- python3 -c '
import memprof, sys
sys.exit(0 if memprof.is_recording() else 3)' >run.log 2>&1 || { cat run.log; fail "import memprof, recorded"; }
equal "imported by itself" False "$(inside python3 -c 'import memprof; print(memprof.is_recording())')"
# with the names that its user's cache keeps, which is no file of the package
rm -rf fresh/tmp/leak fresh/tmp/home fresh/tmp/*.db
inside dpkg --purge memprof >purge.log 2>&1 || { cat purge.log; fail "dpkg --purge"; }
lacks "purge" purge.log "not empty"
system >after
diff before after || fail "the purged package leaves something"
