/**
 * Lets operators approve or reject what awaits a decision, and offers every change of a plan as
 * CSV. What is shown comes from views/status/approval-sections.ts.
 */
import { guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { changeName } from '../../compose/output/format-values.ts';
import { csvLines } from '../../compose/output/write-export.ts';
import {
  approvedSections,
  causeSections,
  decidedSections,
  openWords,
  readApprovals,
  type ShownPlan,
  tellChanges,
  type WithheldPart,
} from '../../views/status/approval-sections.ts';
import { approvalIds } from '../../engine/judge/plan-decisions.ts';
import { names, type TableRow } from '../../views/sections.ts';
import type { HeldGroup } from '../../store/holds/holds.ts';
import { html, type Html, sectionsHtml, timeAgo } from '../../views/render/html.ts';
import { link, linkTo, type Page, type PageRequest } from '../view/page.ts';
import { channelName, readerOf } from '../view/console-text.ts';
import {
  actionForm,
  choice,
  filterForm,
  pageLinks,
  signersWords,
  withQuery,
} from '../view/form.ts';
import { rehearsalLink } from './rehearsal.ts';

/** The page of what awaits a decision, and of what was decided. */
export const approvalsPage: Page = {
  path: 'approvals',
  nav: 'Approvals',
  async show(request) {
    const seen = await request.mirror.statusAndNext();
    const { status } = seen;
    const { config } = request.mirror;
    // The page is rendered while the snapshot is open, because links to people are made of it.
    return request.mirror.read(request.user, (read) => {
      const { snapshot } = read;
      const nothing = html`<p class="quiet">Nothing awaits a decision.</p>`;
      const rehearsal = html`<div class="row">${rehearsalLink(request)}</div>`;
      if (!snapshot) return { title: 'Approvals', body: html`${nothing} ${rehearsal}` };
      const facts = readApprovals(snapshot, read, status);
      const open = facts.plans
        .map((plan) => ({ ...plan, causes: plan.causes.filter(({ isOpen }) => isOpen) }))
        .filter(({ causes }) => causes.length > 0);
      const isOperator = request.user.role === 'operator';
      const forms = (id: string): Html | '' => {
        const [of, name = ''] = id.split(' ');
        if (of === 'rejected') {
          const label = 'Approve after all';
          const values = { plan: name };
          const approve = { action: 'approve', label, values, needsReason: true, isSecond: true };
          return actionForm(request, approve);
        }
        if (!isOperator) return '';
        const group = facts.waiting[Number(name)];
        if (of === 'approved' && group && !group.undoes && !timedGuards.has(group.guard)) {
          // Ends the approval before a run has used it: the changes are rejected instead.
          const label = 'Reject after all';
          const channel = group.part === '' ? {} : { channel: group.part };
          const which = { guard: guardRows[group.guard].configKey, op: group.op, ...channel };
          const values = { plan: group.by.id, ...which };
          const reject = { action: 'reject', label, values, needsReason: true, isGrave: true };
          return html`<details>
            <summary>${label}</summary>
            ${actionForm(request, reject)}
          </details>`;
        }
        if (of !== 'run' || status.running || status.paused) return '';
        const isSecond = open.length > 0;
        return actionForm(request, { action: 'run-full', label: 'Run now', isSecond });
      };
      const reader = { ...readerOf(request, snapshot), forms };
      const body = html`${sectionsHtml(approvedSections(facts, seen, config), reader)}
      ${open.map((plan) => {
        const { held, causes } = plan;
        const isOne = causes.reduce((sum, cause) => sum + cause.open, 0) === 1;
        const file = link(request, `approvals.csv?plan=${held.plan}`, 'Download all as CSV');
        return html`<section aria-label="Awaits a decision">
          <h2>${openWords(causes)} ${isOne ? 'awaits' : 'await'} a decision</h2>
          <p class="quiet">Since ${timeAgo(held.since, status.at)}. ${file}</p>
          ${causes.map(
            (cause) =>
              html`<div class="answer">
                ${sectionsHtml(causeSections(plan, cause, facts, config), reader, 3)}
                ${causeForms(request, held.plan, cause, cause === open[0]?.causes[0])}
              </div>`,
          )}
          ${approveAll(request, plan)}
          <details>
            <summary>The plan</summary>
            <p>These changes are approved and rejected under the hash <code>${held.plan}</code>.</p>
          </details>
        </section>`;
      })}
      ${open.length === 0 && nothing} ${sectionsHtml(decidedSections(facts, status), reader)}
      ${rehearsal}`;
      return { title: 'Approvals', body };
    });
  },
};

/** Returns one form that decides about a cause, or about some channels of it; one is prominent. */
function causeForms(
  request: PageRequest,
  plan: string,
  cause: WithheldPart,
  isFirst: boolean,
): Html | '' {
  const { guard, groups, open } = cause;
  const { configKey, recordType } = guardRows[guard];
  const isRejectable = !timedGuards.has(guard);
  const parts = partsOf(request, groups);
  const isOne = parts.length < 2;
  const these = isOne ? `these ${countWords(recordType, open)}` : 'these';
  const form = {
    values: { plan, guard: configKey },
    needsReason: true,
    ...(!isOne && { fields: partFields(parts) }),
  };
  const reject = { action: 'reject', label: `Reject ${these}`, isGrave: true };
  if (request.mirror.config.approvers) {
    return isRejectable ? actionForm(request, { ...form, ...reject }) : '';
  }
  const label = 'Approve these, reject the rest';
  const rest = { name: 'rest', value: 'reject' };
  const both = { label, sends: rest, isSecond: true };
  const others = isRejectable && {
    second: isOne ? reject : both,
    third: isOne ? undefined : reject,
  };
  const approve = { action: 'approve', label: `Approve ${these}`, isSecond: !isFirst };
  return actionForm(request, { ...form, ...approve, ...others });
}

/** Returns the channels of what is open, or, for changes without a channel, the sorts of change. */
function partsOf(request: PageRequest, groups: readonly HeldGroup[]) {
  const open = groups.filter(({ approval }) => approval === null);
  const by = open.every(({ part }) => part !== '') ? 'channel' : 'op';
  return [...Map.groupBy(open, ({ part, op }) => (by === 'channel' ? part : op))].map(
    ([value, all]) => ({
      sends: `${by}=${value}`,
      name: by === 'channel' ? channelName(request, value) : changeName(value, false),
      n: all.reduce((sum, { n }) => sum + n, 0),
    }),
  );
}

function partFields(parts: ReturnType<typeof partsOf>): Html {
  return html`<fieldset>
    <legend class="hidden">These</legend>
    ${parts.map(
      ({ sends, name, n }, at) =>
        html`<label
          ><input type="checkbox" name="tick-${at}" value="${sends}" checked /> ${name}
          (${withCommas(n)})<input type="hidden" name="part-${at}" value="${sends}"
        /></label>`,
    )}
  </fieldset>`;
}

function approveAll(request: PageRequest, { held: { plan }, causes }: ShownPlan): Html | '' {
  const { approvers } = request.mirror.config;
  if (approvers) {
    return html`<p>
      ${signersWords(approvers)} have to sign, each with their own key, on their own machine:
      <code>crm-mirror approve ${plan} --sign KEYFILE --reason TEXT</code>
    </p>`;
  }
  if (causes.length < 2 || request.user.role !== 'operator') return '';
  const all = openWords(causes);
  const label = `Yes, approve all ${all}`;
  return html`<details class="all">
    <summary>Approve all ${all}</summary>
    <p>This approves all of these:</p>
    <ul>
      ${causes.map((cause) => html`<li>${openWords([cause])} ${guardRows[cause.guard].words.planned}</li>`)}
    </ul>
    ${actionForm(request, { action: 'approve', label, values: { plan }, needsReason: true })}
  </details>`;
}

const rowsPerPage = 100;

/** Every change of a plan that waits, page by page; the id is the hash of the plan. */
export const changesPage: Page = {
  path: 'approvals/:id',
  show: async (request) =>
    request.mirror.read(request.user, ({ snapshot, names: known, now }) => {
      const { id: plan, query } = request;
      if (!snapshot?.holds.get(plan)) return nothingWaits;
      const groups = snapshot.holds.groups({ list: plan, approvals: [] });
      const { filter, choices } = filterOf(request, groups);
      const from = Math.max(0, Math.trunc(Number(query['from'])) || 0);
      const page = { ...filter, from, most: rowsPerPage + 1 };
      const { approvers } = request.mirror.config;
      const inForce = approvalIds(snapshot, { approvers, now });
      const found = snapshot.holds.rows(plan, inForce, page);
      const rows = found
        .slice(0, rowsPerPage)
        .map(tellChanges(snapshot, known))
        .map(({ kind, key, who, change, part, why, state }): TableRow => [
          { record: { kind, key }, name: who },
          change,
          part === '' ? '–' : { channel: part },
          state,
          why,
        ]);
      const columns = [names('Who'), 'Change', 'Channel', 'State', 'Because'];
      const table = { columns, rows };
      const here = linkTo(request, 'approvals.csv');
      const file = withQuery({ ...request, here }, { plan, from: undefined });
      const body = html`${filterForm(request, choices)}
        <p><a href="${file}">Download these as CSV</a></p>
        ${sectionsHtml([{ table, none: 'There are no such changes.' }], readerOf(request, snapshot))}
        ${pageLinks(request, [
          from > 0 && ['Previous', { from: `${Math.max(0, from - rowsPerPage)}` }],
          found.length > rowsPerPage && ['Next', { from: `${from + rowsPerPage}` }],
        ])}`;
      return { title: 'Changes that await a decision', body };
    }),
};

const nothingWaits = {
  title: 'Nothing waits',
  code: 404,
  body: html`<p>Nothing awaits a decision there any more.</p>`,
};

function filterOf(request: PageRequest, groups: readonly HeldGroup[]) {
  const { guard, op, channel } = request.query;
  const unique = (of: (group: HeldGroup) => string) => [...new Set(groups.map(of))];
  const guards = guardNames.filter((name) => groups.some((group) => group.guard === name));
  const parts = unique((group) => group.part).filter((part) => part !== '');
  const choices = [
    choice('guard', 'Cause', guards, (name) => guardRows[name].words.heading),
    choice(
      'op',
      'Change',
      unique((group) => group.op),
      (one) => changeName(one, false),
    ),
    choice('channel', 'Channel', parts, (part) => channelName(request, part)),
  ];
  const which = guardNames.find((name) => name === guard);
  return { filter: { guard: which, op: op || undefined, part: channel || undefined }, choices };
}

const head = ['cause', 'change', 'channel', 'channel_id', 'who', 'crm_ids', 'why'] as const;

/** The changes of a plan that wait, as a file; users who see hashes get hashes. */
export const approvalsFile: Page = {
  path: 'approvals.csv',
  show: async (request) =>
    request.mirror.read(request.user, ({ snapshot, names: known }) => {
      const plan = request.query['plan'] ?? '';
      if (!snapshot?.holds.get(plan)) return nothingWaits;
      const rows = snapshot.holds
        .rows(plan, [], filterOf(request, []).filter)
        .map(tellChanges(snapshot, known))
        .map(({ cause, change, part, who, crmIds, why }) => {
          const channel = part === '' ? '' : channelName(request, part);
          return [cause, change, channel, part, who, crmIds.join(' '), why];
        });
      const lines = csvLines([head, ...rows], { spreadsheet: true });
      return { type: 'text/csv', text: `${lines.join('\r\n')}\r\n`, name: 'approvals.csv' };
    }),
};
