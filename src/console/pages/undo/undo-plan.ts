/** Shows the plan of an undo, and the forms that send exactly this plan. */
import { guardNames, guardRows } from '../../../domain/guard-classes.ts';
import { counted, withCommas } from '../../../domain/values/counted.ts';
import { changeName } from '../../../compose/output/change-words.ts';
import type { Seen } from '../../../views/lookup/seen-mirror.ts';
import { countWords } from '../../../engine/report/guard-text.ts';
import { heldIn } from '../../../engine/report/run-summary.ts';
import { actionForm } from '../../view/form.ts';
import { html, type Html, type PageRequest } from '../../view/page.ts';
import { channelName } from '../../view/channel-name.ts';
import { namedRecord } from '../../view/person-link.ts';
import { type Cell, names, table } from '../../view/table.ts';
import type { UndoPlan } from './undo-answer.ts';

/** Returns the plan with its forms, which send it and nothing else. */
export async function planPart(request: PageRequest, plan: UndoPlan): Promise<Html> {
  return request.mirror.read(
    request.user,
    (seen) =>
      html`${plannedSection(request, seen, plan)} ${cannotSection(request, seen, plan)}
      ${confirmSection(request, plan)}`,
  );
}

type Group = Pick<UndoPlan['planned'][number], 'kind' | 'op' | 'count'>;

/** Formats a group, such as: Opt out: 2 subscriptions */
function groupWords({ kind, op, count }: Group): string {
  const isRecord = kind === 'template' || op === 'delete';
  const what = isRecord ? countWords(kind, count) : counted(count, 'subscription');
  const name = changeName(op, false);
  return `${name.charAt(0).toUpperCase()}${name.slice(1)}: ${what}`;
}

function plannedSection(request: PageRequest, seen: Seen, { planned, undoes }: UndoPlan): Html {
  const groups = planned.map((group) => {
    const rows = group.records.map(({ key, channels }): Cell[] => [
      namedRecord(request, seen, { kind: group.kind, key }),
      channels.length === 0 ? '–' : channels.map((id) => channelName(request, id)).join(', '),
    ]);
    const waits = group.held ? ' (awaits approval)' : '';
    return html`<h3>${groupWords(group)}${waits}</h3>
      ${table([names('Who'), 'Channel'], rows)} ${moreOf(group, rows.length, undoes)}`;
  });
  return html`<section>
    <h2>What would be done</h2>
    ${
      groups.length === 0 ? html`<p>Nothing: there is nothing left that can be undone.</p>` : groups
    }
  </section>`;
}

/** How many records of a group the command names. */
const mostNamed = 10;

function moreOf({ count }: Group, shown: number, run: string): Html | '' {
  if (shown < mostNamed || count <= shown) return '';
  return html`<p class="quiet">
    These are the first ${shown}. <code>crm-mirror undo ${run} --plan --all</code> names all.
  </p>`;
}

function cannotSection(request: PageRequest, seen: Seen, { cannot }: UndoPlan): Html {
  if (cannot.length === 0) {
    return html`<section>
      <h2>What cannot be undone</h2>
      <p class="quiet">Everything else of this run can be undone.</p>
    </section>`;
  }
  const items = cannot.map(({ kind, op, reason, count, records }) => {
    const some = records.map(({ key, channel }, at) => {
      const where = channel === '' ? '' : ` (${channelName(request, channel)})`;
      return html`${at > 0 ? ', ' : ''}${namedRecord(request, seen, { kind, key })}${where}`;
    });
    const more = count > records.length ? ` and ${withCommas(count - records.length)} more` : '';
    return html`<li>
      <b>${counted(count, 'change')}</b> (${changeName(op, true)}): ${reason}.
      <small class="quiet">${some}${more}</small>
    </li>`;
  });
  return html`<section>
    <h2>What cannot be undone</h2>
    <ul>
      ${items}
    </ul>
  </section>`;
}

function confirmSection(request: PageRequest, plan: UndoPlan): Html | '' {
  const { planned } = plan;
  const total = (groups: readonly Group[]): number => groups.reduce((n, { count }) => n + count, 0);
  const [all, held] = [total(planned), total(planned.filter((group) => group.held))];
  if (all === 0) return '';
  if (held === 0) {
    return html`<section>
      <h2>Undo the run</h2>
      ${sendForm(request, plan, { action: 'undo', label: 'Undo this run', n: all })}
    </section>`;
  }
  return html`<section>
    <h2>Some of it needs an approval</h2>
    ${guardList(plan)} ${approval(request, plan, all)}
    ${held < all || request.mirror.config.approvers ? without(request, plan, all - held) : ''}
  </section>`;
}

/** Says which guards hold what, and what usually is the cause. */
function guardList(plan: UndoPlan): Html {
  const counts = heldIn(plan);
  const held = guardNames.filter((guard) => counts[guard] > 0);
  return html`<ul>
    ${held.map((guard) => {
      const { recordType, words } = guardRows[guard];
      const of = countWords(recordType, counts[guard]);
      return html`<li>The guard for ${words.counted} holds changes of ${of}.</li>`;
    })}
  </ul>`;
}

function approval(request: PageRequest, plan: UndoPlan, n: number): Html {
  const { approvers } = request.mirror.config;
  if (approvers) {
    return html`<p>
      ${approvers.need} of ${Object.keys(approvers.keys).length} approvers have to sign. Begin the
      undo below; then <code>crm-mirror approve ${plan.plan} --sign KEYFILE --reason TEXT</code>,
      and undo the run again.
    </p>`;
  }
  const label = 'Approve and undo this run';
  return html`<p>
      Approve it if it is what you want. In a terminal:
      <code>crm-mirror undo ${plan.undoes} --approve ${plan.plan}</code>
    </p>
    ${sendForm(request, plan, { action: 'undo-approve', label, n })}`;
}

function without(request: PageRequest, plan: UndoPlan, n: number): Html {
  const label = 'Undo without what needs approval';
  return html`<h3>Or without an approval</h3>
    <p class="quiet">The rest then waits, until somebody approves it here.</p>
    ${sendForm(request, plan, { action: 'undo', label, n })}`;
}

interface Sent {
  action: 'undo' | 'undo-approve';
  label: string;
  /** How many changes are sent. */
  n: number;
}

function sendForm(
  request: PageRequest,
  { plan, undoes }: UndoPlan,
  { action, label, n }: Sent,
): Html {
  const sends = `Send ${counted(n, 'change')} to the platform`;
  const what = n === 0 ? 'Ask for the approval, and send nothing yet' : sends;
  return actionForm(request, {
    action,
    label,
    values: { run: undoes, plan },
    needsReason: true,
    isGrave: true,
    fields: html`<label
      ><input type="checkbox" name="agreed" value="yes" required /> ${what}</label
    >`,
  });
}
