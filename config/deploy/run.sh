#!/bin/sh
# Runs crm-mirror from cron: `run.sh sync --fast`. Everything goes to a log. Only problems are
# printed, which cron mails: 0 is done, and 75 that another run is in progress or the mirror paused.
dir=${CRM_MIRROR_DIR:-/etc/crm-mirror}
set -a
. "$dir/env" || exit
set +a
cd "${CRM_MIRROR_STATE:-/var/lib/crm-mirror}" || exit
umask 077
out=$(mktemp) || exit
trap 'rm -f "$out"' EXIT
crm-mirror "$@" -c "$dir/mirror.yaml" > "$out" 2>&1
code=$?
cat "$out" >> crm-mirror.log
[ $code -eq 0 ] || [ $code -eq 75 ] || { echo "exit code $code"; cat "$out"; }
exit $code
