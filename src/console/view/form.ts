/** Renders forms for actions, and only for operators. */
import { html, linkTo, type Html, type PageContent, type PageRequest, raw } from './page.ts';

/** What a button sends besides the fields of its form. */
interface Sent {
  name: string;
  value: string;
}

/** A form with one button, or with two that share its fields. */
export interface FormParts {
  /** The name of the action (actions.ts). */
  action: string;
  /** The text of the button. */
  label: string;
  /** What the button sends. */
  sends?: Sent;
  /** Another button for the same fields. */
  second?: { action?: string; label: string; sends?: Sent; isGrave?: boolean };
  /** Hidden values. */
  values?: Readonly<Record<string, string>>;
  /** Fields that the user fills in. */
  fields?: Html;
  /** Asks for a reason, which is kept with the decision; `optional`: it may be left out. */
  needsReason?: boolean | 'optional';
  /** Whether the button stands for something that is hard to take back. */
  isGrave?: boolean;
  /** Whether the button stands behind others. */
  isSecond?: boolean;
}

/** Returns the form; for a viewer, a note that an operator may do it. */
export function actionForm(request: PageRequest, parts: FormParts): Html {
  const { action, label, values = {}, fields = '', needsReason = false, second } = parts;
  if (request.user.role !== 'operator') {
    return html`<p class="quiet">
      An operator can do this: ${second ? `${label}, ${second.label}` : label}.
    </p>`;
  }
  const { action: _, ...first } = parts;
  const hidden = Object.entries({ csrf: request.csrf, back: request.here, ...values });
  return html`<form class="action" method="post" action="${linkTo(request, `do/${action}`)}">
    ${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
    ${fields}
    ${
      needsReason
        ? html`<label
            >Reason${needsReason === 'optional' ? ' (optional)' : ''}
            <input
              name="reason"
              ${needsReason === 'optional' ? '' : 'required'}
              maxlength="300"
              autocomplete="off"
          /></label>`
        : ''
    }
    ${button(request, first)} ${second ? button(request, second) : ''}
  </form>`;
}

type Button = NonNullable<FormParts['second']> & Pick<FormParts, 'isSecond'>;

function button(
  request: PageRequest,
  { action, label, sends, isGrave = false, isSecond = false }: Button,
): Html {
  const to = action === undefined ? '' : raw(`formaction="${linkTo(request, `do/${action}`)}"`);
  const what = sends ? html`name="${sends.name}" value="${sends.value}"` : '';
  const style = [isGrave ? 'grave' : '', isSecond ? 'second' : ''].join(' ').trim();
  return html`<button class="${style}" ${to} ${what}>${label}</button>`;
}

/** Returns the form whose button has a page of the mirror ask the CRM or the platform. */
export function askForm(
  request: PageRequest,
  { path, label }: { path: string; label: string },
): Html {
  return html`<form class="action" method="post" action="${linkTo(request, path)}">
    <input type="hidden" name="csrf" value="${request.csrf}" />
    <button class="second">${label}</button>
  </form>`;
}

/** What a viewer gets who has the CRM or the platform asked. */
export const notOperator = forbidden('Only operators can ask the CRM and the platform');

/** Returns the page for a user who may not see it. */
export function forbidden(line: string): PageContent {
  return { title: 'This is not for you', code: 403, body: html`<p>${line}.</p>` };
}
