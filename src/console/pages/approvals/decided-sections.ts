/** Renders what was decided: what waits for a run, what is rejected, and what runs have done. */
import { guardRows, timedGuards } from '../../../domain/guard-classes.ts';
import { withCommas } from '../../../domain/values/counted.ts';
import { countWords } from '../../../engine/report/guard-text.ts';
import { isAnyLeft } from '../../../engine/guard/plan-decisions.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import { byWords } from '../../../compose/output/decision-words.ts';
import { instant } from '../../../compose/output/format-values.ts';
import { heldWords } from '../../../views/status/attention-list.ts';
import { tickWords } from '../../../compose/queues/run-schedule.ts';
import type { StatedGroup } from '../../../store/guards/awaiting-approval.ts';
import { titledChannel } from '../../view/channel-name.ts';
import { actionForm } from '../../view/form.ts';
import { html, type Html, linkTo, type PageRequest, timeAgo, timeOf } from '../../view/page.ts';
import type { PageStatus, PageStatusAndNext } from '../../view/page-status.ts';
import type { ApprovalFacts } from './approval-facts.ts';

/** Returns what is approved and not yet sent, with the run that will send it. */
export function approvedSection(
  request: PageRequest,
  { plans, approvals }: ApprovalFacts,
  seen: PageStatusAndNext,
): Html | '' {
  const groups = plans.flatMap(({ causes, held }) =>
    causes.flatMap((cause) =>
      cause.groups.map((group) => ({ ...group, undoes: held.undoes !== undefined })),
    ),
  );
  const waiting = groups.flatMap((group) => {
    const by = group.approval === null ? undefined : approvals.get(group.approval);
    return by ? [{ ...group, by }] : [];
  });
  if (waiting.length === 0) return '';
  const needsFull = waiting.some(({ guard }) => guard === 'delete');
  const mayDelete = request.mirror.config.policy.deletes !== 'off';
  return html`<section>
    <h2>Approved, waits for the next run</h2>
    <ul>
      ${waiting.map(
        ({ by, ...group }) =>
          html`<li>
            ${whatOf(request, group)}: approved${byWords({ by: by.by, reason: by.reason })},
            ${timeAgo(instant(by.at), seen.status.at)} ${takeBack(request, group)}
          </li>`,
      )}
    </ul>
    <p class="quiet">
      An approval ends once the changes are made, with the first full run that ends well, and after
      a week at the latest.
    </p>
    ${nextRun(request, seen, { needsFull, mayDelete })}
  </section>`;
}

/** Returns what ends an approval before a run has used it: the changes are rejected instead. */
function takeBack(
  request: PageRequest,
  { guard, op, part, approval, undoes }: StatedGroup & { undoes: boolean },
): Html | '' {
  if (request.user.role !== 'operator' || approval === null || undoes) return '';
  if (timedGuards.has(guard)) {
    return html`<br /><small class="quiet"
        >An opt-out that the CRM states cannot be rejected: correct it in the CRM.</small
      >`;
  }
  const where = part === '' ? {} : { channel: part };
  return html`<details>
    <summary>Reject after all</summary>
    ${actionForm(request, {
      action: 'reject',
      label: 'Reject after all',
      values: { plan: approval, guard: guardRows[guard].configKey, op, ...where },
      needsReason: true,
      isGrave: true,
    })}
  </details>`;
}

function whatOf(
  request: PageRequest,
  { guard, op, part, n }: { guard: keyof typeof guardRows; op: string; part: string; n: number },
): Html {
  const who = countWords(guardRows[guard].recordType, n);
  return html`<strong>${who}</strong>:
    ${changeName(op, false)}${part === '' ? '' : html` in ${titledChannel(request, part)}`}`;
}

interface Needs {
  /** Whether only a full run makes some of it. */
  needsFull: boolean;
  /** Whether the policy has people deleted. */
  mayDelete: boolean;
}

function nextRun(
  request: PageRequest,
  { status, next: { due } }: PageStatusAndNext,
  { needsFull, mayDelete }: Needs,
): Html {
  const next = due.find(({ run }) => run === 'full' || (run === 'fast' && !needsFull));
  const why = needsFull
    ? ` Only full runs opt out${mayDelete ? ' and delete' : ''} people who are missing from the CRM.`
    : '';
  const when = next
    ? html`The next one that does it: ${tickWords(next.run)}, ${timeOf(next.at)}.${why}`
    : html`Nothing is scheduled.${why}`;
  const isOperator = request.user.role === 'operator' && !status.running;
  return html`<p>
      ${status.paused ? html`This mirror is paused: <a href="${linkTo(request)}">end the pause</a>.` : when}
    </p>
    ${status.running ? html`<p>A run is in progress.</p>` : ''}
    ${isOperator && !status.paused ? actionForm(request, { action: 'run-full', label: 'Run now' }) : ''}`;
}

/** Returns the rejections in force. */
export function rejectedSection(
  request: PageRequest,
  { rejected }: ApprovalFacts,
  { status }: PageStatus,
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

/** Returns what runs have done of what was approved lately. */
export function latelySection(
  request: PageRequest,
  { lately }: ApprovalFacts,
  { status }: PageStatus,
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
