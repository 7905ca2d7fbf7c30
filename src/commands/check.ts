import type { Command } from 'commander';
import { loadConfig } from '../config/load-config.ts';
import { systemClock } from '../http/system-clock.ts';
import { lookInto, openSnapshot } from '../store/snapshot.ts';
import { loadSources } from '../compose/source-registry.ts';
import { partsOf } from '../compose/mirror-parts.ts';
import { connect } from '../compose/platform-connection.ts';
import {
  lookAtSenders,
  type Senders,
  checkPart,
  type CheckedPart,
} from '../app/check/part-check.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type LookFlags, lookOptions } from '../app/snapshot-command.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import { ignoredWords } from '../views/lookup/ignored-files.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import { documentOf, renderCheck } from '../app/check/check-report.ts';
import { type Finding, look } from '../app/check/finding.ts';
import {
  checkClock,
  checkLedger,
  checkPlaces,
  checkRedis,
  checkSettings,
  checkSnapshot,
} from '../app/check/surroundings.ts';

export function options(command: Command): void {
  lookOptions(command).option(
    '--addresses',
    'show values of the CRM also where stdout is no terminal',
  );
}

/**
 * Validates the configuration, then reads both sides without writing anything. The exit code is 2
 * if an input is invalid, 1 if anything else failed, and 4 if only some records are invalid.
 */
export async function run(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<LookFlags>();
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
  const parts: CheckedPart[] = [];
  const senders: Senders = new Map();
  try {
    findings.push(await look('do-not-contact list', () => checkLedger(known, config)));
    findings.push(...checkPlaces(config));
    if (known)
      findings.push(
        await look('snapshot', () => checkSnapshot(known, { config, platform, shell })),
      );
    for (const part of partsOf(config, { platform, sources })) {
      const checked = await checkPart(part, { config, snapshot, shell, senders, asTheyAre });
      parts.push(checked);
      findings.push(...checked.findings);
    }
    findings.push(
      ...checkClock({ clock: systemClock, platformNow: platform.platformNow, snapshot }),
    );
    const ignored = await ignoredWords(config);
    if (ignored !== undefined)
      findings.push(await look('templates', () => ({ level: 'note', found: ignored })));
    const { redis } = config;
    if (redis !== undefined) findings.push(await look('Redis', () => checkRedis(redis)));
    const returns = sources.returns?.();
    if (returns)
      findings.push(
        await look('opt-outs on the platform', () => ({ level: 'ok', found: returns.look() })),
      );
    findings.push(...checkSettings(config));
    findings.push(...(await lookAtSenders(senders, platform, shell.stop)));
    const names = namesOf(snapshot, asTheyAre);
    const report = { mirror: config.mirror, findings, parts, snapshot, names, asTheyAre };
    if (flags.json) shell.print(JSON.stringify(documentOf(report), null, 2));
    else for (const line of renderCheck(report)) shell.print(line);
  } finally {
    snapshot.close();
    await platform.close();
  }
  const failed = findings.filter(({ level }) => level === 'fail');
  if (failed.some(({ invalidInput }) => invalidInput)) return exitCode('invalid');
  if (failed.length > 0) return exitCode('failed');
  const isInvalid = parts.some(({ source }) => (source?.counts.invalid ?? 0) > 0);
  return exitCode(isInvalid ? 'rejected' : 'done');
}
