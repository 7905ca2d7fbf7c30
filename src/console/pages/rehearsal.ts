/**
 * Rehearses the next run for operators, and shows everybody how it would go: how long, what it
 * would do, and who would end otherwise.
 */
import { z } from 'zod';
import { guardNames, guardRows } from '../../domain/guard-classes.ts';
import { deferredCount } from '../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import { limitWords } from '../../engine/report/duration-forecast.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { heldIn } from '../../engine/report/run-summary.ts';
import { instant, lasting } from '../../compose/output/format-values.ts';
import type { CommandAnswer } from '../../compose/separate-process.ts';
import { changeName, stateWords } from '../../compose/output/change-words.ts';
import { classWords } from '../../compose/output/problem-groups.ts';
import { optedOutWords } from '../../views/lookup/missing-people.ts';
import { maskedText } from '../../views/lookup/person-names.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { actionForm } from '../view/form.ts';
import { jobSection } from '../view/live-area.ts';
import { documentIn, heldPeople, type Job, rehearsalSubject } from '../view/jobs.ts';
import {
  html,
  type Html,
  prose,
  timeOf,
  timeText,
  type Cell,
  factsTable,
  names,
  numbers,
  table,
} from '../../views/render/html.ts';
import { link, linesSection, linkTo, type Page, type PageRequest } from '../view/page.ts';
import { channelName, namedRecord } from '../view/console-text.ts';

/** The page of the last rehearsal. */
export const rehearsalPage: Page = {
  path: 'rehearsal',
  async show(request) {
    const job = request.mirror.jobs.get(rehearsalSubject);
    const isRunning = job !== undefined && !job.answer;
    const body = html`<p>
        A rehearsal reads the CRM and the platform, and then makes the next run on copies. It shows
        how the run would go and how long it would take. Nothing is sent, and nothing changes.
      </p>
      ${isRunning ? jobSection(request, job, 'The next run is being rehearsed.') : formSection(request)}
      ${job?.answer ? await answerPart(request, job, job.answer) : ''}
      ${job ? '' : html`<p class="quiet">Nothing has been rehearsed since this console began.</p>`}`;
    return { title: 'Rehearsal', body };
  },
};

/** Returns the link to the page, for operators, and for everybody if there is an answer. */
export function rehearsalLink(request: PageRequest): Html | '' {
  const job = request.mirror.jobs.get(rehearsalSubject);
  const isOperator = request.user.role === 'operator';
  if (!isOperator && !job) return '';
  const text = isOperator ? 'Rehearse the next run' : 'Look at the rehearsal';
  return html`<a class="button second" href="${linkTo(request, 'rehearsal')}">${text}</a>`;
}

async function answerPart(request: PageRequest, job: Job, answer: CommandAnswer): Promise<Html> {
  const { by, endedAt = job.startedAt } = job;
  const found = documentIn(answer, rehearsal);
  if (!Array.isArray(found)) {
    const about = { found, by, at: instant(endedAt) };
    return request.mirror.read(request.user, (seen) => resultOf(request, seen, about));
  }
  const isHidden = !request.user.seesAddresses && found.length > 0;
  const lines = isHidden ? ['An operator sees here why it could not be made.'] : found;
  return linesSection('The rehearsal could not be made', lines);
}

function formSection(request: PageRequest): Html | '' {
  if (request.user.role !== 'operator') return '';
  const fields = html`<label
      >Which run
      <select name="mode">
        <option value="full">full: compares everything with the platform</option>
        <option value="fast">fast: compares the CRM with what is recorded</option>
      </select></label
    >
    <label
      >Rate limits (optional)
      <input
        name="limits"
        maxlength="1000"
        autocomplete="off"
        spellcheck="false"
        placeholder="contacts.enrol=30/60"
        aria-describedby="limits-hint"
    /></label>`;
  return html`<section>
    <h2>Rehearse the next run</h2>
    ${actionForm(request, { action: 'rehearse', label: 'Rehearse', fields })}
    <p class="quiet" id="limits-hint">
      Without a limit here, those that the platform has stated count.
      <code>contacts.enrol=30/60</code>
      means: 30 opt-ins and opt-outs in 60 seconds. Separate several with a space.
    </p>
  </section>`;
}

const counts = z.record(z.string(), z.number());
const state = z.object({ status: z.string(), channels: z.record(z.string(), z.string()) });
const sizes = { before: z.number(), after: z.number() };

const rehearsal = z.object({
  status: z.enum(['done', 'held', 'rejected', 'failed', 'interrupted']),
  mode: z.string(),
  plan: z.string(),
  ms: z.number(),
  reads: z.number(),
  contacts: z.object({ changes: counts, applied: counts, held: heldPeople }),
  templates: z.object({ changes: counts, applied: counts, held: z.number() }),
  requests: z.object({ total: z.number(), byRoute: counts, rateLimited: z.number() }),
  limits: z.array(
    z.object({
      route: z.string(),
      limit: z.number(),
      windowMs: z.number(),
      from: z.enum(['given', 'seen', 'assumed']),
    }),
  ),
  deferred: counts,
  reasons: z.array(z.string()),
  groups: z.array(
    z.object({
      class: z.enum(['held', 'rejected', 'invalid', 'conflict']),
      kind: z.string(),
      cause: z.string(),
      count: z.number(),
      reason: z.string(),
      fix: z.string(),
    }),
  ),
  end: z.object({
    contacts: z.object(sizes),
    templates: z.object(sizes),
    channels: z.array(z.object({ id: z.string(), name: z.string().nullable(), ...sizes })),
  }),
  missing: z.object({
    before: z.number(),
    after: z.number(),
    waiting: z.number(),
    optedOutAfter: z.object({ readings: z.number(), ms: z.number() }).nullable(),
  }),
  peopleCount: z.number(),
  people: z.array(
    z.object({
      key: z.string(),
      before: state.nullable(),
      after: state.nullable(),
      changes: z.array(
        z.object({
          op: z.string(),
          parts: z.array(z.string()),
          held: z.boolean(),
          reason: z.string(),
        }),
      ),
    }),
  ),
  changedTemplates: z.array(
    z.object({ name: z.string(), before: z.boolean(), after: z.boolean() }),
  ),
});
type Rehearsal = z.output<typeof rehearsal>;

const endings: Readonly<
  Record<Rehearsal['status'], readonly [kind: 'good' | 'busy' | 'bad', text: string]>
> = {
  done: ['good', 'It would end well'],
  held: ['busy', 'Some changes would await approval'],
  rejected: ['busy', 'It would end, but some records have problems'],
  failed: ['bad', 'It would fail'],
  interrupted: ['bad', 'The rehearsal was stopped'],
};

/** Returns the result. Who may not see addresses sees hashes, and no values of the CRM. */
function resultOf(
  request: PageRequest,
  seen: Seen,
  { found, by, at }: { found: Rehearsal; by: string; at: string },
): Html {
  const [kind, text] = endings[found.status];
  const { reasons, missing } = found;
  const why = request.user.seesAddresses
    ? html`<ul>
        ${reasons.map((reason) => html`<li>${prose(reason)}</li>`)}
      </ul>`
    : html`<p class="quiet">An operator sees here why.</p>`;
  const later = deferredCount(found.deferred);
  const deferred = html`<p>
    ${counted(later, 'record')} would wait for a later run, because the configuration allows such
    changes at certain hours only, or begins with a canary.
  </p>`;
  const more = missing.after - missing.before;
  const then = missing.waiting === 0 ? '' : `: ${optedOutWords(missing.optedOutAfter)}`;
  const gone = html`<p>
    ${counted(more, 'more person', 'more people')} would be missing from the CRM${then}.
  </p>`;
  return html`<p class="state"><span class="chip ${kind}">${text}</span></p>
    <p class="quiet">
      A ${found.mode} run, rehearsed by ${by} at ${timeOf(at)}. What changes in the CRM or on the
      platform later is not in it.
    </p>
    ${tiles(found)} ${reasons.length === 0 ? '' : why} ${later === 0 ? '' : deferred}
    ${more > 0 ? gone : ''} ${approvalsSection(found)} ${changesSection(found)} ${endSection(found)}
    ${requestsSection(request, found, at)} ${problemsSection(request, found)}
    ${peopleSection(request, seen, found)}`;
}

function tiles(found: Rehearsal): Html {
  const { ms, peopleCount, requests } = found;
  const held = Object.values(heldIn(found)).reduce((all, n) => all + n, 0);
  const tile = (value: string, what: string): Html =>
    html`<div class="tile"><b>${value}</b> ${what}</div>`;
  return html`<div class="tiles">
    ${tile(lasting(ms), 'it would take')}
    ${tile(withCommas(peopleCount), 'people would end otherwise than today')}
    ${tile(withCommas(held), 'would await approval')}
    ${tile(withCommas(requests.total), 'requests to the platform')}
  </div>`;
}

function approvalsSection(found: Rehearsal): Html | '' {
  const counts = heldIn(found);
  const held = guardNames.filter((guard) => counts[guard] > 0);
  if (held.length === 0) return '';
  return html`<section>
    <h2>What would await approval</h2>
    <ul>
      ${held.map((guard) => {
        const { recordType, words } = guardRows[guard];
        const who = countWords(recordType, counts[guard]);
        return html`<li>${who} ${words.planned}: ${words.cause}.</li>`;
      })}
    </ul>
    <p class="quiet">After the run, these are on the page Approvals.</p>
  </section>`;
}

/** What the run would have done, by operation. */
const done: Readonly<Record<'contacts' | 'templates', Readonly<Record<string, string>>>> = {
  contacts: {
    create: 'people created',
    opt_in: 'subscriptions opted in',
    opt_out: 'subscriptions opted out',
    delete: 'people deleted',
    adopt: 'people found on the platform, and managed from now on',
  },
  templates: {
    create: 'templates created',
    update: 'templates updated',
    archive: 'templates archived',
    adopt: 'templates found on the platform, and managed from now on',
  },
};

function changesSection(found: Rehearsal): Html {
  const rows = (['contacts', 'templates'] as const).flatMap((of) => {
    const { applied, changes } = found[of];
    const counts = Object.entries({ ...applied, adopt: changes['adopt'] ?? 0 });
    const some = counts.filter(([, n]) => n > 0);
    return some.map(([op, n]): Cell[] => [done[of][op] ?? changeName(op, true), withCommas(n)]);
  });
  return html`<section>
    <h2>What it would do</h2>
    ${table([names('Change'), numbers('Number')], rows, 'Nothing.')}
  </section>`;
}

const mostTemplates = 50;

function endSection({ end, changedTemplates }: Rehearsal): Html {
  const { contacts, templates, channels } = end;
  const all = [
    { what: 'contacts on the platform', ...contacts },
    ...channels.map(({ id, name, ...of }) => ({ what: `subscribed to ${name ?? id}`, ...of })),
    { what: 'templates', ...templates },
  ];
  const rows = all
    .filter(({ before, after }) => before !== after)
    .map(({ what, before, after }) => [what, withCommas(before), withCommas(after)]);
  const named = changedTemplates.slice(0, mostTemplates).map(({ name }) => name);
  const more = changedTemplates.length > named.length ? ' …' : '';
  const templatesPart =
    named.length === 0 ? '' : html`<p>Templates that would change: ${named.join(', ')}${more}</p>`;
  return html`<section>
    <h2>The platform today, and after the run</h2>
    ${table([names('What'), numbers('Today'), numbers('After')], rows, 'These numbers would stay as they are.')}
    ${templatesPart}
  </section>`;
}

type Person = Rehearsal['people'][number];

function peopleSection(
  request: PageRequest,
  seen: Seen,
  { people, peopleCount }: Rehearsal,
): Html | '' {
  const { snapshot, names: nameOf } = seen;
  if (peopleCount === 0) return '';
  const isNamed = snapshot !== undefined || request.user.seesAddresses;
  const row = ({ key, before, after, changes }: Person): Cell[] => {
    const reasons = [...new Set(changes.map(({ reason }) => reason))].join('; ');
    const who = namedRecord(request, seen, { kind: 'contact', key });
    const states = `${stateIn(request, before)} → ${stateIn(request, after)}`;
    return [who, states, request.user.seesAddresses ? reasons : maskedText(reasons, nameOf)];
  };
  const more = peopleCount - people.length;
  // Without a snapshot, there is no key from which a hash could be made.
  const hidden = html`<p class="quiet">An operator sees here who.</p>`;
  return html`<section>
    <h2>Who would end otherwise than today</h2>
    ${isNamed ? factsTable(people.map(row), [names('Who'), 'Today → after the run', 'Why']) : hidden}
    ${
      isNamed && more > 0
        ? html`<p class="quiet">
            … and ${withCommas(more)} more. <code>crm-mirror rehearse --all</code> names all.
          </p>`
        : ''
    }
  </section>`;
}

function stateIn(request: PageRequest, state: Person['before']): string {
  if (!state) return stateWords(state);
  const channels = Object.entries(state.channels).map(
    ([id, is]) => [channelName(request, id), is] as const,
  );
  return stateWords({ ...state, channels: Object.fromEntries(channels) });
}

/** Without addresses, the words and values of records stay hidden: the cause is said alone. */
function problemsSection(request: PageRequest, { groups }: Rehearsal): Html | '' {
  const shown = groups.filter((group) => group.class !== 'held');
  if (shown.length === 0) return '';
  const items = shown.map(({ class: of, kind, cause, count, reason, fix }) => {
    const records = `${withCommas(count)} × ${classWords[of]}${kind === 'template' ? ', templates' : ''}`;
    const what = request.user.seesAddresses
      ? prose(`${reason}${fix === '' ? '' : ` → ${fix}`}`)
      : cause;
    return html`<li><b>${records}</b>: ${what}</li>`;
  });
  return html`<section>
    <h2>Records with a problem</h2>
    <ul>
      ${items}
    </ul>
    <p>${link(request, 'problems', 'Problems recorded so far')}</p>
  </section>`;
}

const origins: Readonly<Record<Rehearsal['limits'][number]['from'], string>> = {
  given: 'given for this rehearsal',
  seen: 'stated by the platform',
  assumed: 'assumed: nobody knows it yet',
};

function requestsSection(
  request: PageRequest,
  { requests, limits, reads }: Rehearsal,
  rehearsedAt: string,
): Html {
  const { byRoute, rateLimited } = requests;
  const { limits: known, running } = request.mirror.status().status;
  // The rehearsal took the limit of a route from the last run.
  const asOf = (route: string): string => {
    const at = known.find((one) => one.route === route)?.at;
    if (at === undefined || at > rehearsedAt) return '';
    const isBefore = running !== null && at < running.since;
    return `, as of ${timeText(at)}${isBefore ? ', before the current run' : ''}`;
  };
  const rows = Object.entries(byRoute)
    .toSorted(([, a], [, b]) => b - a)
    .map(([route, n]): Cell[] => {
      const limit = limits.find((one) => one.route === route);
      const words = limit ? limitWords({ ...limit, others: 0 }, lasting) : '–';
      const origin = limit ? origins[limit.from] : '–';
      const since = limit?.from === 'seen' ? asOf(route) : '';
      return [route, withCommas(n), words, `${origin}${since}`];
    });
  return html`<section>
    <h2>Requests by route</h2>
    ${table([names('Route'), numbers('Requests'), numbers('Limit'), 'The limit is'], rows, 'None.')}
    ${
      rateLimited > 0
        ? html`<p>${withCommas(rateLimited)} of them would be refused by a rate limit (429).</p>`
        : ''
    }
    <p class="quiet">The rehearsal itself read the platform with ${counted(reads, 'request')}.</p>
  </section>`;
}
