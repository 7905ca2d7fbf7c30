/** Renders what awaits a decision, cause by cause, with the forms that decide. */
import { guardRows, timedGuards } from '../../../domain/guard-classes.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';
import { countWords } from '../../../engine/report/guard-text.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import { byWords } from '../../../compose/output/decision-words.ts';
import type { StatedGroup } from '../../../store/guards/awaiting-approval.ts';
import { titledChannel, channelName } from '../../view/channel-name.ts';
import { actionForm, type FormParts } from '../../view/form.ts';
import { html, type Html, linkTo, type PageRequest, prose, timeAgo } from '../../view/page.ts';
import { numbers, table } from '../../view/table.ts';
import {
  type ApprovalFacts,
  type WithheldPart,
  changesShown,
  isOpen,
  type ShownPlan,
} from './approval-facts.ts';

/** What the parts of a section need. */
interface Shown {
  request: PageRequest;
  plan: ShownPlan;
  approvals: ApprovalFacts['approvals'];
  /** Returns the address of a person's page. */
  linkOf(key: string): string;
}

/** Returns the section of a plan, of which nobody has decided about some. */
export function planSection(shown: Shown, now: string): Html {
  const { request, plan } = shown;
  const { held, causes } = plan;
  const open = causes.filter(isOpen);
  const file = linkTo(request, `approvals.csv?plan=${held.plan}`);
  return html`<section aria-label="Awaits a decision">
    <h2>${totalOf(open)} ${isOne(open) ? 'awaits' : 'await'} a decision</h2>
    <p class="quiet" title="plan ${held.plan}">
      Since ${timeAgo(held.since, now)}. <a href="${file}">Download all as CSV</a>
    </p>
    ${open.map((cause) => causePart(shown, cause))} ${approveAll(shown, open)}
  </section>`;
}

function isOne(causes: readonly WithheldPart[]): boolean {
  return causes.reduce((sum, { open }) => sum + open, 0) === 1;
}

/** Returns the total in words: 1,353 people, 3 templates. */
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
  const isStated = timedGuards.has(guard);
  return html`<div class="answer">
    <h3>${words.heading} · ${wordsOf(cause)}</h3>
    <p>
      ${reason === undefined ? '' : `${withoutDeletes(request, reason)}. `}This is ${words.cause}.
    </p>
    <p class="quiet">${limitOf(request, cause)}</p>
    ${isStated ? untilPart(plan) : ''}
    ${table(
      ['Change', 'Channel', numbers('People'), 'State'],
      groups.map((group) => [
        changeName(group.op, false),
        group.part === '' ? '–' : titledChannel(request, group.part),
        withCommas(group.n),
        stateOf(shown, group),
      ]),
    )}
    ${decideForm(shown, {
      of: `these ${wordsOf(cause)}`,
      values: { guard: configKey },
      isRejectable: !isStated,
    })}
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

/** Returns the first changes of a cause, and the way to the others. */
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

/** States from when on the opt-outs that the CRM states need no approval. */
function untilPart({ held: { optOutsUntil } }: ShownPlan): Html | '' {
  if (optOutsUntil === null) return '';
  return html`<p>
    From ${prose(optOutsUntil)} on, those that the CRM still states are applied without approval.
  </p>`;
}

/** Speaks of deletions only if the policy has people deleted. */
function withoutDeletes({ mirror }: PageRequest, reason: string): string {
  if (mirror.config.policy.deletes !== 'off') return reason;
  return reason.replace('would be deleted or opted out', 'would be opted out');
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

function stateOf({ approvals }: Shown, { approval }: StatedGroup): string {
  if (approval === null) return 'awaits a decision';
  const by = approvals.get(approval);
  return `approved${by ? byWords({ by: by.by, reason: by.reason }) : ''}, waits for the next run`;
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
        ${decideForm(shown, {
          of: 'this part',
          values: {
            guard: guardRows[guard].configKey,
            op,
            ...(part === '' ? {} : { channel: part }),
          },
          isRejectable: !timedGuards.has(guard),
        })}
      </div>`;
    })}
  </details>`;
}

interface Decision {
  /** What is decided about: "these 12 people". */
  of: string;
  values: Record<string, string>;
  isRejectable: boolean;
}

/** Returns a form with one reason, which approves or rejects. */
function decideForm({ request, plan }: Shown, { of, values, isRejectable }: Decision): Html | '' {
  const all = { plan: plan.held.plan, ...values };
  const form: Pick<FormParts, 'values' | 'needsReason'> = { values: all, needsReason: true };
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

/** Returns what approves all causes, with a second step that repeats the counts. */
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
