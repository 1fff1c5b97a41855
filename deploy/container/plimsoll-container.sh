#!/bin/sh
# Run plimsoll in a container whose one writable folder is a volume, PLIMSOLL_VOLUME_HOME.
set -eu

volume=${PLIMSOLL_VOLUME_HOME:-/mnt/plimsoll}
if ! { mkdir -p "$volume/tmp" && [ -w "$volume/tmp" ]; } 2>/dev/null; then
  echo "plimsoll: cannot write to $volume; mount a volume there that user $(id -u) may write to" >&2
  exit 2
fi
export PLIMSOLL_STATE_DIR="${PLIMSOLL_STATE_DIR:-$volume/state}" HOME="$volume"
# Neither Python nor Java writes to /tmp, which may be a few MiB of memory, or read-only.
export TMPDIR="$volume/tmp"
export JDK_JAVA_OPTIONS="-Djava.io.tmpdir=$TMPDIR -XX:-UsePerfData${JDK_JAVA_OPTIONS:+ $JDK_JAVA_OPTIONS}"
exec plimsoll "$@"
