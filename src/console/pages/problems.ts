/** Shows the recorded problems, grouped by cause, with their remedy, and offers them as CSV. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import type { ProblemGroup } from '../../engine/report/problem-groups.ts';
import { heldReason, standingGroups } from '../../views/lookup/standing-problems.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { classWords, type ShownGroup, shownGroups } from '../../compose/output/problem-groups.ts';
import { instant } from '../../compose/output/format-values.ts';
import type { CurrentStatus } from '../../views/status/mirror-status.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { withChannelNames } from '../view/channel-name.ts';
import { actionForm } from '../view/form.ts';
import {
  html,
  type Html,
  linkTo,
  type Page,
  type PageRequest,
  prose,
  raw,
  timeOf,
} from '../view/page.ts';
import { personLink } from '../view/person-link.ts';
import { remedyOf, saidOf } from './problem-remedy.ts';

/** The page of the problems. */
export const problemsPage: Page = {
  path: 'problems',
  nav: 'Problems',
  show: async (request) =>
    request.mirror.read(request.user, (seen) => ({
      title: 'Problems',
      body: bodyOf(request, seen),
    })),
};

/** A line for each record, as `problems --csv` writes it, by that command. */
export const problemsFile: Page = {
  path: 'problems.csv',
  async show({ mirror, user, query }) {
    const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-'));
    try {
      const file = join(folder, 'problems.csv');
      const of = classIn(query['class']);
      const done = await mirror.runApart([
        'problems',
        `--csv=${file}`,
        ...(of === undefined ? [] : [`--class=${of}`]),
        ...(user.seesAddresses ? ['--addresses'] : []),
      ]);
      if (done.code !== 0) {
        const lines = done.lines.map((line) => html`<p>${line}</p>`);
        return { title: 'This did not work', code: 500, body: html`${lines}` };
      }
      return { type: 'text/csv', text: await readFile(file, 'utf8'), name: 'problems.csv' };
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  },
};

const classes: readonly ProblemClass[] = ['rejected', 'conflict', 'invalid', 'held'];

function classIn(text: string | undefined): ProblemClass | undefined {
  return classes.find((name) => name === text);
}

function bodyOf(request: PageRequest, { snapshot, names }: Seen): Html {
  if (!snapshot) return html`<p class="quiet">There is no snapshot yet.</p>`;
  const { user, query } = request;
  const held = heldOf(request.mirror.status().status);
  const all = standingGroups(snapshot).filter((group) => group.class !== 'held');
  const asked = classIn(query['class']);
  const groups = all.filter((group) => asked === undefined || group.class === asked);
  const waiting = asked === undefined || asked === 'held' ? held : [];
  const options = { names, addresses: user.seesAddresses, hidden: hiddenValue };
  const linkOf = (group: ProblemGroup, key: string): string | undefined =>
    group.kind === 'contact' && key.includes('@') ? personLink(request, snapshot, key) : undefined;
  const sections = shownGroups(groups, options).map((group, at) => {
    const found = groups[at];
    const what = { option: found?.option, isCut: group.count > group.samples.length };
    return groupPart(request, { ...group, ...what }, (sample) => {
      const key = found?.samples[sample]?.key;
      return found && key !== undefined ? linkOf(found, key) : undefined;
    });
  });
  const isRefused = all.some((group) => group.class === 'rejected');
  const isNone = groups.length + waiting.length === 0;
  const file = linkTo(request, `problems.csv${queryOf(asked)}`);
  return html`${asOf(request, snapshot)} ${tabs(request, { all, held }, asked)}
    <div class="row">
      ${isNone ? '' : html`<a class="button" href="${file}">Download as CSV</a>`}
      ${isRefused ? actionForm(request, { action: 'retry', label: 'Try all that was refused again', needsReason: 'optional' }) : ''}
    </div>
    ${waiting.map((one) => heldPart(request, snapshot, one))} ${sections}
    ${isNone ? html`<p class="quiet">No problems are recorded.</p>` : ''}`;
}

/** Says that a run in progress is not in the list yet. */
function asOf({ mirror }: PageRequest, { runs }: Snapshot): Html | '' {
  if (!mirror.status().status.running) return '';
  const last = runs.newest(5).find(({ endedAt }) => endedAt !== null);
  const since = last ? html`As of the run of ${timeOf(instant(last.startedAt))}.` : '';
  return html`<p class="quiet">${since} The run in progress adds its problems when it ends.</p>`;
}

/** What stands for a value that may be personal. */
const hiddenValue = '(the value is hidden from viewers)';

function queryOf(asked: ProblemClass | undefined): string {
  return asked === undefined ? '' : `?class=${asked}`;
}

interface Listed {
  all: readonly ProblemGroup[];
  held: readonly HeldRecords[];
}

const tabWords = {
  ...classWords,
  held: 'awaiting a decision',
  rejected: 'refused by the platform',
};

function tabs(request: PageRequest, { all, held }: Listed, asked: ProblemClass | undefined): Html {
  const waiting = held.reduce((sum, { open }) => sum + open, 0);
  const tab = (of: ProblemClass | undefined, text: string): Html => {
    const found = all.filter((group) => of === undefined || group.class === of);
    const others = of === undefined || of === 'held' ? waiting : 0;
    const records = withCommas(found.reduce((sum, { count }) => sum + count, others));
    const href = linkTo(request, `problems${queryOf(of)}`);
    return html`<a href="${href}" ${of === asked ? raw('aria-current="page"') : ''}
      >${text} (${records})</a
    >`;
  };
  return html`<p class="row">
    ${tab(undefined, 'all')} ${classes.map((of) => tab(of, tabWords[of]))}
  </p>`;
}

/** What a guard withholds. */
interface HeldRecords {
  guard: GuardClass;
  /** The records about which nobody has decided, and those that are approved and wait for a run. */
  open: number;
  approved: number;
  /** From when on held opt-outs are applied without approval; null for other changes. */
  until: string | null;
}

function heldOf({ held }: CurrentStatus): HeldRecords[] {
  return guardNames.flatMap((guard) => {
    const open = Math.max(0, ...held.map(({ undecided }) => undecided[guard]));
    const approved = Math.max(0, ...held.map(({ ready }) => ready[guard]));
    const ends = held.flatMap(({ optOutsUntil }) => optOutsUntil ?? []).toSorted();
    const until = timedGuards.has(guard) ? (ends[0] ?? null) : null;
    return open + approved === 0 ? [] : [{ guard, open, approved, until }];
  });
}

function heldPart(
  request: PageRequest,
  snapshot: Snapshot,
  { guard, open, approved, until }: HeldRecords,
): Html {
  const { recordType, words } = guardRows[guard];
  const parts = [
    ...(open === 0 ? [] : [`${countWords(recordType, open)} awaiting a decision`]),
    ...(approved === 0 ? [] : [`${countWords(recordType, approved)} approved, waiting for a run`]),
  ];
  const said = open === 0 ? undefined : heldReason(snapshot, guard);
  return html`<section>
    <h2>${words.heading} · ${parts.join(', ')}</h2>
    ${said ? html`<p>${prose(said.reason)}</p>` : ''}
    ${until === null ? '' : html`<p>From ${prose(until)} on, what the CRM still states is applied without approval.</p>`}
    <p><a class="button" href="${linkTo(request, 'approvals')}">Look at the changes</a></p>
  </section>`;
}

type GroupParts = ShownGroup & { option: string | undefined; isCut: boolean };

function groupPart(
  request: PageRequest,
  { class: of, kind, count, reason, samples, isCut, ...group }: GroupParts,
  linkOf: (sample: number) => string | undefined,
): Html {
  const named = samples.map(({ key, place }, at) => {
    const href = linkOf(at);
    const where = place === null || place === key ? '' : ` (${place})`;
    // A record without an address is known by its id in the CRM only.
    const who = key.startsWith('id ') ? `record ${key.slice('id '.length)}` : key;
    return html`<li>${href === undefined ? who : html`<a href="${href}">${who}</a>`}${where}</li>`;
  });
  const remedy = remedyOf(request, group);
  const file = linkTo(request, `problems.csv${queryOf(of)}`);
  return html`<section>
    <h2>
      ${withCommas(count)} ×
      ${group.cause === 'crm-refused' ? 'refused by the CRM' : tabWords[of]}${kind === 'template' ? ', templates' : ''}
    </h2>
    <p>${prose(withChannelNames(request, saidOf(request, reason, group.option)))}</p>
    ${remedy === '' ? '' : html`<p><strong>What to do:</strong> ${remedy}</p>`}
    <ul>
      ${named}
    </ul>
    ${
      isCut && samples.length > 0
        ? html`<p>
            … and ${withCommas(count - samples.length)} more:
            <a href="${file}">all of them as CSV</a>
          </p>`
        : ''
    }
  </section>`;
}
