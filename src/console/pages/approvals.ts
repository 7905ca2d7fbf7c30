/** Shows what awaits approval, with its likely cause, and lets operators approve or reject it. */
import { type GuardClass, guardNames, guardRows, timedGuards } from '../../domain/guard-classes.ts';
import { withCommas } from '../../domain/values/counted.ts';
import { countWords } from '../../engine/report/guard-text.ts';
import { askedBefore } from '../../engine/guard/plan-rules.ts';
import { isAnyLeft } from '../../engine/guard/plan-decisions.ts';
import { byWords } from '../../cli/output/decision-words.ts';
import { changeName } from '../../cli/output/change-words.ts';
import { heldWords } from '../../cli/status/attention-list.ts';
import type { CurrentStatus } from '../../cli/status/mirror-status.ts';
import type { PlanGroup } from '../../snapshot/guards/plan-parts.ts';
import type { Seen } from '../../cli/lookup/snapshot-command.ts';
import { actionForm } from '../view/form.ts';
import { html, type Html, type Page, type PageRequest } from '../view/page.ts';
import { namedRecord } from '../view/person-link.ts';
import { type Cell, numbers, table } from '../view/table.ts';
import { rehearsalLink } from './rehearsal/rehearsal.ts';

type Held = CurrentStatus['held'][number];

/** The page of what awaits approval, and of what was decided. */
export const approvalsPage: Page = {
  path: 'approvals',
  nav: 'Approvals',
  async show(request) {
    const { status } = request.mirror.status();
    const plans = await request.mirror.read(request.user, (seen) => {
      const shown = status.held.map(({ plan }) => [plan, planIn(request, seen, plan)] as const);
      return new Map(shown);
    });
    const open = status.held.filter(({ approved }) => !approved);
    const body = html`${
        open.length === 0
          ? html`<p class="quiet">Nothing awaits approval.</p>`
          : open.map((held) => planSection(request, held, plans.get(held.plan) ?? nothing))
      }
      ${decided(request, status)}
      <div class="row">${rehearsalLink(request)}</div>`;
    return { title: 'Approvals', body };
  },
};

interface Shown {
  groups: readonly PlanGroup[];
  /** The cells of the first changes. */
  samples: readonly (readonly Cell[])[];
  /** Why rules of the configuration withhold changes, by guard. */
  asked: ReadonlyMap<GuardClass, string>;
}

const nothing: Shown = { groups: [], samples: [], asked: new Map() };
const samplesShown = 20;

function planIn(request: PageRequest, seen: Seen, plan: string): Shown {
  const { snapshot } = seen;
  if (!snapshot) return nothing;
  const changes = snapshot.awaitingApproval.changes(plan, samplesShown);
  const rows = changes.map(({ kind, key, op, part }) => {
    const who = namedRecord(request, seen, { kind, key });
    return [who, changeName(op, false), part === '' ? '–' : part];
  });
  const asked = new Map(
    guardNames.flatMap((guard): [GuardClass, string][] => {
      const says = askedBefore(snapshot.meta, guard);
      return says === undefined ? [] : [[guard, says]];
    }),
  );
  return { groups: snapshot.awaitingApproval.groups(plan), samples: rows, asked };
}

function planSection(request: PageRequest, held: Held, { groups, samples, asked }: Shown): Html {
  const { plan, since, undecided, optOutsUntil } = held;
  const classes = guardNames.filter((guard) => undecided[guard] > 0);
  const causes = classes.map(
    (guard) =>
      html`<li>
        ${countWords(guardRows[guard].recordType, undecided[guard])}
        ${guardRows[guard].words.planned}: ${asked.get(guard) ?? guardRows[guard].words.cause}.
      </li>`,
  );
  const anyway = optOutsUntil
    ? html`<p>
        From ${optOutsUntil} on, the opt-outs that the CRM still states are applied without
        approval.
      </p>`
    : '';
  const isStated = classes.some((guard) => timedGuards.has(guard));
  const isRejectable = classes.some((guard) => !timedGuards.has(guard));
  return html`<section aria-label="Plan ${plan}">
    <h2>${heldWords(undecided)}</h2>
    <p class="quiet">Since ${since}, under the plan <code>${plan}</code>.</p>
    <ul>
      ${causes}
    </ul>
    ${anyway}
    <h3>Decide</h3>
    ${approveForm(request, plan)}
    ${
      isRejectable && !isStated
        ? actionForm(request, {
            action: 'reject',
            label: 'Reject',
            values: { plan },
            needsReason: true,
            isGrave: true,
          })
        : ''
    }
    ${
      isStated
        ? html`<p class="quiet">
            An opt-out that the CRM states cannot be rejected: correct it in the CRM, or wait.
          </p>`
        : ''
    }
    ${partsTable(request, plan, groups)} ${sampleTable(samples, held.more)}
  </section>`;
}

function approveForm(request: PageRequest, plan: string): Html {
  const { approvers } = request.mirror.config;
  if (!approvers) {
    return actionForm(request, {
      action: 'approve',
      label: 'Approve',
      values: { plan },
      needsReason: true,
    });
  }
  return html`<p>
    ${approvers.need} of ${Object.keys(approvers.keys).length} approvers have to sign, each with
    their own key: <code>crm-mirror approve ${plan} --sign KEYFILE --reason TEXT</code>
  </p>`;
}

function partsTable(request: PageRequest, plan: string, groups: readonly PlanGroup[]): Html | '' {
  if (groups.length < 2) return '';
  return html`<h3>Decide about a part</h3>
    ${table(
      ['Change', 'Channel', numbers('People'), 'Decision'],
      groups.map((group) => partRow(request, plan, group)),
    )}`;
}

function partRow(request: PageRequest, plan: string, { guard, op, part, n }: PlanGroup): Cell[] {
  const values = {
    plan,
    guard: guardRows[guard].configKey,
    op,
    ...(part === '' ? {} : { channel: part }),
  };
  const name = `${changeName(op, false)}${part === '' ? '' : ` in ${part}`}`;
  const decide = (action: 'approve' | 'reject'): Html =>
    actionForm(request, {
      action,
      label: action === 'approve' ? 'Approve this part' : 'Reject this part',
      values,
      needsReason: true,
      isGrave: action === 'reject',
    });
  const isOperator = request.user.role === 'operator';
  const forms = isOperator
    ? html`<details>
        <summary>Decide<span class="hidden"> about ${name}</span></summary>
        ${request.mirror.config.approvers ? '' : decide('approve')}
        ${timedGuards.has(guard) ? '' : decide('reject')}
      </details>`
    : '';
  return [changeName(op, false), part === '' ? '–' : part, withCommas(n), forms];
}

function sampleTable(samples: Shown['samples'], more: number): Html {
  return html`<details open>
    <summary>The first ${samples.length} changes</summary>
    ${table(['Who', 'Change', 'Channel'], samples)}
    ${more > 0 ? html`<p class="quiet">… and ${withCommas(more)} more</p>` : ''}
  </details>`;
}

/** Returns the approvals that a run has not used up, and the rejections in force. */
function decided(request: PageRequest, { approvals, rejections }: CurrentStatus): Html {
  const approved = approvals.map(
    ({ plan, part, until, ...who }) =>
      html`<li>
        ${part === null ? 'The plan' : 'A part of the plan'} <code>${plan}</code>${byWords(who)},
        until the next full run has ended well, or ${until}.
      </li>`,
  );
  const rejected = rejections.map(
    ({ part, until, by, reason, ...held }) =>
      html`<li>
        <p>
          ${isAnyLeft(held) ? heldWords(held) : 'Nothing any more'}, until
          ${until},${byWords({ by, reason })}.
        </p>
        ${actionForm(request, {
          action: 'approve',
          label: 'Approve after all',
          values: { plan: part },
          needsReason: true,
        })}
      </li>`,
  );
  return html`${
    approved.length > 0
      ? html`<section>
          <h2>Approved</h2>
          <ul>
            ${approved}
          </ul>
        </section>`
      : ''
  }
  ${
    rejected.length > 0
      ? html`<section>
          <h2>Rejected</h2>
          <ul>
            ${rejected}
          </ul>
        </section>`
      : ''
  }`;
}
