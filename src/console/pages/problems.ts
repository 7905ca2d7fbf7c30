/** Shows the recorded problems, grouped by cause, with their remedy, and offers them as CSV. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { z } from 'zod';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import type { ProblemClass } from '../../domain/record-problem.ts';
import { withCommas } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import type { ProblemGroup } from '../../engine/report/problem-groups.ts';
import { classWords, type ShownGroup, shownGroups } from '../../compose/output/problem-groups.ts';
import { instant } from '../../compose/output/format-values.ts';
import { heldReason, standingGroups } from '../../views/lookup/standing-problems.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import type { CurrentStatus } from '../../views/status/status-document.ts';
import { channelName, consoleText, personLink, withChannelNames } from '../view/console-text.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, prose, raw, timeOf } from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';

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
  const { status } = request.mirror.status();
  const held = heldIn(status);
  const all = standingGroups(snapshot).filter((group) => group.class !== 'held');
  const asked = classIn(query['class']);
  const groups = all.filter((group) => asked === undefined || group.class === asked);
  const waiting = asked === undefined || asked === 'held' ? held : [];
  const options = { names, addresses: user.seesAddresses, hidden: hiddenValue };
  const linkOf = (group: ProblemGroup, key: string): string | undefined =>
    group.kind === 'contact' && key.includes('@') ? personLink(request, snapshot, key) : undefined;
  const sections = shownGroups(groups, options).map((group, at) => {
    const found = groups[at];
    return groupPart(request, { ...group, option: found?.option }, (sample) => {
      const key = found?.samples[sample]?.key;
      return found && key !== undefined ? linkOf(found, key) : undefined;
    });
  });
  const heldPart = ({ guard, open, approved, until }: HeldRecords): Html => {
    const { recordType, words } = guardRows[guard];
    const parts = [
      open === 0 ? '' : `${countWords(recordType, open)} awaiting a decision`,
      approved === 0 ? '' : `${countWords(recordType, approved)} approved, waiting for a run`,
    ].filter((part) => part !== '');
    const why = open === 0 ? undefined : heldReason(snapshot, guard);
    return html`<section>
      <h2>${words.heading} · ${parts.join(', ')}</h2>
      ${why ? html`<p>${prose(why.reason)}</p>` : ''}
      ${until === null ? '' : html`<p>From ${prose(until)} on, what the CRM still states is applied without approval.</p>`}
      <p><a class="button" href="${linkTo(request, 'approvals')}">Look at the changes</a></p>
    </section>`;
  };
  const isRefused = all.some((group) => group.class === 'rejected');
  const isNone = groups.length + waiting.length === 0;
  const last = snapshot.runs.newest(5).find(({ endedAt }) => endedAt !== null);
  const running = html`<p class="quiet">
    ${last ? html`As of the run of ${timeOf(instant(last.startedAt))}.` : ''} The run in progress
    adds its problems when it ends.
  </p>`;
  return html`${status.running ? running : ''} ${tabs(request, { all, held }, asked)}
    <div class="row">
      ${isNone ? '' : html`<a class="button" href="${listLink(request, asked, '.csv')}">Download as CSV</a>`}
      ${isRefused ? actionForm(request, { action: 'retry', label: 'Try all that was refused again', needsReason: 'optional' }) : ''}
    </div>
    ${waiting.map(heldPart)} ${sections}
    ${isNone ? html`<p class="quiet">No problems are recorded.</p>` : ''}`;
}

/** Returns the address of the list of a class, as a page or as a file. */
function listLink(request: PageRequest, of: ProblemClass | undefined, end = ''): string {
  return linkTo(request, `problems${end}${of === undefined ? '' : `?class=${of}`}`);
}

/** What stands for a value that may be personal. */
const hiddenValue = '(the value is hidden from viewers)';

const tabWords = {
  ...classWords,
  held: 'awaiting a decision',
  rejected: 'refused by the platform',
};

function tabs(
  request: PageRequest,
  { all, held }: { all: readonly ProblemGroup[]; held: readonly HeldRecords[] },
  asked: ProblemClass | undefined,
): Html {
  const waiting = held.reduce((sum, { open }) => sum + open, 0);
  const tab = (of: ProblemClass | undefined, text: string): Html => {
    const found = all.filter((group) => of === undefined || group.class === of);
    const others = of === undefined || of === 'held' ? waiting : 0;
    const records = withCommas(found.reduce((sum, { count }) => sum + count, others));
    const href = listLink(request, of);
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

function heldIn({ held }: CurrentStatus): HeldRecords[] {
  return guardNames.flatMap((guard) => {
    const open = Math.max(0, ...held.map(({ undecided }) => undecided[guard]));
    const approved = Math.max(0, ...held.map(({ ready }) => ready[guard]));
    const ends = held.flatMap(({ optOutsUntil }) => optOutsUntil ?? []).toSorted();
    const until = timedGuards.has(guard) ? (ends[0] ?? null) : null;
    return open + approved === 0 ? [] : [{ guard, open, approved, until }];
  });
}

function groupPart(
  request: PageRequest,
  group: OptionGroup,
  linkOf: (sample: number) => string | undefined,
): Html {
  const { class: of, kind, count, reason, samples } = group;
  const named = samples.map(({ key, place }, at) => {
    const href = linkOf(at);
    const where = place === null || place === key ? '' : ` (${place})`;
    // A record without an address is known by its id in the CRM only.
    const who = key.startsWith('id ') ? `record ${key.slice('id '.length)}` : key;
    return html`<li>${href === undefined ? who : html`<a href="${href}">${who}</a>`}${where}</li>`;
  });
  const remedy = remedyOf(request, group);
  const file = listLink(request, of, '.csv');
  return html`<section>
    <h2>
      ${withCommas(count)} ×
      ${group.cause === 'crm-refused' ? 'refused by the CRM' : tabWords[of]}${kind === 'template' ? ', templates' : ''}
    </h2>
    <p>${prose(withChannelNames(request, reasonWords(request, reason, group.option)))}</p>
    ${remedy === '' ? '' : html`<p><strong>What to do:</strong> ${remedy}</p>`}
    <ul>
      ${named}
    </ul>
    ${
      count > samples.length && samples.length > 0
        ? html`<p>
            … and ${withCommas(count - samples.length)} more:
            <a href="${file}">all of them as CSV</a>
          </p>`
        : ''
    }
  </section>`;
}

/** A group with the option of the configuration that it is about. */
type OptionGroup = ShownGroup & { option: string | undefined };

/** Returns what to do, in the CRM or in the configuration; '' if nothing is known. */
function remedyOf(request: PageRequest, { cause, values, fix, option }: OptionGroup): Html | '' {
  if (cause !== 'unknown-word' || option === undefined) {
    return fix === '' ? '' : consoleText(request, fix);
  }
  const [value, ...more] = values;
  const known = wordsOf(request.mirror.config, option);
  const which = value === undefined || more.length > 0 ? 'these values' : `“${value.value}”`;
  const [one, other] = known;
  return html`In the CRM, change ${which} to “${one}” or “${other}”; or the person who maintains
  ${basename(request.mirror.config.file)} says what it means (${prose(`\`${fix}\``)}).`;
}

const notAnAddress = /^"([^"]*)" is not an email address/;
const inColumn = 'The column "$1" holds something that is not an address';

/** Returns the reason, with the channel in words where an option of the configuration stands. */
function reasonWords(request: PageRequest, reason: string, option: string | undefined): string {
  if (option === undefined) return reason.replace(notAnAddress, inColumn);
  const at = /^contacts\.channels\[(\d+)\]/.exec(option)?.[1];
  const id = request.mirror.config.contacts?.channels[Number(at)]?.id;
  const what = id === undefined ? option : `${channelName(request, id)} (\`${option}\`)`;
  return reason.replace(`${option}: `, () => `${what}: `);
}

const list = z.union([z.string(), z.array(z.string())]).optional();
const stated = z.object({ in: list, out: list, yes: list, no: list });
const folder = z.record(z.string(), z.unknown()).or(z.array(z.unknown()));

/** Returns a word for yes and one for no, as the configuration names them or as they always are. */
function wordsOf(config: Config, option: string): [yes: string, no: string] {
  let at: unknown = config;
  for (const step of option.split(/[.[\]]+/).filter((part) => part !== '')) {
    const inside = folder.safeParse(at);
    at = inside.success
      ? Object.entries(inside.data).find(([name]) => name === step)?.[1]
      : undefined;
  }
  const own = stated.safeParse(at);
  const first = (words: z.infer<typeof list>): string | undefined => [words ?? []].flat()[0];
  if (!own.success) return ['yes', 'no'];
  const { in: into, out, yes, no } = own.data;
  return [first(into ?? yes) ?? 'yes', first(out ?? no) ?? 'no'];
}
