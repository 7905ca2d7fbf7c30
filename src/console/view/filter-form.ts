/** Renders filters: forms whose values are in the address of a page, and links that keep them. */
import { html, type Html, type PageRequest, raw } from './page.ts';

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

function pathOf({ here }: PageRequest): string {
  return here.split('?', 1)[0] ?? here;
}
