/** Does one run within the demo, in the same way as the commands `plan` and `sync`. */
import type { LoggedRequest } from '../emulator/ui/emulated-world.ts';
import { renderGroups, shownGroups } from '../cli/output/problem-groups.ts';
import { renderLine } from '../cli/output/text-style.ts';
import { renderSummary } from '../cli/output/summary-text.ts';
import type { Summary } from '../engine/report/run-summary.ts';
import { run } from '../engine/run.ts';
import { assemble } from '../cli/compose/assemble-mirror.ts';
import { createProgress } from '../cli/progress/progress-line.ts';
import type { Shell } from '../cli/compose/process-shell.ts';
import type { DemoPage } from './page-writer.ts';
import type { Stage } from './demo-platform.ts';

const everyMs = 3_000;

/** A completed run. */
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
  const { mirror, close } = assemble(stage.config, shell, { writes });
  const watch = setInterval(() => tellProgress(world.requests().slice(before), shell), everyMs);
  const line = createProgress(shell.interactive ? { draw: shell.progress } : {}, mirror);
  let summary: Summary;
  try {
    const { stop, abort } = shell;
    const options = { mode: 'full', writes, only: undefined } as const;
    summary = await run(mirror, { ...options, ...line, stop, abort });
  } finally {
    line.close();
    clearInterval(watch);
    await close();
  }
  shell.stop.throwIfAborted();
  printSummary(summary, page, writes);
  return { summary, requests: world.requests().slice(before) };
}

/** Prints a line every few seconds if no progress line can be redrawn. */
function tellProgress(requests: readonly LoggedRequest[], { note, interactive }: Shell): void {
  if (interactive) return;
  const changes = requests.filter(({ method, status }) => method !== 'GET' && status < 300);
  note(`  … ${changes.length.toLocaleString('en')} changes accepted by the platform so far`);
}

/** Prints the table and, after a run, its problems. */
function printSummary(summary: Summary, page: DemoPage, writes: boolean): void {
  page.lines(renderSummary(summary, { writes }));
  const groups = shownGroups(summary.groups, { names: ({ key }) => key, addresses: true });
  if (writes) page.lines(renderGroups(groups).map((line) => renderLine(line, false)));
  for (const reason of summary.reasons) page.lines([`crm-mirror: ${reason}`]);
}
