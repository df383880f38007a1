# shellcheck shell=bash
# Sourced after shared.sh: the versions that go.mod pins, and the Go that it asks for.
node=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# pinned MODULE: its version
pinned() { sed -n "s,^[[:space:]]*$1 \(v[0-9.]*\).*,\1,p" "$node/go.mod"; }

kubernetes=$(pinned k8s.io/kubernetes)
kubernetes_minor=${kubernetes#v1.}
kubernetes_minor=${kubernetes_minor%.*}

need_go() {
    local wanted
    wanted=$(sed -n 's/^go //p' "$node/go.mod")
    command -v go >/dev/null ||
        fail "go is missing: without an image registry the cluster's programs are built here. Install Go $wanted or later and put it on the PATH."
    # an older one can't read the file, unless it may bring a newer one by itself
    env -C "$node" GOWORK=off go list -m >/dev/null 2>&1 ||
        fail "Go $wanted or later is needed to build the cluster's programs; this is $(go version)."
}
