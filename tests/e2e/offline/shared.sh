# shellcheck shell=bash
# Sourced by every script here: where results are kept, how progress is told, what is installed.
# A script prints its one result (an image's name, a folder) on standard output, all else on standard error.

cache=${E2E_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tidework-e2e}
mkdir -p "$cache/bin"
PATH=$cache/bin:$PATH

# The Dockerfiles here are plain; the classic builder is in every engine and needs no plugin.
export DOCKER_BUILDKIT=0

say() { printf '%s\n' "$*" >&2; }

fail() {
    say "error: $*"
    exit 1
}

# quietly COMMAND...: shows what a command printed only when it fails
quietly() {
    local log
    log=$(mktemp)
    "$@" >"$log" 2>&1 || { cat "$log" >&2; rm "$log"; return 1; }
    rm "$log"
}

need_root() {
    [ "$(id -u)" = 0 ] || fail "$1 needs root: run it as root, or have a Docker engine that reaches an image registry."
}

# need COMMAND PACKAGE: installs Debian's package where the command is missing
need() {
    command -v "$1" >/dev/null && return
    command -v apt-get >/dev/null || fail "$1 is missing, and so is apt-get to install it with. Install $1 (Debian: $2)."
    [ "$(id -u)" = 0 ] || fail "$1 is missing, and only root may install it: apt-get install $2"
    quietly apt-get update
    # RUNLEVEL: what is installed is not started by the way
    RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive quietly apt-get install -y --no-install-recommends "$2"
    say "installed $2"
}

# digest FILE...: names what is made from these files
digest() { cat "$@" | sha256sum | cut -c1-12; }

image_id() { docker image inspect -f '{{.Id}}' "$1"; }

# build IMAGE DIGEST CONTEXT: `docker build` that reaches packages as this machine does; CONTEXT may be `-`
build() {
    local arguments=() name
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY; do
        [ -z "${!name:-}" ] || arguments+=(--build-arg "$name")
    done
    quietly docker build --network host "${arguments[@]}" --label "$label=$2" -t "$1" "$3"
}

# An image is labelled with the digest of its sources, so that changed sources make a new one, and is
# saved, so that an engine that lost its data gets it back without a build.
label=tidework.e2e.digest
saved() { echo "$cache/${1//[^a-z0-9.]/-}-$2.tar.zst"; }

# have IMAGE DIGEST: true if the engine holds this very image, or can load it
have() {
    local file start=$SECONDS
    file=$(saved "$1" "$2")
    [ "$(docker image inspect -f "{{index .Config.Labels \"$label\"}}" "$1" 2>/dev/null)" = "$2" ] && return
    [ -f "$file" ] || return
    need zstd zstd
    zstd -dcq "$file" | docker load -q >/dev/null || return
    say "loaded $1 in $((SECONDS - start)) s"
}

# keep IMAGE DIGEST: saves the image, in place of those of other digests
keep() {
    local file
    file=$(saved "$1" "$2")
    need zstd zstd
    docker save "$1" | zstd -1qfT0 -o "$file.part"
    rm -f "$cache/${1//[^a-z0-9.]/-}"-*.tar.zst
    mv "$file.part" "$file"
}
