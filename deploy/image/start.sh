#!/bin/sh
# Entry point of the image. With MEMWATCH_ON_FAILURE=stay the container outlives its exporter:
# Kubernetes takes a pod out of its Services while a container of it restarts, so an exporter that
# ends is started again in its container.

# The heap gets half of the container's memory: V8 would let it grow past a container of 256 MiB or
# less, and a kill by the kernel says nothing about its cause.
# A sidecar watches few targets and is paid for in every pod: V8 keeps its memory small there, for
# some more CPU. docs/decisions/0059-v8-flags-are-set-at-start.md
command=$1
set -- "${0%/*}/cli/memwatch.js" "$@"
if [ -z "$MEMWATCH_SOCKET_DIR" ]; then
  set -- node --max-old-space-size-percentage=50 --max-semi-space-size=1 --optimize-for-size "$@"
else
  set -- node --max-old-space-size-percentage=50 "$@"
fi

# Other commands, as install-agent, are there to end.
[ "$MEMWATCH_ON_FAILURE" = stay ] && [ "$command" = exporter ] || exec "$@"

stopping= child= pause=1
trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

while [ -z "$stopping" ]; do
  began=$(date +%s)
  "$@" &
  child=$!
  # The signal may have come before there was a child to pass it on to.
  [ -z "$stopping" ] || kill -TERM "$child" 2>/dev/null
  wait "$child"
  status=$?
  # A signal ends that wait early.
  [ -z "$stopping" ] || { wait "$child" 2>/dev/null; break; }
  [ $(($(date +%s) - began)) -lt 60 ] || pause=1
  echo "memwatch: the exporter ended with status $status; it is started again in $pause s" >&2
  sleep "$pause" &
  child=$!
  wait "$child"
  pause=$((pause < 16 ? pause * 2 : 16))
done
exit 0
