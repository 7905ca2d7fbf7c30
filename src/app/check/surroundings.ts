/** What `check` finds, and what surrounds a mirror: files, memory, snapshot, and Redis. */
import type { Config } from '../../config/config.ts';
import { refuseLost, withMemory } from '../../store/memory/memory.ts';
import { proveOwn } from '../../engine/account/account-binding.ts';
import { boundMemory } from '../../engine/context/do-not-contact-binding.ts';
import type { Platform } from '../../platform/platform.ts';
import { whyNotWritable } from '../../store/database/snapshot-folder.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { accountOf } from '../../compose/assemble-mirror.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { counted } from '../../domain/values/counted.ts';
import { Interrupted, Invalid, isExpected } from '../../domain/errors.ts';
import { listIgnored } from '../../sources/directory/directory-source.ts';

/** The result of a check. `note` marks what stops no mirror but should be fixed. */
export interface Found {
  level: 'ok' | 'note' | 'fail';
  found: string;
  fix?: string | undefined;
}

export interface Finding extends Found {
  what: string;
  /** Whether the check failed because an input is invalid. */
  invalidInput?: boolean;
}

/** Runs a check. An expected error is a failure. Throws Interrupted, and rethrows bugs. */
export async function look(what: string, at: () => Found | Promise<Found>): Promise<Finding> {
  try {
    return { what, ...(await at()) };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { what, level: 'fail', found: error.message, invalidInput: error instanceof Invalid };
  }
}

/** A problem that stops no mirror. */
export function note(what: string, found: string, fix: string | undefined): Finding {
  return { what, level: 'note', found, fix };
}

/** Checks whether runs would accept the memory and its key. */
export function checkMemory(snapshot: Snapshot | undefined, { memory }: Config): Found {
  const known = snapshot && boundMemory(snapshot.meta);
  const isThere = withMemory(memory, () => true, known) ?? false;
  if (!isThere) refuseLost(memory);
  const whose = known ? 'belongs to this snapshot' : 'is taken over by the first run';
  return { level: 'ok', found: isThere ? `${memory.path} ${whose}` : 'none yet' };
}

/** Returns a failure for each file that a run could not create or write. Creates nothing. */
export function checkPlaces({ snapshot, memory }: Config): Finding[] {
  const files = [
    ['snapshot', snapshot],
    ['memory', memory.path],
    ['key of the memory', memory.keyFile],
  ] as const;
  const found = files.flatMap(([what, path]): Finding[] => {
    const why = whyNotWritable(path, { isOnlyRead: path === memory.keyFile });
    if (why === undefined) return [];
    const fix = 'let the user who runs this write there, or name another path';
    return [{ what, level: 'fail', found: why, fix }];
  });
  // The files usually lie in one folder, which is then named once.
  return found.filter((one, at) => found.findIndex(({ found: text }) => text === one.found) === at);
}

/** Checks whether the snapshot belongs to the platform, its key and its organization. */
export async function checkSnapshot(
  snapshot: Snapshot,
  { config, platform, shell }: { config: Config; platform: Platform; shell: Shell },
): Promise<Found> {
  const account = accountOf(config, platform);
  const how = await proveOwn({ snapshot, account }, shell.stop);
  const proof = how === undefined ? '' : `, by another key of the same organization (${how})`;
  return { level: 'ok', found: `${config.snapshot} belongs to this platform${proof}` };
}

/** Runs work without Redis, but a worker waits for it, and waiting jobs must not be dropped. */
export async function checkRedis(url: string): Promise<Found> {
  // Loading the module takes as long as everything else together.
  const { connectQuickly, evictionPolicyIn } =
    await import('../../compose/queues/redis-connections.ts');
  const quick = connectQuickly(url);
  let info: string;
  try {
    const fix =
      'start it, or correct `redis` in the configuration; Node trusts an authority of your own by ' +
      'NODE_EXTRA_CA_CERTS';
    info = await quick.ask(async () => quick.redis.info(), fix);
  } finally {
    quick.close();
  }
  const read = (name: string): string | undefined =>
    new RegExp(`^${name}:(.+?)\\r?$`, 'm').exec(info)?.[1];
  const valkey = read('valkey_version');
  const server = valkey === undefined ? `Redis ${read('redis_version')}` : `Valkey ${valkey}`;
  const policy = evictionPolicyIn(info);
  if (policy === undefined) return { level: 'ok', found: `${server} answers` };
  const found =
    `${server} answers, and throws away what waits in it when its memory is full ` +
    `(maxmemory-policy ${policy})`;
  return { level: 'note', found, fix: 'set maxmemory-policy noeviction' };
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
  const found: Finding[] = [];
  const add = (what: string, text: string) => found.push({ what, level: 'note', found: text });
  if (policy.optIns === 'off') add('policy.optIns', 'off: nobody is created or opted in');
  if (protect.length > 0) {
    const what = `${covered.join(' and ')}: of these people, only opt-outs that the CRM states are sent`;
    add('contacts.protect', what);
  }
  if (contacts.sample !== undefined) {
    const few = counted(contacts.sample, 'person', 'people');
    add('contacts.sample', `only ${few} are created or opted in, and nobody is deleted`);
  }
  return found;
}

const mostNamed = 3;

/** Returns a sentence about the ignored files, or undefined if there are none. */
export async function ignoredWords({ templates }: Config): Promise<string | undefined> {
  if (templates?.source.type !== 'directory') return undefined;
  const names = await listIgnored(templates.source.path).catch(() => []);
  if (names.length === 0) return undefined;
  const shown = names.slice(0, mostNamed).join(', ');
  const more = names.length > mostNamed ? ' …' : '';
  const files = counted(names.length, 'file');
  return `${files} in the folder of templates ignored (${shown}${more}): a template is .json, .yaml or a folder with template.yaml`;
}
