import { onlyOf, readOnlyPeople } from '../app/run/flag-values.ts';
import {
  type Called,
  type FlagsOf,
  limiting,
  naming,
  parseWhole,
  commandLine,
} from '../compose/command-options.ts';
import { loadConfig } from '../config/load-config.ts';
import { withCommas } from '../domain/values/counted.ts';
import { Invalid } from '../domain/errors.ts';
import { createEmulator } from '../emulator/emulator.ts';
import { faultsHelp } from './emulator.ts';
import { seeded } from '../emulator/shared/seeded-random.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { systemClock } from '../http/system-clock.ts';
import type { Snapshot } from '../store/snapshot.ts';
import { namesOf } from '../views/lookup/person-names.ts';
import { print } from '../app/snapshot-command.ts';
import { codeOfStop, exitCode } from '../compose/output/failure-report.ts';
import type { Shell } from '../compose/process-shell.ts';
import { type Conditions, type Rehearsed, rehearseRun } from '../trials/rehearsal/rehearse-run.ts';
import { observeOriginal, type Original } from '../trials/rehearsal/observe-original.ts';
import { compareRehearsals, rehearsedRun } from '../trials/rehearsal/rehearsal-document.ts';
import { approving } from '../engine/report/guard-text.ts';
import { bang } from '../views/run/change-groups.ts';
import { type Rehearsal, rehearsalSections, rehearsalTitle } from '../views/run/rehearsal.ts';
import { modeOf } from './sync.ts';

const mostNamed = 20;
const redrawMs = 100;

export const options = {
  ...naming,
  full: 'rehearse a full run (the default)',
  fast: 'rehearse a fast run',
  ...limiting,
  'against <config>':
    'the live configuration: both are rehearsed on its data, and compared person by person',
  'limit <route=limit/window...>':
    'rate limits instead of those seen, such as contacts.enrol=30/60 (30 in 60 seconds)',
  'fault <kind=rate@route...>': 'fail, such as 500=0.05@contacts.enrol; listed below',
  'quirk <name...>': 'differ from the specification, as `emulator --help` lists',
  'seed <n>': { text: 'the same seed gives the same faults and the same end', default: '1' },
  all: `name every person, not ${mostNamed}`,
  'most <n>': `name at most so many people (${mostNamed}; with --json, all of them)`,
};
type Flags = FlagsOf<typeof options>;

export const help = `
Nothing is sent: the platform and the CRM are only read.
${faultsHelp()}`;

/**
 * Rehearses a run on copies of the mirror's files, against an emulator that holds what the platform
 * shows now. The exit code is that of the rehearsed run.
 */
export async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const conditions = conditionsOf(flags, shell);
  const config = loadConfig(flags.config, shell.env);
  const against = flags.against === undefined ? undefined : loadConfig(flags.against, shell.env);
  if (against && against.platform.url !== config.platform.url) {
    throw new Invalid(`${flags.config} and ${flags.against} name different platforms`, {
      fix: 'rehearse configurations of one platform: give both the same platform.url',
    });
  }
  const live = against ?? config;
  // What only one of them mirrors has to be read as well.
  const { contacts = config.contacts, templates = config.templates } = live;
  const { only, progress } = conditions;
  const observing = { shell, only, progress, copies: against ? 2 : 1, random: Math.random };
  const endOf = ({ status }: Summary): number =>
    status === 'interrupted' ? codeOfStop(shell.stop.reason) : exitCode(status);
  return observeOriginal(
    { ...live, contacts, templates },
    observing,
    async (original, [copy, other], { snapshot }) => {
      const { mirror, status, reasons } = original.summary;
      if (status === 'failed' || status === 'interrupted') {
        // The run could not begin; a plan fails in the same way.
        if (flags.json) shell.print(JSON.stringify({ mirror, status, reasons, sent: 0 }, null, 2));
        for (const reason of reasons) shell.note(`crm-mirror: ${reason}`);
        return endOf(original.summary);
      }
      if (!copy) throw new Error('there is a copy for each rehearsal');
      const rehearsed = await rehearseRun(config, { original, copy, shell }, conditions);
      const compared =
        against && other
          ? await rehearseRun(against, { original, copy: other, shell }, conditions)
          : undefined;
      report({ rehearsed, compared, original, seed: conditions.seed }, flags, snapshot, shell);
      return endOf(rehearsed.summary);
    },
  );
}

function conditionsOf(flags: Flags, shell: Shell): Conditions {
  const { limit: limits = [], fault: faults = [], quirk: quirks = [], people } = flags;
  const seed = parseWhole('--seed', flags.seed, Number.MAX_SAFE_INTEGER);
  // Mistakes in these must be reported before anything is read.
  createEmulator({ clock: systemClock, random: seeded(seed), limits, faults, quirks }).close();
  let drawnMs = -redrawMs;
  let drawn = '';
  return {
    ...modeOf(flags),
    only: onlyOf(flags.only),
    onlyPeople: people === undefined ? undefined : readOnlyPeople(people),
    progress: ({ stage, kind, done, of }) => {
      const nowMs = systemClock.monotonic();
      if (stage === drawn && nowMs - drawnMs < redrawMs) return;
      drawnMs = nowMs;
      drawn = stage;
      const count =
        of === undefined ? withCommas(done) : `${withCommas(done)} of ${withCommas(of)}`;
      const what = stage === 'asking' ? 'asking the platform' : `${stage} ${kind}s: ${count}`;
      shell.progress(`rehearsal: ${what}`);
    },
    limits,
    faults,
    quirks,
    seed,
    reasons: flags.against === undefined ? mostOf(flags) : Infinity,
  };
}

function mostOf({ all, most, json }: Flags): number {
  if (all && most !== undefined) {
    throw new Invalid('--all and --most exclude each other: give one of them');
  }
  if (most !== undefined) return parseWhole('--most', most, Number.MAX_SAFE_INTEGER);
  return all || json ? Infinity : mostNamed;
}

interface Outcome {
  rehearsed: Rehearsed;
  compared: Rehearsed | undefined;
  original: Original;
  seed: number;
}

function report(
  { rehearsed, compared, original: { reads, readMs }, seed }: Outcome,
  flags: Flags,
  snapshot: Snapshot,
  shell: Shell,
): void {
  const addresses = flags.addresses ?? shell.terminal;
  const most = mostOf(flags);
  // The text counts all people who differ, and names the first of them.
  const naming = {
    names: namesOf(snapshot, addresses),
    addresses,
    most: flags.json || !compared ? most : Infinity,
  };
  const { config, summary } = rehearsed;
  const document: Rehearsal = {
    mirror: summary.mirror,
    seed,
    sent: 0,
    reads,
    readMs: Math.round(readMs),
    ...rehearsedRun(rehearsed, naming),
    against: compared ? rehearsedRun(compared, naming) : null,
    differences: compared ? compareRehearsals(rehearsed, compared, naming) : null,
  };
  // A template is created in two steps.
  const planned = rehearsed.groups
    .filter(({ held }) => !held)
    .reduce((sum, { kind, n, own }) => sum + (kind === 'contact' ? n : own), 0);
  const { plan, heldAs = plan } = summary;
  const approval = approving(heldAs, config.approvers !== undefined);
  const sections = [
    {
      title: rehearsalTitle(document, planned),
      lines: summary.status === 'failed' ? document.reasons.map((one) => [bang, ` ${one}`]) : [],
      none: '',
    },
    ...rehearsalSections(document, {
      config,
      who: ({ key }) => key,
      approving: `\`${commandLine(approval, flags.config)}\``,
      most,
      namesAll: '--all names them all',
    }),
  ];
  print({ document, sections }, flags, shell);
  if (flags.json) return;
  for (const reason of document.reasons) shell.note(`crm-mirror: ${reason}`);
}
