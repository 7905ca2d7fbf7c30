/** Renders what an operator can do about one person. */
import type { Key } from '../../../domain/record.ts';
import type { ProblemCause } from '../../../domain/record-problem.ts';
import type { RecordDocument } from '../../../views/state/record-document.ts';
import { channelName } from '../../view/channel-name.ts';
import { actionForm, askForm } from '../../view/form.ts';
import { html, type Html, type PageRequest } from '../../view/page.ts';

interface Person {
  key: Key;
  document: RecordDocument;
}

/** The conflicts in which nobody is known to have opted out, so that `resolve --in` may be used. */
const mayBeIn: ReadonlySet<ProblemCause> = new Set(['own-opt-out', 'undone', 'opt-out-doubtful']);

const onPlatform = 'the person opted out on the platform, and only the person can come back';

/** Why an operator cannot say that the person wants in, where that is not what the person did. */
const notIn: Readonly<Partial<Record<ProblemCause, string>>> = {
  'several-contacts': 'several contacts share the address: delete all but one on the platform',
  'records-contradict': 'the records in the CRM contradict each other: merge them there',
  renamed: 'the two sides have different addresses: make them equal first',
  'renamed-claimed': 'another record of the CRM has the address: correct that one first',
  vanished: 'the contact is no longer on the platform, and not by this mirror',
};

/** Returns the form that resolves a conflict; '' for those who may not. */
export function resolveForms(
  request: PageRequest,
  { key }: Person,
  { channel, conflict }: { channel: string; conflict: ProblemCause },
): Html | '' {
  if (request.user.role !== 'operator' || conflict === 'erased') return '';
  const isIn = mayBeIn.has(conflict);
  const missing = isIn
    ? ''
    : html`<p class="quiet">
        “The person wants in” is not offered: ${notIn[conflict] ?? onPlatform}.
      </p>`;
  return html`<details>
    <summary>Resolve the conflict in ${channelName(request, channel)}</summary>
    <p class="quiet">
      The CRM and the platform are read first. Nothing is sent now: the next run does it. Name no
      address in the texts, because they are kept in the audit log.
    </p>
    ${missing}
    ${actionForm(request, {
      action: 'resolve',
      label: isIn ? 'The person wants in' : 'The person wants out',
      sends: { name: 'to', value: isIn ? 'in' : 'out' },
      ...(isIn
        ? { second: { label: 'The person wants out', sends: { name: 'to', value: 'out' } } }
        : {}),
      values: { person: key, channel },
      needsReason: true,
      fields: html`<label
        >Evidence
        <input
          name="evidence"
          required
          maxlength="300"
          autocomplete="off"
          placeholder="a ticket, a signed form"
      /></label>`,
    })}
  </details>`;
}

/** The buttons that ask the CRM and the platform about a person. */
const questions = {
  now: { end: 'now', label: 'Ask CRM and platform now' },
  dossier: { end: 'dossier.html', label: 'Download the dossier' },
} as const;

/** Returns the form with one of these buttons. */
export function questionForm(request: PageRequest, what: keyof typeof questions): Html {
  const { end, label } = questions[what];
  return askForm(request, { path: `people/${request.id}/${end}`, label });
}

/** Returns the buttons of the page. */
export function personButtons(request: PageRequest, { key, document }: Person): Html {
  const isOperator = request.user.role === 'operator';
  const isRefused = document.refused.length > 0 || document.reports.some(isRejected);
  return html`<div class="row">
    ${isOperator ? questionForm(request, 'now') : ''}
    ${
      isOperator && isRefused
        ? actionForm(request, {
            action: 'retry',
            label: 'Try again',
            values: { person: key },
            needsReason: 'optional',
          })
        : ''
    }
    ${request.user.seesAddresses ? questionForm(request, 'dossier') : ''}
  </div>`;
}

function isRejected({ state }: RecordDocument['reports'][number]): boolean {
  return state === 'rejected';
}
