import { type Called, looking } from '../compose/command-options.ts';
import { renderProblem } from '../domain/errors.ts';
import { loadConfig } from '../config/load-config.ts';
import { systemClock } from '../http/system-clock.ts';
import { lookInto, openSnapshot } from '../store/open-snapshot.ts';
import { loadSources } from '../compose/source-registry.ts';
import { connectRecords } from '../compose/assemble-mirror.ts';
import { connect } from '../compose/platform-connection.ts';
import { lookAtSenders, checkContacts, checkTemplates } from '../app/check/part-check.ts';
import type { Shell } from '../compose/process-shell.ts';
import { print } from '../app/snapshot-command.ts';
import {
  ignoredWords,
  type Finding,
  look,
  note,
  checkMemory,
  checkPlaces,
  checkRedis,
  checkSettings,
  checkSnapshot,
} from '../app/check/surroundings.ts';
import { noteDifference, timesBy } from '../engine/context/platform-knowledge.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { checkSections } from '../app/check/mapped-columns.ts';

export const options = {
  ...looking,
  addresses: 'show values of the CRM also where stdout is no terminal',
};

/**
 * Reads both sides without writing. Exit code 2 if an input is invalid, 1 if anything else failed,
 * and 4 if only some records are invalid.
 */
export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const sources = await loadSources(config);
  const known = lookInto(config.snapshot);
  // Without a snapshot, the records are staged in memory.
  const snapshot = known ?? openSnapshot(config.snapshot, { inMemory: true });
  const platform = connect(config, shell);
  const asTheyAre = flags.addresses ?? shell.terminal;
  const findings: Finding[] = [
    { what: 'configuration', level: 'ok', found: `${config.file} is valid` },
  ];
  const add = async (...[what, at]: Parameters<typeof look>): Promise<void> => {
    findings.push(await look(what, at));
  };

  let contacts: Awaited<ReturnType<typeof checkContacts>> | undefined;
  let templates: Awaited<ReturnType<typeof checkTemplates>> | undefined;
  try {
    await add('memory', () => checkMemory(known, config));
    findings.push(...checkPlaces(config));
    if (known) await add('snapshot', () => checkSnapshot(known, { config, platform, shell }));
    const clocks = { clock: systemClock, platformNow: platform.platformNow, snapshot };
    const around = { config, snapshot, shell, asTheyAre };
    const records = connectRecords(config, { platform, sources, times: timesBy(clocks) });
    contacts = records.contacts && (await checkContacts(records.contacts, around));
    findings.push(...(contacts?.findings ?? []));
    templates = records.templates && (await checkTemplates(records.templates, around));
    findings.push(...(templates?.findings ?? []));
    for (const { reason, fix } of noteDifference(clocks)) findings.push(note('clock', reason, fix));
    const ignored = await ignoredWords(config);
    if (ignored !== undefined) findings.push(note('templates', ignored, undefined));
    const { redis } = config;
    if (redis !== undefined) await add('Redis', () => checkRedis(redis));
    const returns = sources.returns?.();
    if (returns)
      await add('opt-outs on the platform', () => ({ level: 'ok', found: returns.look() }));
    findings.push(...checkSettings(config));
    const senders = templates?.senders ?? new Map<string, number>();
    findings.push(...(await lookAtSenders(senders, platform, shell.stop)));
    const { counts } = contacts?.source ?? {};
    // The sample is read from the staged reading, so the snapshot has to be open.
    const people = contacts?.source?.people.sample(snapshot, asTheyAre);
    const columns = contacts?.source?.columns ?? [];
    const document = {
      mirror: config.mirror,
      ok: findings.every(({ level }) => level !== 'fail'),
      findings: findings.map(({ what, level, found: reason, fix }) => {
        return { what, ok: level !== 'fail', level, found: renderProblem({ reason, fix }) };
      }),
      contacts: counts ?? null,
      templates: templates?.counts ?? null,
      /** Null if the CRM has nobody as deleted or out of scope. */
      unmanaged: contacts?.unmanaged ?? null,
      columns,
      ...(people ?? { people: [], skipped: [] }),
    };
    print({ document, sections: checkSections(document) }, flags, shell);
  } finally {
    snapshot.close();
    await platform.close();
  }
  const failed = findings.filter(({ level }) => level === 'fail');
  if (failed.some(({ invalidInput }) => invalidInput)) return exitCode('invalid');
  if (failed.length > 0) return exitCode('failed');
  const isInvalid = [contacts?.source, templates].some((part) => (part?.counts?.invalid ?? 0) > 0);
  return exitCode(isInvalid ? 'rejected' : 'done');
}
