#!/usr/bin/env node
// Whether what runs in this container is well, for HEALTHCHECK. A worker has to answer; any other
// command is well for as long as it runs. By default asked of process 1 and the port that is usual.
import { readFileSync } from 'node:fs';

const [cmdline = '/proc/1/cmdline', url = 'http://127.0.0.1:8080/healthz'] = process.argv.slice(2);

if (readFileSync(cmdline, 'utf8').split('\0').includes('worker')) {
  const answer = await fetch(url, { signal: AbortSignal.timeout(4_000) }).catch(() => undefined);
  process.exitCode = answer?.ok ? 0 : 1;
}
