/** Shows how a rehearsed run went: how long, what it did, and who ended otherwise. */
import { guardNames, guardRows } from '../../../domain/guard-classes.ts';
import { deferredCount } from '../../../domain/guards/plan-rule.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';
import { limitWords } from '../../../engine/report/duration-forecast.ts';
import { countWords } from '../../../engine/report/guard-text.ts';
import { heldIn } from '../../../engine/report/run-summary.ts';
import { changeName, stateWords } from '../../../compose/output/change-words.ts';
import { lasting } from '../../../compose/output/format-values.ts';
import { classWords } from '../../../compose/output/problem-groups.ts';
import { optedOutWords } from '../../../views/lookup/missing-people.ts';
import { maskedText } from '../../../views/lookup/person-names.ts';
import type { Seen } from '../../../views/lookup/seen-mirror.ts';
import {
  html,
  type Html,
  linkTo,
  type PageRequest,
  prose,
  timeOf,
  timeText,
} from '../../view/page.ts';
import { channelName } from '../../view/channel-name.ts';
import { namedRecord } from '../../view/person-link.ts';
import { type Cell, factsTable, names, numbers, table } from '../../view/table.ts';
import type { Rehearsal } from './rehearsal-answer.ts';

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
export function resultOf(
  request: PageRequest,
  seen: Seen,
  { found, by, at }: { found: Rehearsal; by: string; at: string },
): Html {
  const [kind, text] = endings[found.status];
  return html`<p class="state"><span class="chip ${kind}">${text}</span></p>
    <p class="quiet">
      A ${found.mode} run, rehearsed by ${by} at ${timeOf(at)}. What changes in the CRM or on the
      platform later is not in it.
    </p>
    ${tiles(found)} ${reasonsPart(request, found)} ${deferredPart(found)} ${missingPart(found)}
    ${approvalsSection(found)} ${changesSection(found)} ${endSection(found)}
    ${requestsSection(request, found, at)} ${problemsSection(request, found)}
    ${peopleSection(request, seen, found)}`;
}

function sum(counts: readonly number[]): number {
  return counts.reduce((all, n) => all + n, 0);
}

function tiles(found: Rehearsal): Html {
  const { ms, peopleCount, requests } = found;
  const tile = (value: string, what: string): Html =>
    html`<div class="tile"><b>${value}</b> ${what}</div>`;
  return html`<div class="tiles">
    ${tile(lasting(ms), 'it would take')}
    ${tile(withCommas(peopleCount), 'people would end otherwise than today')}
    ${tile(withCommas(sum(Object.values(heldIn(found)))), 'would await approval')}
    ${tile(withCommas(requests.total), 'requests to the platform')}
  </div>`;
}

function reasonsPart({ user }: PageRequest, { reasons }: Rehearsal): Html | '' {
  if (reasons.length === 0) return '';
  if (!user.seesAddresses) return html`<p class="quiet">An operator sees here why.</p>`;
  return html`<ul>
    ${reasons.map((reason) => html`<li>${prose(reason)}</li>`)}
  </ul>`;
}

/** Says how many records a window or a canary would leave to a later run. */
function deferredPart({ deferred }: Rehearsal): Html | '' {
  const n = deferredCount(deferred);
  if (n === 0) return '';
  return html`<p>
    ${counted(n, 'record')} would wait for a later run, because the configuration allows such
    changes at certain hours only, or begins with a canary.
  </p>`;
}

/** Says how many people the run would leave missing from the CRM, and what becomes of them. */
function missingPart({ missing }: Rehearsal): Html | '' {
  const { before, after, waiting, optedOutAfter } = missing;
  if (after <= before) return '';
  const who = counted(after - before, 'more person', 'more people');
  const then = waiting === 0 ? '' : `: ${optedOutWords(optedOutAfter)}`;
  return html`<p>${who} would be missing from the CRM${then}.</p>`;
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
    ${
      rows.length === 0
        ? html`<p class="quiet">Nothing.</p>`
        : table([names('Change'), numbers('Number')], rows)
    }
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
    ${
      rows.length === 0
        ? html`<p class="quiet">These numbers would stay as they are.</p>`
        : table([names('What'), numbers('Today'), numbers('After')], rows)
    }
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

/** Formats a state with the names of the channels. */
function stateIn(request: PageRequest, state: Person['before']): string {
  if (!state) return stateWords(state);
  const channels = Object.entries(state.channels).map(
    ([id, is]) => [channelName(request, id), is] as const,
  );
  return stateWords({ ...state, channels: Object.fromEntries(channels) });
}

/** Without addresses, the words and values of records stay hidden: the cause is said alone. */
function problemsSection({ user, ...request }: PageRequest, { groups }: Rehearsal): Html | '' {
  const shown = groups.filter((group) => group.class !== 'held');
  if (shown.length === 0) return '';
  const items = shown.map(({ class: of, kind, cause, count, reason, fix }) => {
    const records = `${withCommas(count)} × ${classWords[of]}${kind === 'template' ? ', templates' : ''}`;
    const what = user.seesAddresses ? prose(`${reason}${fix === '' ? '' : ` → ${fix}`}`) : cause;
    return html`<li><b>${records}</b>: ${what}</li>`;
  });
  const link = html`<a href="${linkTo(request, 'problems')}">Problems recorded so far</a>`;
  return html`<section>
    <h2>Records with a problem</h2>
    <ul>
      ${items}
    </ul>
    <p>${link}</p>
  </section>`;
}

const origins: Readonly<Record<Rehearsal['limits'][number]['from'], string>> = {
  given: 'given for this rehearsal',
  seen: 'stated by the platform',
  assumed: 'assumed: nobody knows it yet',
};

/** States since when the limit of a route is known: the rehearsal took it from the last run. */
function asOf({ mirror }: PageRequest, route: string, rehearsedAt: string): string {
  const { limits, running } = mirror.status().status;
  const seen = limits.find((one) => one.route === route)?.at;
  if (seen === undefined || seen > rehearsedAt) return '';
  const isBefore = running !== null && seen < running.since;
  return `, as of ${timeText(seen)}${isBefore ? ', before the current run' : ''}`;
}

function requestsSection(
  request: PageRequest,
  { requests, limits, reads }: Rehearsal,
  rehearsedAt: string,
): Html {
  const { byRoute, rateLimited } = requests;
  const rows = Object.entries(byRoute)
    .toSorted(([, a], [, b]) => b - a)
    .map(([route, n]): Cell[] => {
      const limit = limits.find((one) => one.route === route);
      const words = limit ? limitWords({ ...limit, others: 0 }, lasting) : '–';
      const origin = limit ? origins[limit.from] : '–';
      const since = limit?.from === 'seen' ? asOf(request, route, rehearsedAt) : '';
      return [route, withCommas(n), words, `${origin}${since}`];
    });
  return html`<section>
    <h2>Requests by route</h2>
    ${
      rows.length === 0
        ? html`<p class="quiet">None.</p>`
        : table([names('Route'), numbers('Requests'), numbers('Limit'), 'The limit is'], rows)
    }
    ${
      rateLimited > 0
        ? html`<p>${withCommas(rateLimited)} of them would be refused by a rate limit (429).</p>`
        : ''
    }
    <p class="quiet">The rehearsal itself read the platform with ${counted(reads, 'request')}.</p>
  </section>`;
}
