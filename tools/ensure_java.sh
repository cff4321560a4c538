#!/usr/bin/env bash
# See to it that Spark will find Java 17 or later: install it where that can be done, else say how.

set -euo pipefail
cd "$(dirname "$0")/.."

# As Spark does: JAVA_HOME wins over the PATH.
java=${JAVA_HOME:+$JAVA_HOME/bin/}java

has_java() {
    local major
    # Java 8 calls itself 1.8, so its "major" is 1.
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1) || true
    [[ ${major:-0} -ge 17 ]]
}

has_java && exit
if [[ -z ${JAVA_HOME:-} ]]; then
    tools/apt_install.sh openjdk-17-jre-headless || tools/apt_install.sh default-jre-headless || true
    has_java && exit
    echo "Spark needs Java 17 or later, and there is none on the PATH." >&2
    echo "Install it (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17)" >&2
    echo "or set JAVA_HOME to where it is." >&2
else
    echo "Spark needs Java 17 or later, and JAVA_HOME=$JAVA_HOME is not that: unset it or change it." >&2
fi
exit 1
