/**
 * Renders forms: for actions, and only for operators; and filters, whose values are in the address
 * of a page, with links that keep them.
 */
import { html, type Html, raw } from '../../views/render/html.ts';
import { linkTo, type PageContent, type PageRequest } from './page.ts';

/** A button of a form. */
interface Button {
  /** The action (actions.ts), if it is another one than that of the form. */
  action?: string;
  label: string;
  /** What the button sends besides the fields of its form. */
  sends?: { name: string; value: string };
  /** Whether the button stands for something that is hard to take back. */
  isGrave?: boolean;
  /** Whether the button stands behind others. */
  isSecond?: boolean;
}

/** A form with one button, or with two that share its fields. */
export interface FormParts extends Button {
  action: string;
  /** Another button for the same fields. */
  second?: Button;
  /** Hidden values. */
  values?: Readonly<Record<string, string>>;
  /** Fields that the user fills in. */
  fields?: Html;
  /** Asks for a reason, which is kept with the decision; `optional`: it may be left out. */
  needsReason?: boolean | 'optional';
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

/** A field of a filter. */
export interface Choice {
  /** The name in the query. */
  name: string;
  label: string;
  /** The values, each with its text. */
  options: readonly (readonly [value: string, text: string])[];
}

/** Returns a field whose values are their own texts. */
export function choice(name: string, label: string, values: readonly string[]): Choice {
  return { name, label, options: values.map((value) => [value, value]) };
}

/** Returns the form; a field without a choice selects everything. */
export function filterForm(request: PageRequest, choices: readonly Choice[]): Html {
  return html`<form class="row" method="get" action="${pathOf(request)}">
    ${choices.map((one) => field(one, request.query[one.name]))}
    <button class="second">Filter</button>
  </form>`;
}

function field({ name, label, options }: Choice, chosen: string | undefined): Html {
  const selected = (value: string): Html | '' => (value === chosen ? raw('selected') : '');
  return html`<label
    >${label}
    <select name="${name}">
      <option value="">all</option>
      ${options.map(
        ([value, text]) => html`<option value="${value}" ${selected(value)}>${text}</option>`,
      )}
    </select></label
  >`;
}

/** Returns the address of this page with other values in its query; undefined removes one. */
export function withQuery(
  request: PageRequest,
  values: Readonly<Record<string, string | undefined>>,
): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...request.query, ...values })) {
    if (value !== undefined && value !== '') query.set(name, value);
  }
  const text = query.toString();
  return pathOf(request) + (text === '' ? '' : `?${text}`);
}

/** Returns the links to the entries before and after those that a page shows. */
export function pagerLinks(
  request: PageRequest,
  from: number,
  perPage: number,
  hasMore: boolean,
): Html {
  const link = (to: number, text: string): Html =>
    html`<a href="${withQuery(request, { from: to > 0 ? `${to}` : undefined })}">${text}</a>`;
  return html`<p class="row">
    ${from > 0 ? link(from - perPage, 'Newer') : ''} ${hasMore ? link(from + perPage, 'Older') : ''}
  </p>`;
}

function pathOf({ here }: PageRequest): string {
  return here.split('?', 1)[0] ?? here;
}
