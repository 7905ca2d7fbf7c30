/** Does one run within the demo, in the same way as the commands `plan` and `sync`. */
import { renameSync, writeFileSync } from 'node:fs';
import type { LoggedRequest } from '../../emulator/ui/emulated-world.ts';
import type { Config } from '../../config/config.ts';
import type { Mirror } from '../../engine/context/mirror-context.ts';
import type { PlanView, Summary } from '../../engine/report/run-summary.ts';
import { type CountedChanges, doneGroups } from '../../compose/output/change-groups.ts';
import { renderGroups, shownGroups } from '../../compose/output/problem-groups.ts';
import { renderSummary } from '../../compose/output/summary-text.ts';
import type { Line } from '../../compose/output/text-style.ts';
import { namesOf } from '../../views/lookup/person-names.ts';
import {
  approvalLines,
  doneOf,
  type Sample,
  sampleLines,
  samplesOf,
} from '../../app/run/run-view.ts';
import { run } from '../../engine/run.ts';
import { assemble } from '../../compose/assemble-mirror.ts';
import { createProgress } from '../../compose/progress/progress-line.ts';
import type { Shell } from '../../compose/process-shell.ts';
import { enrolmentsPerSecond, type Stage } from './demo-platform.ts';
import type { Folder } from './demo-folder.ts';
import { counted } from '../../domain/values/counted.ts';

const everyMs = 3_000;
const mostNamed = 3;

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
  let plan: Planned = { groups: [], samples: [] };
  let lines: Line[];
  try {
    const { stop, abort } = shell;
    const options = { mode: 'full', writes, only: undefined } as const;
    const shows = async (view: PlanView, round: number): Promise<void> => {
      const groups = round === 1 ? view.groups : plan.groups;
      plan = { groups, samples: await samplesOf(view, plan.samples) };
    };
    summary = await run(mirror, { ...options, ...line, shows, stop, abort });
    lines = linesOf(summary, mirror, { ...plan, writes, config: stage.config });
  } finally {
    line.close();
    clearInterval(watch);
    await close();
  }
  shell.stop.throwIfAborted();
  page.lines(lines);
  const groups = shownGroups(summary.groups, { names: ({ key }) => key, addresses: true });
  if (writes) page.lines(renderGroups(groups));
  for (const reason of summary.reasons) page.lines([`crm-mirror: ${reason}`]);
  return { summary, requests: world.requests().slice(before) };
}

interface Planned {
  groups: readonly CountedChanges[];
  samples: Sample[];
}

function linesOf(
  summary: Summary,
  mirror: Mirror,
  { groups, samples, writes, config }: Planned & { writes: boolean; config: Config },
): Line[] {
  const shown = writes ? doneGroups(summary) : groups;
  const about = { groups: shown, run: summary.run, snapshot: mirror.snapshot };
  const some = writes ? doneOf(samples, about) : samples;
  const few = some.map(({ group, records }) => ({ group, records: records.slice(0, mostNamed) }));
  const view = {
    writes,
    groups: shown,
    approvals: approvalLines(summary, mirror, config.file),
    policy: { optIns: false, protect: false },
    isVerbose: false,
  };
  return [
    ...renderSummary(summary, view),
    ...sampleLines(few, { names: namesOf(mirror.snapshot, true), isDone: writes }),
  ];
}

const width = 96;

/** Creates the demo's output. */
export function createPage({ print }: Pick<Shell, 'print'>) {
  const put = (text: string, indent: { first: string; rest: string }): void => {
    for (const line of fold(text, indent)) print(line);
  };
  return {
    title(text: string): void {
      print('');
      print(text);
      print('='.repeat(text.length));
    },
    /** Prints paragraphs, folded. */
    say(...paragraphs: string[]): void {
      for (const text of paragraphs) {
        print('');
        put(text, { first: '', rest: '' });
      }
    },
    /** Prints a command as a user would type it. */
    command(text: string): void {
      print('');
      print(`$ ${text}`);
    },
    /**
     * Prints lines unchanged, except that a sentence that is too long is folded and indented. Table
     * rows are never folded.
     */
    lines(lines: readonly Line[]): void {
      for (const line of lines) {
        if (typeof line !== 'string') {
          print(line);
          continue;
        }
        const indent = /^ */.exec(line)?.[0] ?? '';
        const isTable = /\S {2,}\S/.test(line);
        if (line.length <= width || isTable) print(line);
        else put(line.trim(), { first: indent, rest: `${indent}    ` });
      }
    },
    /** Prints a subject with its description below. */
    item(subject: string, text: string): void {
      print(`  ${subject}`);
      put(text, { first: '      ', rest: '      ' });
    },
  };
}

/** The demo's output. */
export type DemoPage = ReturnType<typeof createPage>;

function fold(text: string, { first, rest }: { first: string; rest: string }): string[] {
  const lines: string[] = [];
  let line = first;
  for (const word of text.split(' ')) {
    const empty = line === first || line === rest;
    if (!empty && line.length + 1 + word.length > width) {
      lines.push(line);
      line = rest + word;
    } else line += empty ? word : ` ${word}`;
  }
  return [...lines, line];
}

const key = 'key_demo';

/**
 * Writes the platform's state to a file, because the platform ends with this process, and prints
 * the closing page. Renames the snapshot and its list, which belong to that platform, so that the
 * next run starts with an empty one.
 */
export function leave(folder: Folder, { emulator }: Stage, page: DemoPage): void {
  const all = emulator.world.contacts().length + emulator.world.requests().length;
  writeFileSync(folder.state, `${JSON.stringify(emulator.world.state(all), null, 2)}\n`);
  for (const end of ['', '-ledger', '-ledger-key'])
    renameSync(folder.snapshot + end, folder.after + end);
  const { shown } = folder;
  const limits = `contacts.enrol=${enrolmentsPerSecond}/1 contacts.list=${enrolmentsPerSecond}/1`;
  page.title('What is left, and what to try next');
  page.say(`Everything lies in ${shown(folder.path)}:`);
  page.lines([
    '  mirror.yaml             the configuration, commented',
    '  people.csv, templates   the CRM, as act 2 left it',
    '  platform.json           the platform, as act 3 left it, with every request it was sent',
    '  after-the-demo.sqlite   the snapshot, with the do-not-contact list and its key; put aside, because',
    '                          that platform ends with the demo',
  ]);
  page.say('A platform of your own, in one terminal:');
  page.command(`npx crm-mirror emulator --key ${key} --limit ${limits}`);
  page.say('In another one:');
  page.lines(['', `$ export PLATFORM_API_KEY=${key}`]);
  for (const command of ['check', 'plan', 'sync'])
    page.lines([`$ npx crm-mirror ${command} -c ${shown(folder.config)}`]);
  page.say('Then let a person leave, and see that the next sync does not opt them in again:');
  const body = JSON.stringify({ contact: 'ida.lindqvist@example.com', channel: 'ch_news' });
  page.command(`curl -d '${body}' \\`);
  page.lines(['    http://127.0.0.1:4010/_emulator/leave']);
  page.lines([`$ npx crm-mirror sync -c ${shown(folder.config)}`]);
}
