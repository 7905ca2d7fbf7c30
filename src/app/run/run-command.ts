/** What all commands that run the mirror share, and whether a run compares everything. */
import { onlyOf, readOnlyPeople } from './flag-values.ts';
import type { Config } from '../../config/config.ts';
import { loadConfig } from '../../config/load-config.ts';
import { renderProblem, Invalid } from '../../domain/errors.ts';
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import {
  type FullCode,
  nothingDone,
  type Plan,
  type Summary,
} from '../../engine/report/run-summary.ts';
import { problemsSection } from '../../views/lookup/problem-groups.ts';
import { runDocument } from '../../views/run/run-document.ts';
import {
  allLines,
  type Ended,
  runSections,
  mostDocumented,
  samplesOf,
  type Viewed,
} from '../../views/run/run-sections.ts';
import { cannotSection } from '../../views/run/change-groups.ts';
import type { Section } from '../../views/sections.ts';
import { type FlagsOf, limiting, running, writing } from '../../compose/command-options.ts';
import {
  type Mirror,
  type Mode,
  modeName,
  type RunOptions,
  type ToApprove,
  type ToUndo,
  isRecord,
} from '../../engine/context/mirror-context.ts';
import { run } from '../../engine/run.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import { codeOfStop, exitCode, explain } from '../../compose/output/failure-report.ts';
import { operatorName, type Shell } from '../../compose/process-shell.ts';
import { createLog, hushed } from './run-log.ts';
import { orHandOver } from '../remote/worker-handover.ts';
import { namesOf, keyOf } from '../../views/lookup/person-names.ts';
import { followRun, outletsOf } from '../../compose/run-progress.ts';
import { clearRestored } from '../../compose/mirror-files.ts';
import { copiedAt } from '../../store/database/meta-table.ts';
import { alertsIn } from '../../views/status/run-history.ts';
import { print } from '../snapshot-command.ts';
import { isFirstLoad } from '../../engine/context/run-context.ts';
import { instant } from '../../compose/output/format-values.ts';

const passed = { ...running, ...limiting, ...writing };
export type PassFlags = Partial<FlagsOf<typeof passed>> & { config: string };

export interface Pass {
  /** The mode; `single` holds an address or its hash. */
  mode: Mode;
  because?: readonly FullCode[];
  writes: boolean;
  /** Called when the mirror is open, before anything is read. May throw Invalid to refuse. */
  begins?(mirror: Mirror): void;
  /** Called with the plan (see RunOptions). May throw Invalid to refuse. */
  agrees?(plan: Plan, mirror: Mirror): void;
  firstLoad?: boolean;
  approve?: ToApprove | undefined;
  undo?: ToUndo | undefined;
  all?: boolean;
  /** Returns further sections for people, below the counts. */
  adds?(pass: Ended): Promise<Section[]>;
  /** Called after the run, before the snapshot is closed, to print more. */
  ended?(pass: Ended): void;
}

/** Runs the configured mirror once, and prints the summary. */
export async function pass(flags: PassFlags, shell: Shell, wanted: Pass): Promise<number> {
  const { mode } = wanted;
  let mirror = '';
  try {
    const config = loadConfig(flags.config, shell.env);
    mirror = config.mirror;
    const here = async (): Promise<number> => runOnce(config, { flags, shell, wanted });
    // The list of people is not handed to a worker. If one holds the mirror, the run is refused.
    const forWorkers = flags.people === undefined;
    return await (wanted.writes ? orHandOver(config, shell, here, forWorkers) : here());
  } catch (error) {
    const reasons = explain(error).text.split('\n');
    const summary = nothingDone({ mirror, mode: modeName(mode), reasons });
    const document = runDocument(summary, { names: ({ key }) => key, addresses: false });
    print({ document }, flags, shell);
    throw error;
  }
}

interface Call {
  flags: PassFlags;
  shell: Shell;
  wanted: Pass;
}

async function runOnce(config: Config, { flags, shell: own, wanted }: Call): Promise<number> {
  const only = onlyOf(flags.only);
  const { people: list } = flags;
  const onlyPeople = list === undefined ? undefined : readOnlyPeople(list);
  const shell = hushed(own, flags, wanted.writes);
  const log = createLog(shell, config.mirror);
  const { acceptLostLedger = false } = flags;
  const { mirror, close } = await assemble(config, shell, { ...wanted, acceptLostLedger });
  let followed: ReturnType<typeof followRun> | undefined;
  let failure: unknown;
  try {
    const { writes, firstLoad = false, approve, agrees } = wanted;
    wanted.begins?.(mirror);
    const mode = wanted.mode === 'fast' ? 'fast' : 'full';
    const heard = flags.quiet ? { ...shell, note: () => undefined } : shell;
    const isForAll = typeof wanted.mode === 'string';
    const about = { config, mode, firstLoad, writes, isForAll } as const;
    followed = followRun(heard, mirror, { ...about, outlets: outletsOf(shell) });
    const { progress, foresees, shell: steered } = followed;
    const view: Viewed = { plan: undefined, samples: [] };
    const { mode: asked, because, undo } = wanted;
    const what = { mode: asked, because, writes, firstLoad, approve, undo, only, onlyPeople };
    const summary = await runNow(mirror, steered, {
      ...what,
      progress,
      foresees,
      by: { by: 'command', name: operatorName(shell) },
      async shows(plan, round) {
        view.plan ??= plan;
        if (round === 1 && writes && !flags.json) {
          // What cannot be undone is said before anything is sent.
          const names = namesOf(mirror.snapshot, flags.addresses ?? shell.terminal);
          print({ document: {}, sections: [cannotSection(plan.cannot ?? [], names)] }, {}, shell);
        }
        const isDocument = wanted.undo !== undefined && !writes;
        if (isDocument || !(flags.json || wanted.all)) {
          const most = flags.json ? mostDocumented : undefined;
          view.samples = await samplesOf(plan, view.samples, most);
        }
      },
      ...(agrees && { agrees: (plan) => agrees(plan, mirror) }),
    });
    log.ended(summary, writes ? 'run' : 'plan');
    const { status, known } = summary;
    const isLeft = writes && summary.mode === 'undo' && deferredCount(summary.deferred) > 0;
    let code = exitCode(status);
    if (isLeft && status === 'done') code = exitCode('busy');
    else if (status === 'interrupted') code = codeOfStop(steered.stop.reason);
    else if (status === 'done' && flags.strict && known > 0) code = exitCode('rejected');
    const isWell = code === exitCode('done') && !summary.problems.some(({ isNew }) => isNew);
    const isQuiet = flags.quiet === true && writes && isWell;
    await printRun({ config, mirror, summary, view }, { flags, shell, wanted, isQuiet });
    // The thresholds of the configuration that this run has crossed.
    for (const { run: id, text, fix } of writes ? alertsIn(mirror.snapshot, config) : []) {
      if (id === summary.run) shell.note(`crm-mirror: ${renderProblem({ reason: text, fix })}`);
    }
    wanted.ended?.({ config, mirror, summary });
    return code;
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    followed?.close();
    await close(failure);
  }
}

/** Prints the document, or the lines for people unless it is quiet; then the reasons on stderr. */
async function printRun(
  ended: Ended & { view: Viewed },
  { flags, shell, wanted, isQuiet }: Call & { isQuiet: boolean },
): Promise<void> {
  const { mirror, summary, view } = ended;
  const addresses = flags.addresses ?? shell.terminal;
  const names = namesOf(mirror.snapshot, addresses);
  const { writes, all = false, undo } = wanted;
  const planned = undo !== undefined && !writes ? { planned: view.samples } : {};
  const document = runDocument(summary, { names, addresses, ...planned });
  if (flags.json) {
    print({ document }, flags, shell);
    return;
  }
  if (!isQuiet) {
    const adds = (await wanted.adds?.(ended)) ?? [];
    const problems = problemsSection(document.groups);
    const shown = { ...ended, view: all ? { ...view, samples: [] } : view };
    const sections = runSections(shown, { ...flags, writes, names }, adds);
    print({ document, sections: all ? sections : [...sections, problems] }, flags, shell);
    if (all && view.plan) {
      for await (const line of allLines(view.plan, names, shell.width)) shell.print(line);
      if (document.groups.length > 0) shell.print('');
      print({ document, sections: [problems] }, flags, shell);
    }
  }
  const unsaid = summary.reasons.filter(
    (reason, at) => !mirror.notes.includes(reason) && summary.reasonCodes[at] !== 'policy',
  );
  // What guards withhold is no failure, but a person has to check it.
  const held = summary.problems.filter((problem) => problem.class === 'held');
  const lines = held.map(({ reason, fix }) => renderProblem({ reason, fix }));
  for (const text of [...unsaid, ...lines]) shell.note(`crm-mirror: ${text}`);
}

/** The summary counts only the requests of this run. */
export async function runNow(
  mirror: Mirror,
  shell: Shell,
  wanted: Omit<RunOptions, 'restored' | 'stop' | 'abort'>,
): Promise<Summary> {
  const { stop, abort } = shell;
  const { snapshot } = mirror;
  const { mode, because } = await modeNow(mirror, wanted, shell);
  const restored = copiedAt(snapshot.meta) !== undefined;
  const before = mirror.requests();
  const requests = () => {
    const { total, byRoute, rateLimited } = mirror.requests();
    const routes = Object.entries(byRoute).map(([route, n]): [string, number] => [
      route,
      n - (before.byRoute[route] ?? 0),
    ]);
    return {
      total: total - before.total,
      byRoute: Object.fromEntries(routes.filter(([, n]) => n > 0)),
      rateLimited: rateLimited - before.rateLimited,
    };
  };
  let summary: Summary | undefined;
  try {
    summary = await run(
      { ...mirror, requests },
      { ...wanted, mode, because, restored, stop, abort },
    );
  } finally {
    if (!summary || summary.status === 'failed') mirror.outages?.confirm();
  }
  if (wanted.writes) clearRestored(snapshot, summary);
  return summary;
}

/**
 * After a restored or damaged snapshot the run is full, because its rows do not count until the
 * platform has been listed. The word for a person becomes the person's key.
 */
async function modeNow(
  mirror: Mirror,
  { mode, because = [] }: { mode: Mode; because?: RunOptions['because'] },
  shell: Shell,
): Promise<{ mode: Mode; because: readonly FullCode[] }> {
  if (isRecord(mode)) return { mode, because };
  if (typeof mode !== 'string') {
    return { mode: { single: await keyOf(mode.single, mirror, shell.stop) }, because };
  }
  const asked: FullCode[] = mode === 'full' ? [...because] : [];
  const lost = mirror.notes.length > 0;
  const at = copiedAt(mirror.snapshot.meta);
  if (mode === 'undo') {
    if (lost || at !== undefined) {
      throw new Invalid(`${mirror.name}: the snapshot was lost or put back from a backup`, {
        fix: 'run `crm-mirror sync` first, which lists the platform',
      });
    }
    return { mode, because };
  }
  if (!lost && at !== undefined && mode !== 'full') {
    shell.note(
      `crm-mirror: the snapshot was put back from a backup of ${instant(at)}: this run is a full one`,
    );
  }
  // A first load is a reason only for a run that is full anyway.
  const first = isFirstLoad({ snapshot: mirror.snapshot, firstLoad: false });
  if (mode === 'full' && first) asked.push('first-load');
  const needed: FullCode[] = [
    ...(lost ? ['snapshot-lost' as const] : []),
    ...(at === undefined ? [] : ['snapshot-restored' as const]),
  ];
  return { mode: needed.length > 0 ? 'full' : mode, because: [...asked, ...needed] };
}
