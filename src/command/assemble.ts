/**
 * From a configuration to a mirror that can run: the one place where everything is put together.
 */
import { existsSync } from 'node:fs';
import type { Config } from '../config/config.ts';
import { contactKind } from '../kind/contact/contact.ts';
import { templateKind } from '../kind/template/template.ts';
import { createPlatform, type ConnectedPlatform, type Platform } from '../platform/platform.ts';
import { takeLease, type Lease } from '../snapshot/lease.ts';
import { openSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import { Invalid } from '../model/errors.ts';
import { csvSource } from '../source/csv/csv.ts';
import { directorySource } from '../source/directory/directory.ts';
import type { Mirror, MirrorPart } from '../sync/mirror.ts';
import { refusePaused } from './paused.ts';
import type { Shell } from './shell.ts';
import { systemClock } from '../http/time.ts';

/** The most a page may hold, then less: what fell on a page border stands elsewhere. */
const pageSizes = [100, 83];

/** The platform of a configuration, over the network. */
export function connect(config: Config, shell: Shell): ConnectedPlatform {
  const { url, apiKey, timeoutMs, reserve } = config.platform;
  return createPlatform({ url, apiKey, timeoutMs, reserve, signal: shell.abort });
}

/**
 * `writes`: takes the lease, and makes the snapshot when there is none; else neither, and without a
 * snapshot an empty one in memory stands in. Close it when done. Throws Busy, Invalid.
 */
export function assemble(
  config: Config,
  shell: Shell,
  { writes }: { writes: boolean },
): { mirror: Mirror; close(): Promise<void> } {
  const snapshot = openSnapshot(config.snapshot, {
    inMemory: !writes && !existsSync(config.snapshot),
  });
  const lease = hold(snapshot, config, writes);
  const platform = connect(config, shell);
  const mirror: Mirror = {
    name: config.mirror,
    parts: partsOf(config, platform),
    snapshot,
    clock: systemClock,
    random: Math.random,
    timeoutMs: config.platform.timeoutMs,
    pageSizes,
    keepMs: config.keepMs,
    guards: { delete: config.guards.deletes, opt_in: config.guards.optIns },
    requests: platform.requests,
  };
  return {
    mirror,
    close: async () => {
      snapshot.close();
      lease?.release();
      await platform.close();
    },
  };
}

/** Everything that may be in the way of a run is asked here; what was opened is closed then. */
function hold(snapshot: Snapshot, config: Config, writes: boolean): Lease | undefined {
  let lease: Lease | undefined;
  try {
    lease = writes ? takeLease(config.snapshot) : undefined;
    if (writes) refusePaused(snapshot.meta, config);
    bind(snapshot, config, writes);
    return lease;
  } catch (error) {
    snapshot.close();
    lease?.release();
    throw error;
  }
}

/**
 * What is recorded holds for one platform: an opt-out that was ours there may be the person's own
 * elsewhere. A snapshot without records binds freely.
 */
function bind(snapshot: Snapshot, { snapshot: file, platform }: Config, writes: boolean): void {
  const bound = snapshot.meta.get('platform-url');
  const isFree = bound === undefined || snapshot.recorded.isEmpty();
  if (isFree && writes && bound !== platform.url)
    snapshot.transaction(() => snapshot.meta.set('platform-url', platform.url));
  if (isFree || bound === platform.url) return;
  throw new Invalid(
    `${file}: this snapshot belongs to the platform at ${bound}, the configuration names ` +
      `${platform.url} → correct platform.url, or name another snapshot to begin anew`,
  );
}

export function partsOf(config: Config, platform: Platform): MirrorPart[] {
  const { contacts, templates, policy, guards } = config;
  const parts: MirrorPart[] = [];
  if (contacts) {
    const absence = { ...guards, deletes: policy.deletes };
    const kind = contactKind({ fields: contacts, policy, absence, platform: platform.contacts });
    parts.push({ kind, source: csvSource(contacts.source, { clock: systemClock }) });
  }
  if (templates) {
    const kind = templateKind({ policy, platform: platform.templates });
    parts.push({ kind, source: directorySource(templates.source) });
  }
  return parts;
}
