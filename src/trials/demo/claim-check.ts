/**
 * Compares what the demo claims with the requests that the platform received and with its present
 * state: the claims about a person or a template, and below the rules that must hold for every
 * person after every run. It uses only the platform's own log and the export, so that it cannot
 * share a mistake with the run.
 *
 * Does one run within the demo, in the same way as the commands `plan` and `sync`.
 */
import type { Emulator } from '../../emulator/emulator.ts';
import type { LoggedRequest } from '../../emulator/ui/dashboard.ts';
import { contactKey } from '../../domain/values/contact-key.ts';
import { counted } from '../../domain/values/counted.ts';
import type { DesiredRow } from '../../domain/record.ts';
import { wishesOf, type Stage } from './demo-platform.ts';
import type { Claim, Claims, TemplateClaim } from './sample-people.ts';
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

export interface ClaimResult {
  subject: string;
  says: string;
  truth: string | undefined;
}

interface Facts extends Passed {
  emulator: Emulator;
  people: readonly DesiredRow[];
  foreign: readonly string[];
  /** What held before the run (`lookBefore`). */
  before: Before;
}

/** Checks the claims about a run, and the rules of safety. */
export function checkClaims({ people, templates }: Claims, facts: Facts): ClaimResult[] {
  return [
    ...people.map((claim) => checkPerson(claim, facts)),
    ...templates.map((claim) => checkTemplate(claim, facts)),
    ...checkSafety(facts),
  ];
}

function checkPerson({ who, says, ...claim }: Claim, facts: Facts): ClaimResult {
  const key = contactKey(who);
  const sent = writesIn(facts.requests)
    .filter(({ email }) => email === key)
    .map(({ route, subscription, channelId }) => `${subscription ?? route} ${channelId ?? ''}`);
  const row = facts.people.find(({ alias }) => alias === key);
  const name = row && row.key === undefined ? `id ${row.id}` : key;
  // A problem with an unknown word is listed under the field's name.
  const option = facts.people.find((row) => row.key === key)?.invalid?.option;
  const isListed = (as: string) => as === name || as === option;
  const listed = facts.summary.problems.find((problem) => isListed(problem.key))?.class;
  const tell = (of: { sent: readonly string[]; shows: string; listed?: string | undefined }) =>
    `sent: ${[...of.sent].toSorted().join(', ') || 'nothing'}; on the platform: ${of.shows}; ` +
    `listed as: ${of.listed ?? 'nothing'}`;
  const truth = tell({ sent, shows: standingOf(facts.emulator, key), listed });
  return { subject: who, says, truth: truth === tell(claim) ? undefined : truth };
}

function checkTemplate({ name, says, ...claim }: TemplateClaim, facts: Facts): ClaimResult {
  const here = facts.emulator.world.templates().filter((template) => template.name === name);
  const sent = writesIn(facts.requests)
    .filter(({ templateId }) => here.some(({ id }) => id === templateId))
    .map(({ route }) => route?.replace('templates.', ''));
  const tell = (requests: readonly unknown[], subjects: string[]): string =>
    `sent: ${requests.join(', ') || 'nothing'}; the subject is "${subjects.join('" and "')}"`;
  const subjects = here.map(({ subject }) => subject);
  const [expected, truth] = [tell(claim.sent, [claim.subject]), tell(sent, subjects)];
  return { subject: `template ${name}`, says, truth: truth === expected ? undefined : truth };
}

/** Returns the requests that were meant to change something and did. */
export function writesIn(requests: Passed['requests']): Passed['requests'] {
  return requests.filter(({ method, status }) => method !== 'GET' && status < 300);
}

/** Returns a person's state on the platform, such as `ch_news in, ch_product out`. */
function standingOf({ world }: Emulator, key: string): string {
  const here = world.contacts().filter(({ email }) => contactKey(email) === key);
  if (here.length === 0) return 'not on the platform';
  const one = here.map(({ status, channels }) => {
    const shown = channels.map(
      ({ id, subscription }) => `${id} ${subscription.slice('opt_'.length)}`,
    );
    return [...(status === 'subscribed' ? [] : [status]), ...shown.toSorted()].join(', ');
  });
  return one.join(' and ');
}

interface Before {
  /** `<email> <channel>` for each person who unsubscribed from the channel or from all mail. */
  left: ReadonlySet<string>;
  foreign: string;
}

/** Records the state for the rules of safety. It must be called before a run. */
export function lookBefore({ world }: Emulator, foreign: readonly string[]): Before {
  const written = writesIn(world.requests());
  const optOuts = written.filter(({ subscription }) => subscription === 'opt_out');
  const ours = new Set(optOuts.map(pairOf));
  const left = world.contacts().flatMap(({ email, status, channels }) => {
    const pairs = (list: readonly { id: string }[]): string[] =>
      list.map(({ id }) => pairOf({ email, channelId: id }));
    if (status !== 'subscribed') return pairs(world.channels());
    const out = channels.filter(({ subscription }) => subscription === 'opt_out');
    return pairs(out).filter((pair) => !ours.has(pair));
  });
  return { left: new Set(left), foreign: JSON.stringify(foreign.map(world.contact)) };
}

/** Nobody was opted in against their will, and people who are not in the CRM were not touched. */
function checkSafety({ emulator, before, foreign, people, ...passed }: Facts): ClaimResult[] {
  const optIns = writesIn(passed.requests).filter(({ subscription }) => subscription === 'opt_in');
  const back = optIns.filter((request) => before.left.has(pairOf(request)));
  const unwanted = optIns.filter((request) => !isWanted(request, people));
  const isSame = JSON.stringify(foreign.map(emulator.world.contact)) === before.foreign;
  const rest = {
    subject: `${foreign.length} people the CRM has never heard of`,
    says: 'Untouched, each of them.',
    truth: isSame ? undefined : 'some were changed',
  };
  if (optIns.length === 0) return [rest];
  return [
    {
      subject: `${before.left.size} subscriptions that people had ended on the platform`,
      says: `Not one was opened again; ${optIns.length} opt-ins were sent, none of them to these.`,
      truth: back.length === 0 ? undefined : `opened again: ${back.map(pairOf).join(', ')}`,
    },
    {
      subject: counted(optIns.length, 'opt-in'),
      says: 'The CRM states every one of them, and nothing in it contradicts.',
      truth: unwanted.length === 0 ? undefined : `not wanted: ${unwanted.map(pairOf).join(', ')}`,
    },
    rest,
  ];
}

function isWanted(
  { email, channelId = '' }: LoggedRequest,
  people: readonly DesiredRow[],
): boolean {
  const rows = people.filter(({ key }) => key === email);
  const wishes = rows.map((row) => wishesOf(row)[channelId]);
  const valid = rows.every(({ invalid }) => invalid === undefined);
  return valid && wishes.includes('opt_in') && !wishes.includes('opt_out');
}

function pairOf({ email, channelId }: Pick<LoggedRequest, 'email' | 'channelId'>): string {
  return `${email} ${channelId}`;
}

const everyMs = 3_000;
const mostNamed = 3;

export interface Passed {
  summary: Summary;
  requests: readonly LoggedRequest[];
}

interface Wanted {
  stage: Stage;
  shell: Shell;
  page: DemoPage;
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
