/** Renders a run or a plan as lines of text. All functions are pure. */
import type { Change } from '../../domain/change.ts';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { heldIn, type Summary } from '../../engine/report/run-summary.ts';
import { table } from './table.ts';

const shownChanges = 20;

const words: Record<string, string> = {
  create: 'created',
  opt_in: 'opted in',
  opt_out: 'opted out',
  delete: 'deleted',
  adopt: 'adopted',
  forget: 'forgotten',
  update: 'updated',
  archive: 'archived',
};

const heads = ['CRM', 'platform', 'conflicts', 'rejected', 'invalid', 'skipped'];

/** Renders the counts of a run. */
export function renderSummary(summary: Summary, { writes }: { writes: boolean }): string[] {
  const { contacts, templates, requests, certificate } = summary;
  return [
    `${writes ? 'Run' : 'Plan'} ${summary.run} of ${summary.mirror}: ${outcomeOf(summary)}`,
    '',
    ...table([
      ['', ...heads, writes ? 'done' : 'to do'],
      ['contacts', ...rowOf(contacts, writes)],
      ['templates', ...rowOf({ ...templates, skipped: 0 }, writes)],
    ]),
    '',
    ...heldLine(summary),
    ...writeBackLine(summary.returns, writes),
    `requests ${requests.total}, of them rate-limited ${requests.rateLimited}; ` +
      `readings certified: source ${yesNo(certificate.source)}, platform ${yesNo(certificate.platform)}`,
    ...(summary.plan === '' ? [] : [`plan ${summary.plan}`]),
  ];
}

function heldLine(summary: Summary): string[] {
  const held = heldIn(summary);
  const told = guardNames.filter((guard) => held[guard] > 0);
  if (told.length === 0) return [];
  const counts = told.map((guard) => {
    const people = guardRows[guard].recordType === 'contact' ? ' (people)' : '';
    return `${held[guard]} ${guardRows[guard].words.counted}${people}`;
  });
  return [`held: ${counts.join(', ')}`];
}

/** Returns no line if all counts are 0. */
function writeBackLine(returns: Summary['returns'], writes: boolean): string[] {
  if (!returns || Object.values<number>({ ...returns }).every((n) => n === 0)) return [];
  const { told, waiting, rejected, leftOut, doubtful } = returns;
  const parts = [
    ...(writes
      ? [`${told} told to the CRM`, `${waiting} wait`]
      : [`${waiting} to be told to the CRM`]),
    ...(rejected > 0 ? [`${rejected} not taken by it`] : []),
    ...(leftOut > 0 ? [`${leftOut} that \`returns\` cannot tell`] : []),
    ...(doubtful > 0 ? [`${doubtful} doubtful and not told (\`optouts\`)`] : []),
  ];
  return [`opt-outs of the platform: ${parts.join(', ')}`];
}

function outcomeOf({ status, mode, ms }: Summary): string {
  const done = status === 'rejected' ? 'done, but some records need a look' : status;
  return `${done} (${mode}, ${(ms / 1000).toFixed(1)} s)`;
}

type Shown = Pick<
  Summary['contacts'],
  'desired' | 'observed' | 'changes' | 'applied' | 'conflicts' | 'rejected' | 'invalid' | 'skipped'
>;

function rowOf(kind: Shown, writes: boolean): string[] {
  const counts = { ...kind.changes, ...(writes ? kind.applied : {}) };
  const done = Object.entries(counts).filter(([, n]) => n > 0);
  const text = done.map(([op, n]) => `${n} ${writes ? (words[op] ?? op) : op}`).join(', ');
  const numbers = [kind.conflicts, kind.rejected, kind.invalid, kind.skipped].map(String);
  return [String(kind.desired), String(kind.observed), ...numbers, text || 'nothing'];
}

/** Renders the first changes of a plan, one line each. */
export function renderChanges(
  changes: Iterable<Change & { held: boolean }>,
  nameOf: (change: Change) => string,
): string[] {
  const lines: string[] = [];
  let count = 0;
  for (const change of changes) {
    count += 1;
    if (count > shownChanges) continue;
    const part = change.part === '' ? '' : ` in ${change.part}`;
    const held = change.held ? ' (held)' : '';
    lines.push(`  ${change.op} ${change.kind} ${nameOf(change)}${part}${held}`);
  }
  if (count === 0) return [];
  const more = count - shownChanges;
  const rest = more > 0 ? [`  … and ${more} more change${more === 1 ? '' : 's'}`] : [];
  return ['', 'What a run would send:', ...lines, ...rest];
}

function yesNo(value: boolean | null): string {
  if (value === null) return 'not read';
  return value ? 'yes' : 'no';
}
