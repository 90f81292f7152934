#!/bin/sh
# Entry point of the image. With MEMWATCH_ON_FAILURE=stay this script restarts an exporter that
# ends, and the container keeps running. Kubernetes removes a pod from its Services while one of its
# containers restarts.

# The heap limit is half of the container's memory. With its default limit, V8 lets the heap outgrow
# a container of 256 MiB or less, and a kill by the kernel leaves no message.
# Each pod pays for its sidecar, which watches few targets. Its flags therefore save memory, at the
# cost of some CPU: docs/decisions/0059-v8-flags-are-set-at-start.md
command=$1
set -- "${0%/*}/cli/memwatch.js" "$@"
if [ -z "$MEMWATCH_SOCKET_DIR" ]; then
  set -- node --max-old-space-size-percentage=50 --max-semi-space-size=1 --optimize-for-size "$@"
else
  set -- node --max-old-space-size-percentage=50 "$@"
fi

# Other commands, such as install-agent, are expected to end.
[ "$MEMWATCH_ON_FAILURE" = stay ] && [ "$command" = exporter ] || exec "$@"

stopping= child= pause=1
trap 'stopping=1; [ -z "$child" ] || kill -TERM "$child" 2>/dev/null' TERM INT

while [ -z "$stopping" ]; do
  began=$(date +%s)
  "$@" &
  child=$!
  # A signal may have arrived before the child existed.
  [ -z "$stopping" ] || kill -TERM "$child" 2>/dev/null
  wait "$child"
  status=$?
  # A signal ends the first wait before the child has ended.
  [ -z "$stopping" ] || { wait "$child" 2>/dev/null; break; }
  [ $(($(date +%s) - began)) -lt 60 ] || pause=1
  echo "memwatch: the exporter ended with status $status; it is started again in $pause s" >&2
  sleep "$pause" &
  child=$!
  wait "$child"
  pause=$((pause < 16 ? pause * 2 : 16))
done
exit 0
