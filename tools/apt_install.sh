#!/usr/bin/env bash
# Install Debian packages, if there is apt-get and we may use it without being asked for a password.

set -euo pipefail

command -v apt-get >/dev/null || exit 1
sudo=()
if [[ $(id -u) -ne 0 ]]; then
    sudo -n true 2>/dev/null || exit 1
    sudo=(sudo -n)
fi

echo "Installing $* with apt-get ..." >&2
"${sudo[@]}" apt-get update -qq || true # an older package list may do
"${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
