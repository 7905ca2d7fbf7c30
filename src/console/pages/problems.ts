/** Shows the recorded problems, grouped by cause, with their remedy, and offers them as CSV. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { withCommas } from '../../domain/values/counted.ts';
import type { ProblemGroup } from '../../engine/report/problem-groups.ts';
import { standingGroups } from '../../cli/lookup/standing-problems.ts';
import type { Seen } from '../../cli/lookup/snapshot-command.ts';
import { classWords, type ShownGroup, shownGroups } from '../../cli/output/problem-groups.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, linkTo, type Page, type PageRequest, prose, raw } from '../view/page.ts';
import { personLink } from '../view/person-link.ts';

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
  const all = standingGroups(snapshot);
  const asked = classIn(query['class']);
  const groups = all.filter((group) => asked === undefined || group.class === asked);
  const shown = shownGroups(groups, { names, addresses: user.seesAddresses });
  const linkOf = (group: ProblemGroup, key: string): string | undefined =>
    group.kind === 'contact' && key.includes('@') ? personLink(request, snapshot, key) : undefined;
  const sections = shown.map((group, at) =>
    groupPart(request, group, (sample) => {
      const found = groups[at];
      const key = found?.samples[sample]?.key;
      return found && key !== undefined ? linkOf(found, key) : undefined;
    }),
  );
  const isRefused = all.some((group) => group.class === 'rejected');
  return html`${tabs(request, all, asked)}
    <div class="row">
      ${
        groups.length === 0
          ? ''
          : html`<a class="button" href="${linkTo(request, `problems.csv${queryOf(asked)}`)}"
              >Download as CSV</a
            >`
      }
      ${isRefused ? actionForm(request, { action: 'retry', label: 'Try all that was refused again', needsReason: 'optional' }) : ''}
    </div>
    ${sections} ${groups.length === 0 ? html`<p class="quiet">No problems are recorded.</p>` : ''}`;
}

function queryOf(asked: ProblemClass | undefined): string {
  return asked === undefined ? '' : `?class=${asked}`;
}

function tabs(
  request: PageRequest,
  all: readonly ProblemGroup[],
  asked: ProblemClass | undefined,
): Html {
  const tab = (of: ProblemClass | undefined, text: string): Html => {
    const found = all.filter((group) => of === undefined || group.class === of);
    const records = withCommas(found.reduce((sum, { count }) => sum + count, 0));
    const href = linkTo(request, `problems${queryOf(of)}`);
    return html`<a href="${href}" ${of === asked ? raw('aria-current="page"') : ''}
      >${text} (${records})</a
    >`;
  };
  return html`<p class="row">
    ${tab(undefined, 'all')} ${classes.map((of) => tab(of, classWords[of]))}
  </p>`;
}

function groupPart(
  request: PageRequest,
  { class: of, kind, count, reason, fix, samples }: ShownGroup,
  linkOf: (sample: number) => string | undefined,
): Html {
  const named = samples.map(({ key, place }, at) => {
    const href = linkOf(at);
    const where = place === null || place === key ? '' : ` (${place})`;
    return html`<li>${href === undefined ? key : html`<a href="${href}">${key}</a>`}${where}</li>`;
  });
  const more = count - samples.length;
  return html`<section>
    <h2>${withCommas(count)} × ${classWords[of]}${kind === 'template' ? ', templates' : ''}</h2>
    <p>${prose(reason)}</p>
    ${fix === '' ? '' : html`<p><strong>What to do:</strong> ${prose(fix)}</p>`}
    ${of === 'held' ? html`<p><a href="${linkTo(request, 'approvals')}">Look at the changes</a></p>` : ''}
    <ul>
      ${named}
    </ul>
    ${more > 0 && samples.length > 0 ? html`<p class="quiet">… and ${withCommas(more)} more</p>` : ''}
  </section>`;
}
