import type { Command } from 'commander';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { Interrupted, Invalid, isExpected, renderProblem } from '../domain/errors.ts';
import type { DesiredRow } from '../domain/record.ts';
import {
  countUnknown,
  sayUnknown,
  type UnknownCount,
  type UnknownWords,
} from '../domain/unknown-words.ts';
import type { MirrorPart } from '../engine/context/mirror-context.ts';
import type { Platform } from '../platform/platform.ts';
import { readDoNotContactList } from '../do-not-contact/list-file.ts';
import { lookInto, type Snapshot } from '../snapshot/snapshot.ts';
import { proveOwn } from '../engine/account/account-proof.ts';
import { boundDoNotContactList } from '../engine/context/do-not-contact-binding.ts';
import { refuseEmpty } from '../engine/read/source-read.ts';
import { accountOf, connect, partsOf } from '../cli/compose/assemble-mirror.ts';
import { countSender, lookAtSenders, type Senders } from '../cli/status/sender-domains.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import { type LookFlags, lookOptions } from '../cli/lookup/snapshot-command.ts';
import { contactReturns } from '../cli/compose/source-registry.ts';
import { exitCode } from '../cli/output/exit-codes.ts';

/** Declares the flags of `check`. */
export function options(command: Command): void {
  lookOptions(command).option(
    '--addresses',
    'show values of the CRM also where stdout is no terminal',
  );
}

/** A check and its result. `note` marks a finding that stops no mirror but should be fixed. */
interface Finding {
  what: string;
  level: 'ok' | 'note' | 'fail';
  found: string;
  invalidInput: boolean;
}

const marks = { ok: 'ok  ', note: 'NOTE', fail: 'FAIL' };

/**
 * Validates the configuration, then reads both sides without writing anything. The exit code is 2
 * if an input is invalid, and 1 if anything else failed.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<LookFlags>();
  const config = loadConfig(flags.config, shell.env);
  const snapshot = lookInto(config.snapshot);
  const platform = connect(config, shell);
  const findings: Finding[] = [
    { what: 'configuration', level: 'ok', found: `${config.file} is valid`, invalidInput: false },
  ];
  const senders: Senders = new Map();
  try {
    findings.push(await look('ledger', async () => readLedger(snapshot, config)));
    if (snapshot)
      findings.push(
        await look('snapshot', () => readSnapshot(snapshot, { config, platform, shell })),
      );
    for (const part of partsOf(config, platform)) {
      const read = { senders, unknown: countUnknown(), snapshot };
      findings.push(
        await look(`source of ${part.type.name}s`, () => readSource(part, read, shell)),
        ...read.unknown
          .words()
          .map((words) => tellUnknown(words, flags.addresses ?? shell.terminal)),
        await look(`platform's ${part.type.name}s`, () => readPlatform(part, config, shell)),
      );
    }
    const { redis } = config;
    if (redis !== undefined) findings.push(await look('Redis', () => readRedis(redis)));
    const returns = config.contacts && contactReturns(config.contacts);
    if (returns) {
      findings.push(await look('who left', async () => ({ level: 'ok', found: returns.look() })));
    }
    for (const { good, ...seen } of await lookAtSenders(senders, platform.domains, shell.stop))
      findings.push({ ...seen, level: good ? 'ok' : 'note', invalidInput: false });
  } finally {
    snapshot?.close();
    await platform.close();
  }
  const ok = findings.every(({ level }) => level !== 'fail');
  if (flags.json) {
    const shown = findings.map(({ what, level, found }) => {
      return { what, ok: level !== 'fail', level, found };
    });
    shell.print(JSON.stringify({ mirror: config.mirror, ok, findings: shown }, null, 2));
  } else
    for (const { what, level, found } of findings) shell.print(`${marks[level]} ${what}: ${found}`);
  if (ok) return exitCode('done');
  return exitCode(findings.some((finding) => finding.invalidInput) ? 'invalid' : 'failed');
}

type Found = Pick<Finding, 'level' | 'found'>;

async function look(what: string, at: () => Promise<Found>): Promise<Finding> {
  try {
    return { what, ...(await at()), invalidInput: false };
  } catch (error) {
    if (!isExpected(error) || error instanceof Interrupted) throw error;
    return { what, level: 'fail', found: error.message, invalidInput: error instanceof Invalid };
  }
}

/**
 * Checks Redis. Runs work without it, but a worker waits for it, and waiting jobs must not be
 * dropped.
 */
async function readRedis(url: string): Promise<Found> {
  // The module is loaded only if Redis is configured, because loading takes as long as everything
  // else together.
  const { lookAtRedis } = await import('../worker/queues/redis-check.ts');
  const { name, evictsBy } = await lookAtRedis(url);
  if (evictsBy === undefined) return { level: 'ok', found: `${name} answers` };
  return {
    level: 'note',
    found: renderProblem({
      reason:
        `${name} answers, and throws away what waits in it when its memory is full ` +
        `(maxmemory-policy ${evictsBy})`,
      fix: 'set maxmemory-policy noeviction',
    }),
  };
}

interface Reading {
  config: Config;
  platform: Platform;
  shell: Shell;
}

/** Checks whether runs would accept the do-not-contact list and its key. */
function readLedger(snapshot: Snapshot | undefined, { ledger }: Config): Found {
  const known = snapshot && boundDoNotContactList(snapshot.meta);
  const { id, close } = readDoNotContactList(ledger, known);
  close();
  const whose = known ? 'belongs to this snapshot' : 'is taken over by the first run';
  return { level: 'ok', found: id === '' ? 'none yet' : `${ledger.path} ${whose}` };
}

/** Checks whether the snapshot belongs to the platform, its key and its organization. */
async function readSnapshot(
  snapshot: Snapshot,
  { config, platform, shell }: Reading,
): Promise<Found> {
  const account = accountOf(config, platform);
  const how = await proveOwn({ snapshot, account }, shell.stop);
  const proof = how === undefined ? '' : `, by another key of the same organization (${how})`;
  return { level: 'ok', found: `${config.snapshot} belongs to this platform${proof}` };
}

/** In these fields an unknown word is a failure, because it may mean deleted or unsubscribed. */
const decisive = new Set(['contacts.deleted', 'contacts.unsubscribed']);

function tellUnknown(words: UnknownWords, asTheyAre: boolean): Finding {
  const { option: what, fix } = words;
  const level = decisive.has(what) ? 'fail' : 'note';
  const found = renderProblem({ reason: sayUnknown(words, { asTheyAre }), fix });
  return { what, level, found, invalidInput: false };
}

/** Findings collected while a source is read. */
interface Tellings {
  senders: Senders;
  unknown: UnknownCount;
  /** The snapshot, for comparison with an empty source; undefined if none exists yet. */
  snapshot: Snapshot | undefined;
}

/** Reads the whole source, because its certificate and its invalid records are known only then. */
async function readSource(
  { type, source }: MirrorPart,
  { senders, unknown, snapshot }: Tellings,
  shell: Shell,
): Promise<Found> {
  const reading = source.read({ fields: type.fields, signal: shell.stop });
  let records = 0;
  let invalid = 0;
  let addressless = 0;
  let first: DesiredRow | undefined;
  let sample: DesiredRow | undefined;
  let step = await reading.next();
  for (; !step.done; step = await reading.next()) {
    for (const record of step.value) {
      records += 1;
      if ('broken' in record) continue;
      const row = type.desire(record.value, record.where);
      countSender(senders, row);
      unknown.add(row);
      if (row.invalid?.noAddress) addressless += 1;
      else if (row.invalid) invalid += 1;
      first ??= row.invalid?.noAddress ? undefined : row.invalid && row;
      sample ??= row.id === '' ? undefined : row;
    }
  }
  const { value: certificate } = step;
  if (!certificate.complete) {
    const { why: reason, fix } = certificate;
    return { level: 'fail', found: renderProblem({ reason, fix }) };
  }
  if (records === 0 && snapshot) refuseEmpty({ snapshot }, type.name);
  const example = first ? `, the first at ${first.place}: ${first.invalid?.reason}` : '';
  const without = addressless > 0 ? `, ${addressless} without an address` : '';
  const single = sample ? await readSingle({ type, source }, sample, shell) : '';
  return {
    level: 'ok',
    found: `${records} records, ${invalid} of them invalid${example}${without}${single}`,
  };
}

/**
 * Checks that a source that can read a single record finds one that it listed. If it did not,
 * people would be mistaken for removed.
 */
async function readSingle({ type, source }: MirrorPart, { id }: DesiredRow, shell: Shell) {
  if (!source.one) return '';
  const found = await source.one(id, { fields: type.fields, signal: shell.stop });
  if (found) return ', and one of them was read by its id';
  throw new Invalid('a record of the list is not found by its id', {
    fix: 'correct one of the source',
  });
}

async function readPlatform(
  { type }: MirrorPart,
  { platform }: Config,
  shell: Shell,
): Promise<Found> {
  const page = await type.list({ page: 1, limit: 1 }, shell.stop);
  return { level: 'ok', found: `${platform.url} answers and knows ${page.total}` };
}
