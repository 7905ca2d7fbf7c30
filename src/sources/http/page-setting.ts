/** Proposes the `page` setting by which the rest of a list is read. */
import type { NextPlace, Sign } from './more-signs.ts';
import type { HttpOptions } from './options.ts';

type Paged = Pick<HttpOptions, 'url' | 'page'>;

/** Returns what to do to read the rest of a list, with the setting that a sign suggests. */
export function howToReadOn({ url, page }: Paged, sign?: Sign): string {
  if (page)
    return page.cursor === undefined ? 'correct page' : 'correct page.cursor and page.param';
  const [first] = sign?.place ? settingsFor(sign.place, url) : [];
  if (!first) return 'add page, by which the API is asked for its pages, such as { number: page }';
  const { number, cursor, param } = first;
  const setting = number === undefined ? `cursor: ${cursor}, param: ${param}` : `number: ${number}`;
  return `add page: { ${setting} }`;
}

/** Returns the settings that a named place suggests, the likeliest first. */
export function settingsFor(
  { path, text }: NextPlace,
  url: string,
): NonNullable<HttpOptions['page']>[] {
  const link = linkIn(text, url);
  if (link) {
    const own = URL.parse(url)?.searchParams;
    const params = [...link.searchParams].filter(([name, value]) => own?.get(name) !== value);
    const numbers = params.filter(([name, value]) => value === '2' && /page|^p$/i.test(name));
    const isPath = !path.includes(' ');
    return [
      ...numbers.map(([number]) => ({ number })),
      ...(isPath ? params.map(([param]) => ({ cursor: path, param })) : []),
    ];
  }
  if (path.includes(' ')) return [];
  return [{ cursor: path, param: paramFor(path.split('.').at(-1) ?? '') }];
}

/** Returns the cursor in a field, which may be the address of the next page. */
export function cursorIn(value: unknown, param: string, url: string): unknown {
  if (typeof value !== 'string') return value;
  return linkIn(value, url)?.searchParams.get(param) ?? value;
}

/** Returns the address in a text, which may begin with its path. */
function linkIn(text: string, url: string): URL | undefined {
  return /^(https?:\/)?\/|^\?/.test(text) ? (URL.parse(text, url) ?? undefined) : undefined;
}

/** Returns the parameter that probably takes a cursor: `next_page_token` is for `page_token`. */
function paramFor(name: string): string {
  const rest = name.replace(/^next[_-]?/i, '');
  return rest === '' ? 'cursor' : rest.charAt(0).toLowerCase() + rest.slice(1);
}
