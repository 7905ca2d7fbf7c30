#!/usr/bin/env node
// The container's HEALTHCHECK. A worker has to respond to a request; any other command counts as
// healthy while it runs. By default, it checks process 1 and the worker's usual port.
import { readFileSync } from 'node:fs';

const [cmdline = '/proc/1/cmdline', url = 'http://127.0.0.1:8080/healthz'] = process.argv.slice(2);

if (readFileSync(cmdline, 'utf8').split('\0').includes('worker')) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch(() => undefined);
  process.exitCode = answer?.ok ? 0 : 1;
}
