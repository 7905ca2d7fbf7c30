/**
 * From a configuration to a mirror that can run: the one place where everything is put together.
 */
import type { Config } from '../config/config.ts';
import { contactKind } from '../kind/contact/contact.ts';
import { templateKind } from '../kind/template/template.ts';
import { createPlatform, type ConnectedPlatform, type Platform } from '../platform/platform.ts';
import { takeLease, type Lease } from '../snapshot/lease.ts';
import { isDamage, setAside } from '../snapshot/damage.ts';
import { lookInto, openForRun, openSnapshot, type Snapshot } from '../snapshot/snapshot.ts';
import { csvSource } from '../source/csv/csv.ts';
import { directorySource } from '../source/directory/directory.ts';
import type { Account, Mirror, MirrorPart } from '../sync/mirror.ts';
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
 * `writes`: takes the lease, and makes the snapshot when there is none; else neither: the snapshot
 * is only looked into, and without one an empty one in memory stands in. One that is damaged is set
 * aside where it `writes`, and said at once; else it is Invalid. Close it when done, and say what
 * went wrong: what turns out to be damaged only then is set aside as well. Throws Busy, Invalid.
 */
export function assemble(
  config: Config,
  shell: Shell,
  { writes }: { writes: boolean },
): { mirror: Mirror; platform: Platform; close(failure?: unknown): Promise<void> } {
  const { snapshot, lease, notes } = writes ? hold(config) : lookOn(config);
  for (const note of notes) shell.note(`crm-mirror: ${note}`);
  const platform = connect(config, shell);
  const mirror: Mirror = {
    name: config.mirror,
    parts: partsOf(config, platform),
    snapshot,
    account: accountOf(config, platform),
    notes,
    clock: systemClock,
    random: Math.random,
    timeoutMs: config.platform.timeoutMs,
    pageSizes,
    keepMs: config.keepMs,
    requests: platform.requests,
  };
  return {
    mirror,
    platform,
    close: async (failure) => {
      snapshot.close();
      if (lease && isDamage(failure)) {
        const aside = setAside(config.snapshot, systemClock.now());
        shell.note(`crm-mirror: ${sayAside(config.snapshot, aside)} → run again: that begins anew`);
      }
      lease?.release();
      await platform.close();
    },
  };
}

interface Opened {
  snapshot: Snapshot;
  lease?: Lease;
  notes: string[];
}

/** Everything that may be in the way of a run is asked here; what was opened is closed then. */
function hold(config: Config): Opened {
  const lease = takeLease(config.snapshot);
  try {
    const admit = ({ meta }: Snapshot) => refusePaused(meta, config);
    const { snapshot, aside } = openForRun(config.snapshot, { at: systemClock.now(), admit });
    snapshot.fence();
    const anew =
      'this run begins anew: it adopts and records who is there, as a first run does → keep that file until all is well';
    const notes = aside === undefined ? [] : [`${sayAside(config.snapshot, aside)}; ${anew}`];
    return { snapshot, lease, notes };
  } catch (error) {
    lease.release();
    throw error;
  }
}

function lookOn({ snapshot: path }: Config): Opened {
  return { snapshot: lookInto(path) ?? openSnapshot(path, { inMemory: true }), notes: [] };
}

function sayAside(path: string, aside: string): string {
  return `${path}: the snapshot was damaged and is set aside as ${aside}`;
}

/** Whose records are kept equal, for the snapshot to belong to. */
export function accountOf({ platform: { url, apiKey } }: Config, platform: Platform): Account {
  return { url, apiKey, platform };
}

export function partsOf({ contacts, templates, policy }: Config, platform: Platform): MirrorPart[] {
  const parts: MirrorPart[] = [];
  if (contacts) {
    const kind = contactKind({ fields: contacts, policy, platform: platform.contacts });
    parts.push({ kind, source: csvSource(contacts.source, { clock: systemClock }) });
  }
  if (templates) {
    const kind = templateKind({ policy, platform: platform.templates });
    parts.push({ kind, source: directorySource(templates.source) });
  }
  return parts;
}
