import { loadConfig } from '../../../src/config/load-config.ts';
import { systemClock } from '../../../src/http/system-clock.ts';
import { recordOutages } from '../../../src/store/health-file.ts';
import { createMirrorHost } from '../../../src/worker/mirror-host.ts';
import type { HostOptions } from '../../../src/worker/open-mirror.ts';
import { silentShell } from '../commands/mirrored-contacts.ts';

interface HostParts extends Partial<HostOptions> {
  note?: (line: string) => void;
  stop: AbortController;
}

/** Where a worker keeps the mirror of this file, which no other worker wants unless a part does. */
export function hostOf(file: string, { note, stop, ...parts }: HostParts) {
  const load = () => loadConfig(file, {});
  const config = load();
  const { clock = systemClock } = parts;
  const { signal: abort } = new AbortController();
  return createMirrorHost({
    config,
    load,
    shell: { ...silentShell, ...(note && { note }), stop: stop.signal, abort },
    lock: { check: async () => undefined, claim: async () => undefined, keep: async () => true },
    node: { doubts: () => 0, doubted: async () => undefined },
    clock,
    faults: () => [],
    outages: recordOutages(config.snapshot, clock.now),
    ended: () => undefined,
    ...parts,
  });
}
