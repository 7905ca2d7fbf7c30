/** Shows the recorded problems, grouped by cause, with their remedy, and offers them as CSV. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { classWords, problemsSection, shownGroups } from '../../views/lookup/problem-groups.ts';
import { instant } from '../../compose/output/format-values.ts';
import { heldRecords, heldSections } from '../../views/status/status-sections.ts';
import { standingGroups } from '../../views/lookup/standing-problems.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { readerOf } from '../view/console-text.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, raw, sectionsHtml, timeOf } from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';

/** The page of the problems. */
export const problemsPage: Page = {
  path: 'problems',
  nav: 'Problems',
  show: async (request) => ({
    title: 'Problems',
    body: await request.mirror.read(request.user, (seen) => bodyOf(request, seen)),
  }),
};

/** A line for each record, as `problems --output` writes it, by that command. */
export const problemsFile: Page = {
  path: 'problems.csv',
  async show({ mirror, user, query }) {
    const folder = await mkdtemp(join(tmpdir(), 'crm-mirror-'));
    try {
      const file = join(folder, 'problems.csv');
      const of = classIn(query['class']);
      const done = await mirror.runApart([
        'problems',
        `--output=${file}`,
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

function bodyOf(request: PageRequest, { snapshot, names, config }: Seen): Html {
  if (!snapshot) return html`<p class="quiet">There is no snapshot yet.</p>`;
  const { user, query } = request;
  const { status } = request.mirror.status();
  const held = heldRecords(status);
  const all = standingGroups(snapshot, false).filter((group) => group.class !== 'held');
  const asked = classIn(query['class']);
  const found = all.filter((group) => asked === undefined || group.class === asked);
  const waiting = asked === undefined || asked === 'held' ? held : [];
  const groups = shownGroups(found, { names, addresses: user.seesAddresses, hidden: hiddenValue });
  const isRefused = all.some((group) => group.class === 'rejected');
  const isNone = groups.length + waiting.length === 0;
  const last = snapshot.runs.newest(5).find(({ endedAt }) => endedAt !== null);
  const again = {
    action: 'retry',
    label: 'Try all that was refused again',
    needsReason: 'optional',
    isSecond: held.length > 0,
  } as const;
  const running = html`<p class="quiet">
    ${last ? html`As of the run of ${timeOf(instant(last.startedAt))}.` : ''} The run in progress
    adds its problems when it ends.
  </p>`;
  const forms = (id: string): Html | '' => {
    const approvals = linkTo(request, 'approvals');
    if (id === 'held')
      return html`<p><a class="button" href="${approvals}">Look at the changes</a></p>`;
    const { count = 0, samples = [], class: of } = groups[Number(id)] ?? {};
    const file = listLink(request, of, '.csv');
    return count > samples.length ? html`<br /><a href="${file}">all of them as CSV</a>` : '';
  };
  const open = held.reduce((sum, one) => sum + one.open, 0);
  const tab = (of: ProblemClass | undefined, text: string): Html => {
    const those = all.filter((group) => of === undefined || group.class === of);
    const others = of === undefined || of === 'held' ? open : 0;
    const records = withCommas(those.reduce((sum, { count }) => sum + count, others));
    const current = of === asked && raw('aria-current="page"');
    return html`<a href="${listLink(request, of)}" ${current}>${text} (${records})</a>`;
  };
  return html`${status.running && running}
    <p class="row">${tab(undefined, 'all')} ${classes.map((of) => tab(of, classWords[of]))}</p>
    <div class="row">
      ${!isNone && html`<a class="button second" href="${listLink(request, asked, '.csv')}">Download as CSV</a>`}
      ${isRefused && actionForm(request, again)}
    </div>
    ${sectionsHtml(
      [
        ...heldSections(snapshot, waiting),
        ...(groups.length > 0 ? [problemsSection(groups, { found, config })] : []),
        ...(isNone ? [{ none: 'No problems are recorded.' }] : []),
      ],
      { ...readerOf(request, snapshot), forms },
    )}`;
}

function listLink(request: PageRequest, of: ProblemClass | undefined, end = ''): string {
  return linkTo(request, `problems${end}${of === undefined ? '' : `?class=${of}`}`);
}

const hiddenValue = '(the value is hidden from viewers)';
