#!/usr/bin/env bash
# See to it that the tests of the console find a browser: install it where that can be done. Where it
# cannot, they are skipped, and say why.

set -euo pipefail
cd "$(dirname "$0")/.."

has_browser() {
    command -v chromium >/dev/null && command -v chromedriver >/dev/null
}

has_browser && exit
tools/apt_install.sh chromium chromium-driver || true
has_browser && exit
echo "There is no Chromium with its driver: tests of the console in a browser are skipped." >&2
echo "Install both (Debian: apt install chromium chromium-driver)." >&2
