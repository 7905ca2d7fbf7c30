/**
 * Shows what awaits a decision, cause by cause, and lets operators approve or reject it; then what
 * was decided: what waits for a run, what is rejected, and what runs have done. Offers every change
 * that awaits a decision as CSV.
 */
import { storedJson } from '../../domain/stored-json.ts';
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { counted, withCommas } from '../../domain/values/counted.ts';
import type { HeldChange, HeldGroup } from '../../store/holds/holds.ts';
import type { Snapshot } from '../../store/snapshot.ts';
import { storedReasons } from '../../engine/guard/holds.ts';
import { approvalsInForce } from '../../engine/guard/signed-approvals.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { isAnyLeft } from '../../engine/guard/plan-decisions.ts';
import { changeName } from '../../compose/output/change-words.ts';
import { byWords } from '../../compose/output/decision-words.ts';
import { instant } from '../../compose/output/format-values.ts';
import { tickWords } from '../../compose/queues/run-schedule.ts';
import { csvLines } from '../../compose/output/csv-text.ts';
import type { Seen } from '../../views/lookup/seen-mirror.ts';
import { heldReason } from '../../views/lookup/standing-problems.ts';
import type { CurrentStatus } from '../../views/status/status-document.ts';
import { heldWords } from '../../views/status/attention-list.ts';
import type { Names } from '../../views/lookup/person-names.ts';
import { successorsOf, whyGone } from '../../views/lookup/missing-people.ts';
import {
  html,
  type Html,
  prose,
  timeAgo,
  timeOf,
  numbers,
  table,
} from '../../views/render/html.ts';
import { linkTo, type Page, type PageRequest } from '../view/page.ts';
import { channelName, personLink, titledChannel } from '../view/console-text.ts';
import { actionForm } from '../view/form.ts';
import type { PageStatusAndNext } from '../view/console-mirror.ts';
import { rehearsalLink } from './rehearsal.ts';

/** The page of what awaits a decision, and of what was decided. */
export const approvalsPage: Page = {
  path: 'approvals',
  nav: 'Approvals',
  async show(request) {
    const seen = await request.mirror.statusAndNext();
    // The page is rendered while the snapshot is open, because links to people are made of it.
    return request.mirror.read(request.user, (read) => {
      const { snapshot } = read;
      const { status } = seen;
      const nothing = html`<p class="quiet">Nothing awaits a decision.</p>`;
      const rehearsal = html`<div class="row">${rehearsalLink(request)}</div>`;
      if (!snapshot) return { title: 'Approvals', body: html`${nothing} ${rehearsal}` };
      const facts = factsOf(snapshot, read, status);
      const linkOf = (key: string): string => personLink(request, snapshot, key);
      const open = facts.plans.filter(({ causes }) => causes.some(isOpen));
      const { approvals } = facts;
      const body = html`${approvedSection(request, facts, seen)}
      ${open.map((plan) => planSection({ request, plan, approvals, linkOf }, status.at))}
      ${open.length === 0 ? nothing : ''} ${rejectedSection(request, facts, status)}
      ${latelySection(request, facts, status)} ${rehearsal}`;
      return { title: 'Approvals', body };
    });
  },
};

/** How many changes of a cause are listed. */
const changesShown = 20;
const approvalsShown = 10;

type ApprovalFacts = ReturnType<typeof factsOf>;
/** A plan with changes that nobody has decided about, or that wait for a run. */
type ShownPlan = ApprovalFacts['plans'][number];
/** What a guard withholds of it. */
type WithheldPart = ShownPlan['causes'][number];

function factsOf(snapshot: Snapshot, { names, config, now }: Seen, status: CurrentStatus) {
  const { holds, meta } = snapshot;
  const inForce = approvalsInForce(snapshot, { approvers: config.approvers, now });
  const ids = inForce.map(({ id }) => id);
  const asked = storedReasons(meta);
  const tell = tellChanges(snapshot, names);
  const plans = status.held.map((held) => {
    const all = holds.groups(held.plan, ids);
    const causes = guardNames.flatMap((guard) => {
      const groups = all.filter((group) => group.guard === guard);
      if (groups.length === 0) return [];
      const first = holds.rows(held.plan, ids, { guard, most: changesShown }).map(tell);
      // It is undefined if no run has said why the guard withholds them.
      const reason = asked[guard]?.asked ?? heldReason(snapshot, guard)?.reason;
      return [{ guard, open: held.undecided[guard], reason, groups, first }];
    });
    return { held, causes };
  });
  return {
    plans,
    approvals: new Map(inForce.map((one) => [one.id, one])),
    lately: holds.decidedLately(approvalsShown),
    /** What is rejected, by the hash of the part. */
    rejected: new Map(holds.rejections().map(({ id }) => [id, holds.groups(id, [])])),
  };
}

/** Returns whether nobody has decided about some of it. */
function isOpen({ open, groups }: WithheldPart): boolean {
  return open > 0 && groups.some(({ approval }) => approval === null);
}

interface Shown {
  request: PageRequest;
  plan: ShownPlan;
  approvals: ApprovalFacts['approvals'];
  /** Returns the address of a person's page. */
  linkOf(key: string): string;
}

function planSection(shown: Shown, now: string): Html {
  const { request, plan } = shown;
  const { held, causes } = plan;
  const open = causes.filter(isOpen);
  const isOne = open.reduce((sum, cause) => sum + cause.open, 0) === 1;
  const file = linkTo(request, `approvals.csv?plan=${held.plan}`);
  return html`<section aria-label="Awaits a decision">
    <h2>${totalOf(open)} ${isOne ? 'awaits' : 'await'} a decision</h2>
    <p class="quiet" title="plan ${held.plan}">
      Since ${timeAgo(held.since, now)}. <a href="${file}">Download all as CSV</a>
    </p>
    ${open.map((cause) => causePart(shown, cause))} ${approveAll(shown, open)}
  </section>`;
}

function totalOf(causes: readonly WithheldPart[]): string {
  const of = (type: 'contact' | 'template'): string[] => {
    const mine = causes.filter(({ guard }) => guardRows[guard].recordType === type);
    const n = mine.reduce((sum, { open }) => sum + open, 0);
    return n === 0 ? [] : [countWords(type, n)];
  };
  return [...of('contact'), ...of('template')].join(' and ');
}

function wordsOf({ guard, open }: WithheldPart): string {
  return countWords(guardRows[guard].recordType, open);
}

function causePart(shown: Shown, cause: WithheldPart): Html {
  const { request, plan } = shown;
  const { guard, reason, groups } = cause;
  const { words, configKey } = guardRows[guard];
  const stateOf = ({ approval }: HeldGroup): string => {
    if (approval === null) return 'awaits a decision';
    const by = shown.approvals.get(approval);
    return `approved${by ? byWords({ by: by.by, reason: by.reason }) : ''}, waits for the next run`;
  };
  const isStated = timedGuards.has(guard);
  const { optOutsUntil } = plan.held;
  const isDeleting = request.mirror.config.policy.deletes !== 'off';
  const why = isDeleting
    ? reason
    : reason?.replace('would be deleted or opted out', 'would be opted out');
  return html`<div class="answer">
    <h3>${words.heading} · ${wordsOf(cause)}</h3>
    <p>${why === undefined ? '' : `${why}. `}This is ${words.cause}.</p>
    <p class="quiet">${limitOf(request, cause)}</p>
    ${
      isStated && optOutsUntil !== null
        ? html`<p>
            From ${prose(optOutsUntil)} on, those that the CRM still states are applied without
            approval.
          </p>`
        : ''
    }
    ${table(
      ['Change', 'Channel', numbers('People'), 'State'],
      groups.map((group) => [
        changeName(group.op, false),
        group.part === '' ? '–' : titledChannel(request, group.part),
        withCommas(group.n),
        stateOf(group),
      ]),
    )}
    ${decideForm(shown, `these ${wordsOf(cause)}`, { guard: configKey }, !isStated)}
    ${
      isStated
        ? html`<p class="quiet">
            An opt-out that the CRM states cannot be rejected: correct it in the CRM, or wait.
          </p>`
        : ''
    }
    ${smallerParts(shown, cause)} ${firstPart(shown, cause)}
  </div>`;
}

function firstPart({ request, plan, linkOf }: Shown, { groups, first }: WithheldPart): Html {
  const file = linkTo(request, `approvals.csv?plan=${plan.held.plan}`);
  const changes = groups.reduce((sum, { n }) => sum + n, 0);
  return html`<details>
    <summary>
      ${first.length < changes ? `The first ${first.length} of ` : 'All '}${counted(changes, 'change')}
    </summary>
    <ul>
      ${first.map(
        ({ kind, key, who, change, part, why }) =>
          html`<li>
            ${kind === 'contact' ? html`<a href="${linkOf(key)}">${who}</a>` : who}:
            ${change}${part === '' ? '' : html` in ${titledChannel(request, part)}`}, because ${why}
          </li>`,
      )}
    </ul>
    ${
      changes > changesShown
        ? html`<p>
            … and ${withCommas(changes - first.length)} more:
            <a href="${file}">Download all as CSV</a>
          </p>`
        : ''
    }
  </details>`;
}

/** The limit and the number of people that it refers to, in the words of the run that judged. */
const judged = /more than ([\d,]+)[^(]*\(the greater of [\d,]+ and [\d.]+ % of ([\d,]+) /;

/** States the limit of a guard: the reason names it only in the run that held the changes first. */
function limitOf({ mirror }: PageRequest, cause: WithheldPart): Html {
  const { guard, open, reason = '' } = cause;
  const { configKey, words, recordType } = guardRows[guard];
  const { percent, floor } = mirror.config.guards[configKey];
  const [, most, of] = judged.exec(reason) ?? [];
  if (most !== undefined && of !== undefined) {
    const [n = 0, all = 0] = [most, of].map((text) => Number(text.replaceAll(',', '')));
    const why = n > floor ? ` (${percent} % of ${withCommas(all)} ${words.of})` : '';
    return html`The limit is ${countWords(recordType, n)}${why}; this is ${withCommas(open)}.`;
  }
  return html`The limit (<code>guards.${configKey}</code>) is the greater of
  ${countWords(recordType, floor)} and ${percent} % of the ${words.of}.`;
}

/** Returns a form for each part that is smaller than the cause, on a line of its own. */
function smallerParts(shown: Shown, { guard, groups }: WithheldPart): Html | '' {
  const open = groups.filter(({ approval }) => approval === null);
  if (groups.length < 2 || open.length === 0 || shown.request.user.role !== 'operator') return '';
  return html`<details>
    <summary>
      Decide about a part<span class="hidden"> of ${guardRows[guard].words.heading}</span>
    </summary>
    ${open.map(({ op, part, n }) => {
      const where = part === '' ? '' : ` in ${channelName(shown.request, part)}`;
      const name = `${changeName(op, false)}${where}`;
      return html`<div role="group" aria-label="${name}">
        <p><strong>${name}</strong> · ${countWords(guardRows[guard].recordType, n)}</p>
        ${decideForm(shown, 'this part', partValues({ guard, op, part }), !timedGuards.has(guard))}
      </div>`;
    })}
  </details>`;
}

function partValues({ guard, op, part }: { guard: GuardClass; op: string; part: string }) {
  const { configKey } = guardRows[guard];
  return { guard: configKey, op, ...(part === '' ? {} : { channel: part }) };
}

/** Returns a form with one reason, which approves or rejects what `of` names: these 12 people. */
function decideForm(
  { request, plan }: Shown,
  of: string,
  values: Record<string, string>,
  isRejectable: boolean,
): Html | '' {
  const all = { plan: plan.held.plan, ...values };
  const form = { values: all, needsReason: true };
  const reject = { action: 'reject', label: `Reject ${of}`, isGrave: true };
  if (request.mirror.config.approvers) {
    return isRejectable ? actionForm(request, { ...form, ...reject }) : '';
  }
  return actionForm(request, {
    ...form,
    action: 'approve',
    label: `Approve ${of}`,
    ...(isRejectable ? { second: reject } : {}),
  });
}

function approveAll({ request, plan }: Shown, causes: readonly WithheldPart[]): Html | '' {
  const { approvers } = request.mirror.config;
  if (approvers) {
    return html`<p>
      ${approvers.need} of ${Object.keys(approvers.keys).length} approvers have to sign, each with
      their own key, on their own machine:
      <code>crm-mirror approve ${plan.held.plan} --sign KEYFILE --reason TEXT</code>
    </p>`;
  }
  if (causes.length < 2 || request.user.role !== 'operator') return '';
  return html`<details class="all">
    <summary>Approve all ${totalOf(causes)}</summary>
    <p>This approves all of these:</p>
    <ul>
      ${causes.map((cause) => html`<li>${wordsOf(cause)} ${guardRows[cause.guard].words.planned}</li>`)}
    </ul>
    ${actionForm(request, {
      action: 'approve',
      label: `Yes, approve all ${totalOf(causes)}`,
      values: { plan: plan.held.plan },
      needsReason: true,
    })}
  </details>`;
}

/** Returns what is approved and not yet sent, with the run that will send it. */
function approvedSection(
  request: PageRequest,
  { plans, approvals }: ApprovalFacts,
  { status, next: { due } }: PageStatusAndNext,
): Html | '' {
  const waiting = plans.flatMap(({ causes, held }) =>
    causes.flatMap(({ groups }) =>
      groups.flatMap((group) => {
        const by = group.approval === null ? undefined : approvals.get(group.approval);
        return by ? [{ ...group, undoes: held.undoes !== undefined, by }] : [];
      }),
    ),
  );
  if (waiting.length === 0) return '';
  const needsFull = waiting.some(({ guard }) => guard === 'delete');
  const deletes = request.mirror.config.policy.deletes === 'off' ? '' : ' and delete';
  const why = needsFull
    ? ` Only full runs opt out${deletes} people who are missing from the CRM.`
    : '';
  const next = due.find(({ run }) => run === 'full' || (run === 'fast' && !needsFull));
  const when = next
    ? html`The next one that does it: ${tickWords(next.run)}, ${timeOf(next.at)}.${why}`
    : html`Nothing is scheduled.${why}`;
  const mayRun = request.user.role === 'operator' && !status.running && !status.paused;
  return html`<section>
    <h2>Approved, waits for the next run</h2>
    <ul>
      ${waiting.map(
        ({ by, undoes, ...group }) =>
          html`<li>
            ${whatOf(request, group)}: approved${byWords({ by: by.by, reason: by.reason })},
            ${timeAgo(instant(by.at), status.at)} ${undoes ? '' : rejectAfterAll(request, group)}
          </li>`,
      )}
    </ul>
    <p class="quiet">
      An approval ends once the changes are made, with the first full run that ends well, and after
      a week at the latest.
    </p>
    <p>
      ${status.paused ? html`This mirror is paused: <a href="${linkTo(request)}">end the pause</a>.` : when}
    </p>
    ${status.running ? html`<p>A run is in progress.</p>` : ''}
    ${mayRun ? actionForm(request, { action: 'run-full', label: 'Run now' }) : ''}
  </section>`;
}

/** Returns what ends an approval before a run has used it: the changes are rejected instead. */
function rejectAfterAll(request: PageRequest, group: HeldGroup): Html | '' {
  const { guard, approval } = group;
  if (request.user.role !== 'operator' || approval === null) return '';
  if (timedGuards.has(guard)) {
    return html`<br /><small class="quiet"
        >An opt-out that the CRM states cannot be rejected: correct it in the CRM.</small
      >`;
  }
  return html`<details>
    <summary>Reject after all</summary>
    ${actionForm(request, {
      action: 'reject',
      label: 'Reject after all',
      values: { plan: approval, ...partValues(group) },
      needsReason: true,
      isGrave: true,
    })}
  </details>`;
}

function whatOf(
  request: PageRequest,
  { guard, op, part, n }: { guard: GuardClass; op: string; part: string; n: number },
): Html {
  const who = countWords(guardRows[guard].recordType, n);
  return html`<strong>${who}</strong>:
    ${changeName(op, false)}${part === '' ? '' : html` in ${titledChannel(request, part)}`}`;
}

function rejectedSection(
  request: PageRequest,
  { rejected }: ApprovalFacts,
  status: CurrentStatus,
): Html | '' {
  const { rejections } = status;
  if (rejections.length === 0) return '';
  return html`<section>
    <h2>Rejected</h2>
    <ul>
      ${rejections.map(
        ({ part, until, by, reason, ...held }) =>
          html`<li>
            <p>
              ${isAnyLeft(held) ? heldWords(held) : 'Nothing any more'}:
              rejected${byWords({ by, reason })}, until ${timeOf(until)}.
            </p>
            <ul>
              ${(rejected.get(part) ?? []).map((group) => html`<li>${whatOf(request, group)}</li>`)}
            </ul>
            ${actionForm(request, {
              action: 'approve',
              label: 'Approve after all',
              values: { plan: part },
              needsReason: true,
            })}
          </li>`,
      )}
    </ul>
    <p class="quiet">
      Nobody makes these changes until the rejection ends. After that, they await a decision again.
    </p>
  </section>`;
}

function latelySection(
  request: PageRequest,
  { lately }: ApprovalFacts,
  status: CurrentStatus,
): Html | '' {
  if (lately.length === 0) return '';
  return html`<section>
    <h2>Decided lately</h2>
    <ul>
      ${lately.map((one) => {
        const { at, by, reason, run, done, n } = one;
        const link =
          run === null ? '' : html` by <a href="${linkTo(request, `runs/${run}`)}">run ${run}</a>`;
        return html`<li>
          ${whatOf(request, one)}: approved${byWords({ by, reason })},
          ${timeAgo(instant(at), status.at)}; ${withCommas(done)} of ${withCommas(n)} done${link}
        </li>`;
      })}
    </ul>
  </section>`;
}

const head = ['cause', 'change', 'channel', 'channel_id', 'who', 'crm_ids', 'why'] as const;

/** A line for each change of a plan that waits; users who see hashes get hashes. */
export const approvalsFile: Page = {
  path: 'approvals.csv',
  show: async (request) =>
    request.mirror.read(request.user, ({ snapshot, names }) => {
      const plan = request.query['plan'] ?? '';
      if (!snapshot?.holds.get(plan)) {
        const body = html`<p>Nothing awaits a decision there any more.</p>`;
        return { title: 'Nothing waits', code: 404, body };
      }
      const tell = tellChanges(snapshot, names);
      const rows = snapshot.holds.rows(plan, []).map((change) => {
        const { change: what, part, who, crmIds, why } = tell(change);
        const cause = guardRows[change.guard].words.heading;
        const channel = part === '' ? '' : channelName(request, part);
        return [cause, what, channel, part, who, crmIds.join(' '), why];
      });
      const lines = csvLines([head, ...rows], { spreadsheet: true });
      return { type: 'text/csv', text: `${lines.join('\r\n')}\r\n`, name: 'approvals.csv' };
    }),
};

const ids = storedJson<readonly string[]>('the ids of a held change');

/**
 * Returns a function that puts a change into words. An id of the CRM that is an address is hidden
 * from users who see hashes.
 */
function tellChanges(snapshot: Snapshot, names: Names) {
  return ({ kind, key, op, part, guard, ids: text, isFurther }: HeldChange) => {
    const named = text === '' ? [] : ids.decode(text);
    // Who is missing from the CRM has no record in this reading of it.
    const found =
      named.length > 0 || kind === 'template' ? named : snapshot.recorded.originsOf(kind, key);
    const crmIds = found.map((id) => names({ kind, key: id }));
    const change = changeName(isFurther === 1 ? 'create' : op, false);
    const words = { kind, key, who: names({ kind, key }), change, part, crmIds };
    if (guard === 'delete') {
      const movedTo = successorsOf(snapshot, key).map((next) => names({ kind, key: next }));
      return { ...words, why: whyGone({ absence: snapshot.absences.get(kind, key) }, movedTo) };
    }
    const records = crmIds.length === 0 ? '' : ` (record ${crmIds.join(', ')})`;
    const stated =
      kind === 'template' ? guardRows[guard].words.heading : `the CRM says so${records}`;
    return { ...words, why: stated };
  };
}
