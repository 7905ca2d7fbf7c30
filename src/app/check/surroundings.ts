/** Checks what surrounds a mirror: its files, its do-not-contact list, its snapshot and Redis. */
import type { Config } from '../../config/config.ts';
import { renderProblem } from '../../domain/errors.ts';
import { readDoNotContactList } from '../../store/do-not-contact/list-file.ts';
import { proveOwn } from '../../engine/account/account-proof.ts';
import { boundDoNotContactList } from '../../engine/context/do-not-contact-binding.ts';
import { noteDifference } from '../../engine/context/clock-difference.ts';
import type { Platform } from '../../platform/platform.ts';
import { whyNotWritable } from '../../store/database/snapshot-folder.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { accountOf } from '../../compose/assemble-mirror.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Finding, Found } from './finding.ts';

/** Checks whether runs would accept the do-not-contact list and its key. */
export function checkLedger(snapshot: Snapshot | undefined, { ledger }: Config): Found {
  const known = snapshot && boundDoNotContactList(snapshot.meta);
  const { id, close } = readDoNotContactList(ledger, known);
  close();
  const whose = known ? 'belongs to this snapshot' : 'is taken over by the first run';
  return { level: 'ok', found: id === '' ? 'none yet' : `${ledger.path} ${whose}` };
}

/** Returns a failure for each file that a run could not create or write. Creates nothing. */
export function checkPlaces({ snapshot, ledger }: Config): Finding[] {
  const files = [
    ['snapshot', snapshot],
    ['do-not-contact list', ledger.path],
    ['key of the do-not-contact list', ledger.keyFile],
  ] as const;
  const found = files.flatMap(([what, path]): Finding[] => {
    const reason = whyNotWritable(path, { isOnlyRead: path === ledger.keyFile });
    if (reason === undefined) return [];
    const fix = 'let the user who runs this write there, or name another path';
    return [{ what, level: 'fail', found: renderProblem({ reason, fix }), invalidInput: false }];
  });
  // The files usually lie in one folder, which is then named once.
  return found.filter((one, at) => found.findIndex(({ found: text }) => text === one.found) === at);
}

interface Reading {
  config: Config;
  platform: Platform;
  shell: Shell;
}

/** Checks whether the snapshot belongs to the platform, its key and its organization. */
export async function checkSnapshot(
  snapshot: Snapshot,
  { config, platform, shell }: Reading,
): Promise<Found> {
  const account = accountOf(config, platform);
  const how = await proveOwn({ snapshot, account }, shell.stop);
  const proof = how === undefined ? '' : `, by another key of the same organization (${how})`;
  return { level: 'ok', found: `${config.snapshot} belongs to this platform${proof}` };
}

/**
 * Checks Redis. Runs work without it, but a worker waits for it, and waiting jobs must not be
 * dropped.
 */
export async function checkRedis(url: string): Promise<Found> {
  // The module is loaded only if Redis is configured, because loading takes as long as everything
  // else together.
  const { lookAtRedis } = await import('./redis-check.ts');
  const { name, evictsBy } = await lookAtRedis(url);
  if (evictsBy === undefined) return { level: 'ok', found: `${name} answers` };
  const reason =
    `${name} answers, and throws away what waits in it when its memory is full ` +
    `(maxmemory-policy ${evictsBy})`;
  return {
    level: 'note',
    found: renderProblem({ reason, fix: 'set maxmemory-policy noeviction' }),
  };
}

/** Names a large difference between this machine's clock and the platform's. */
export function checkClock(clocks: Parameters<typeof noteDifference>[0]): Finding[] {
  return noteDifference(clocks).map(({ reason, fix }) => {
    return {
      what: 'clock',
      level: 'note',
      found: renderProblem({ reason, fix }),
      invalidInput: false,
    };
  });
}

/** Names the settings that keep people from being changed. */
export function checkSettings({ policy, contacts }: Config): Finding[] {
  if (!contacts) return [];
  const { protect = [] } = contacts;
  const addresses = protect.filter((one) => typeof one === 'string').length;
  const conditions = protect.length - addresses;
  const covered = [
    ...(addresses > 0 ? [counted(addresses, 'address', 'addresses')] : []),
    ...(conditions > 0 ? [counted(conditions, 'condition')] : []),
  ];
  const found: [string, string][] = [];
  if (policy.optIns === 'off') {
    found.push(['policy.optIns', 'off: nobody is created or opted in']);
  }
  if (protect.length > 0) {
    const what = `${covered.join(' and ')}: of these people, only opt-outs that the CRM states are sent`;
    found.push(['contacts.protect', what]);
  }
  if (contacts.sample !== undefined) {
    const few = counted(contacts.sample, 'person', 'people');
    found.push(['contacts.sample', `only ${few} are created or opted in, and nobody is deleted`]);
  }
  return found.map(([what, text]) => ({ what, level: 'note', found: text, invalidInput: false }));
}
