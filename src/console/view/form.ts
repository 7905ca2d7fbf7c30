/** Renders forms for actions, and only for operators. */
import { html, linkTo, type Html, type PageRequest } from './page.ts';

/** A form with one button. */
export interface FormParts {
  /** The name of the action (actions.ts). */
  action: string;
  /** The text of the button. */
  label: string;
  /** Hidden values. */
  values?: Readonly<Record<string, string>>;
  /** Fields that the user fills in. */
  fields?: Html;
  /** Asks for a reason, which is kept with the decision. */
  needsReason?: boolean;
  /** Whether the button stands for something that is hard to take back. */
  isGrave?: boolean;
  /** Whether the button stands behind others. */
  isSecond?: boolean;
}

/** Returns the form; for a viewer, a note that an operator may do it. */
export function actionForm(request: PageRequest, parts: FormParts): Html {
  const { action, label, values = {}, fields = '', needsReason = false } = parts;
  const { isGrave = false, isSecond = false } = parts;
  if (request.user.role !== 'operator') {
    return html`<p class="quiet">An operator can do this: ${label}.</p>`;
  }
  const hidden = Object.entries({ csrf: request.csrf, back: request.here, ...values });
  return html`<form class="action" method="post" action="${linkTo(request, `do/${action}`)}">
    ${hidden.map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
    ${fields}
    ${
      needsReason
        ? html`<label
            >Reason <input name="reason" required maxlength="300" autocomplete="off"
          /></label>`
        : ''
    }
    <button class="${[isGrave ? 'grave' : '', isSecond ? 'second' : ''].join(' ').trim()}">
      ${label}
    </button>
  </form>`;
}
