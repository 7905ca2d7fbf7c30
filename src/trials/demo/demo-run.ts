/** Does one run within the demo, in the same way as the commands `plan` and `sync`. */
import type { LoggedRequest } from '../../emulator/ui/emulated-world.ts';
import type { PlanView, Summary } from '../../engine/report/run-summary.ts';
import { problemsSection, shownGroups } from '../../views/lookup/problem-groups.ts';
import type { Line } from '../../compose/output/text-style.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import { sectionLines } from '../../views/render/text.ts';
import { runSections, samplesOf, type Viewed } from '../../views/run/run-sections.ts';
import { run } from '../../engine/run.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import { createProgress } from '../../compose/run-progress.ts';
import type { Shell } from '../../compose/process-shell.ts';
import type { DemoPage } from './demo-page.ts';
import type { Stage } from './demo-platform.ts';
import { counted } from '../../domain/values/counted.ts';

const everyMs = 3_000;
const mostNamed = 3;

export interface Passed {
  summary: Summary;
  /** The requests that the platform received in this run, oldest first. */
  requests: readonly LoggedRequest[];
}

interface Wanted {
  stage: Stage;
  shell: Shell;
  page: DemoPage;
  /** Whether the run writes; false for a plan. */
  writes: boolean;
}

/** Runs once and prints the table. If the process is asked to stop, throws the reason. */
export async function pass({ stage, shell, page, writes }: Wanted): Promise<Passed> {
  const { world } = stage.emulator;
  const before = world.requests().length;
  const { mirror, close } = await assemble(stage.config, shell, { writes });
  const watch = setInterval(() => {
    if (shell.interactive) return;
    const changes = world
      .requests()
      .slice(before)
      .filter(({ method, status }) => method !== 'GET' && status < 300);
    shell.note(`  … ${counted(changes.length, 'change')} accepted by the platform so far`);
  }, everyMs);
  const line = createProgress(shell.interactive ? { draw: shell.progress } : {}, mirror);
  let summary: Summary;
  const seen: Viewed = { plan: undefined, samples: [] };
  let lines: Line[];
  try {
    const { stop, abort } = shell;
    const options = { mode: 'full', writes, only: undefined } as const;
    const shows = async (view: PlanView): Promise<void> => {
      seen.plan ??= view;
      seen.samples = await samplesOf(view, seen.samples);
    };
    summary = await run(mirror, { ...options, ...line, shows, stop, abort });
    // Names are shown, because nobody in them is real.
    const names = namesOf(mirror.snapshot, true);
    const shown = { config: stage.config.file, writes, names, most: mostNamed };
    lines = sectionLines(runSections({ config: stage.config, mirror, summary, view: seen }, shown));
  } finally {
    line.close();
    clearInterval(watch);
    await close();
  }
  shell.stop.throwIfAborted();
  page.lines(lines);
  const groups = shownGroups(summary.groups, { names: ({ key }) => key, addresses: true });
  if (writes && groups.length > 0) page.lines(['', ...sectionLines([problemsSection(groups)])]);
  for (const reason of summary.reasons) page.lines([`crm-mirror: ${reason}`]);
  return { summary, requests: world.requests().slice(before) };
}
