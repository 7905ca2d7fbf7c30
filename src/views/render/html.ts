/** Prints sections in a browser. The template `html` escapes values, but no pieces of HTML. */
import { html, raw } from 'hono/html';
import { dayText, range } from '../../compose/output/format-values.ts';
import { visibleLine } from '../../compose/output/text-style.ts';
import type { Key, RecordTypeName } from '../../domain/record.ts';
import {
  filled,
  type Happening,
  isEmpty,
  itemOf,
  rowOf,
  type Section,
  type Sign,
  type Span,
  spansOf,
  type Table,
  type Text,
} from '../sections.ts';

export { html, raw };

/** A piece of HTML. Values in the template `html` are escaped, but for other pieces. */
export type Html = ReturnType<typeof html>;

const aTime = /(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)/;

/** Returns a text in which `words in backticks` are shown as code, and times as times. */
export function prose(text: string): Html {
  const timed = (part: string): Html => {
    const parts = part.split(aTime);
    return html`${parts.map((one, at) => (at % 2 === 1 ? timeOf(one) : one))}`;
  };
  const parts = text.split('`');
  return html`${parts.map((part, at) => (at % 2 === 1 ? html`<code>${part}</code>` : timed(part)))}`;
}

/**
 * Returns a time such as 2026-01-01T10:30:05Z as people read it: 1 Jan 2026, 10:30 UTC; a moment
 * has its second: 1 Jan 2026, 10:30:05 UTC.
 */
export function timeOf(instant: string, isMoment = false): Html {
  const exact = instant.replace('T', ' ').replace('Z', ' UTC');
  const text = `${dayText(instant)}, ${instant.slice(11, isMoment ? 19 : 16)} UTC`;
  const seconds = isMoment && raw('data-seconds');
  return html`<time datetime="${instant}" title="${exact}" ${seconds}>${text}</time>`;
}

/** Returns such a time and how long ago it was: 1 Jan 2026, 10:30 UTC (12 min ago). */
export function timeAgo(instant: string, now: string): Html {
  const ms = Date.parse(now) - Date.parse(instant);
  return ms < 0 ? timeOf(instant) : html`${timeOf(instant)} (${range(ms)} ago)`;
}

/** A figure: what it counts, and the address of what it is about, which may be shown already. */
type Tile = readonly [
  value: string | number,
  what: string | Html,
  href?: string,
  isShown?: boolean,
];

/** Shows figures. */
export function tiles(all: readonly Tile[]): Html {
  return html`<div class="tiles">
    ${all.map(([value, what, href, isShown]) =>
      href === undefined
        ? html`<div class="tile"><b>${value}</b> ${what}</div>`
        : html`<a class="tile" href="${href}" ${isShown && raw('aria-current="true"')}
            ><b>${value}</b> ${what}</a
          >`,
    )}
  </div>`;
}

/** How a reader of the console names and links what sections speak of. */
export interface HtmlReader {
  /** Renders words; by default, as `prose` does. */
  words?(text: string): Html;
  channel?(id: string): Html | string;
  /** Returns the address of a record's page, or undefined if it has none. */
  recordLink?(record: { kind: RecordTypeName; key: Key }): string | undefined;
  pageLink?(path: string): string;
  /** Returns the forms that belong to the section or the line with this id. */
  forms?(id: string): Html | '';
}

/** Returns sections with headings of this level; those below a heading have the next one. */
export function sectionsHtml(
  sections: readonly Section[],
  reader: HtmlReader,
  level: 2 | 3 = 2,
): Html {
  return html`${filled(sections).map((section) => {
    const { aside, isFolded = false } = section;
    const title = section.title === undefined ? undefined : textHtml(section.title, reader);
    const content = contentHtml(section, reader);
    if (title === undefined) return content;
    const after =
      aside === undefined ? '' : html` <small class="quiet">${textHtml(aside, reader)}</small>`;
    if (isFolded) {
      return html`<details>
        <summary>${title}${after}</summary>
        ${content}
      </details>`;
    }
    if (level === 3)
      return html`<h3>${title}${after}</h3>
        ${content}`;
    return html`<section>
      <h2>${title}${after}</h2>
      ${content}
    </section>`;
  })}`;
}

function contentHtml(section: Section, reader: HtmlReader): Html {
  const { id, facts = [], lines = [], isList, table: shown, happened = [], none = '' } = section;
  const { measure } = section;
  const items = lines.map(itemOf);
  const isDiff = items.some(({ sign }) => sign !== undefined);
  return html`${measure ? measureHtml(measure) : ''}${
    // Its rows are broken in a narrow window.
    facts.length > 0 &&
    html`<table class="facts">
      <tbody>
        ${facts.map(
          ([name, value]) =>
            html`<tr>
              <th scope="row">${textHtml(name, reader)}</th>
              <td class="">${textHtml(value, reader)}</td>
            </tr>`,
        )}
      </tbody>
    </table>`
  }
  ${
    isList && items.length > 0
      ? html`<ul class="${isDiff ? 'diff' : ''}">
          ${items.map(
            ({ id: item, sign, text, notes }) =>
              html`<li class="${sign ? signStyles[sign] : ''}">
                ${sign && html`<b aria-hidden="true">${sign}</b>`}
                ${textHtml(text, reader)}${notesHtml(notes, reader)} ${formsHtml(item, reader)}
              </li>`,
          )}
        </ul>`
      : items.map(
          ({ text, notes }) => html`<p>${textHtml(text, reader)}${notesHtml(notes, reader)}</p>`,
        )
  }
  ${shown && shown.rows.length > 0 && tableHtml(shown, reader)}
  ${
    happened.length > 0 &&
    html`<ol class="timeline">
      ${happened.map((one) => html`<li>${happeningHtml(one, reader)}</li>`)}
    </ol>`
  }
  ${isEmpty(section) && none !== '' && html`<p class="quiet">${none}</p>`} ${formsHtml(id, reader)}`;
}

function measureHtml({ text, n, of, most }: NonNullable<Section['measure']>): Html {
  return html`<p>
    <strong>${text}</strong
    ><span class="measure"
      ><meter min="0" max="${of}" high="${most}" optimum="0" value="${n}">${text}</meter
      ><svg viewBox="0 0 ${of} 1" preserveAspectRatio="none" aria-hidden="true">
        <path d="M${most} 0v1" />
      </svg>
    </span>
  </p>`;
}

/** Returns a table, which scrolls in a narrow window; marks are left out. */
function tableHtml({ columns, rows }: Table, reader: HtmlReader): Html {
  const shown = columns
    .map((one, at) => ({ ...(typeof one === 'string' ? { title: one, holds: '' } : one), at }))
    .filter(({ holds }) => holds !== 'marks');
  const style = (holds: string): string => (holds === 'numbers' ? 'number' : '');
  return html`<div class="scroll" tabindex="0">
    <table>
      <thead>
        <tr>
          ${shown.map(({ title, holds }) => html`<th scope="col" class="${style(holds)}">${title}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map((row) => {
          const { id, cells, notes } = rowOf(row);
          const after = html`${notesHtml(notes, reader)} ${formsHtml(id, reader)}`;
          const isLast = (at: number): boolean => at === cells.length - 1;
          return html`<tr>
            ${shown.map(({ title, holds, at }) => {
              const cell = html`${textHtml(cells[at] ?? '', reader)}${isLast(at) ? after : ''}`;
              if (holds === 'names') return html`<th scope="row">${cell}</th>`;
              // On a phone, each row is a block in which the cells have their titles.
              const isNone = spansOf(cells[at] ?? '').every((span) => span === '');
              const named = title === '' || isNone ? '' : html` data-title="${title}"`;
              return html`<td class="${style(holds)}" ${named}>${cell}</td>`;
            })}
          </tr>`;
        })}
      </tbody>
    </table>
  </div>`;
}

function formsHtml(id: string | undefined, { forms }: HtmlReader): Html | '' {
  return id === undefined ? '' : (forms?.(id) ?? '');
}

const signStyles: Readonly<Record<Sign, string>> = {
  '+': 'added',
  '−': 'removed',
  '~': 'changed',
  '!': 'refused',
  '·': 'quiet',
};

function notesHtml(notes: readonly Text[], reader: HtmlReader): Html {
  return html`${notes.map((note) => html` <small class="quiet note">${textHtml(note, reader)}</small>`)}`;
}

function happeningHtml({ at, title, facts, texts = [] }: Happening, reader: HtmlReader): Html {
  const named = facts.map(
    ([name, value]) =>
      html`<dt>${name}</dt>
        <dd>${textHtml(value, reader)}</dd>`,
  );
  return html`<p>${timeOf(at, true)} <strong>${textHtml(title, reader)}</strong></p>
    ${named.length > 0 && html`<dl>${named}</dl>`}
    ${texts.map(
      ([name, text]) =>
        html`<details>
          <summary>${name}<span class="hidden"> of ${at}</span></summary>
          <pre>${visibleLine(text)}</pre>
        </details>`,
    )}`;
}

export function textHtml(text: Text, reader: HtmlReader): Html {
  return html`${spansOf(text).map((span) => spanHtml(span, reader))}`;
}

function spanHtml(
  span: Span,
  { words = prose, channel, recordLink, pageLink }: HtmlReader,
): Html | string {
  if (typeof span === 'string') return words(visibleLine(span));
  if ('moment' in span) return timeOf(span.moment, true);
  if ('strong' in span) return html`<strong>${words(span.strong)}</strong>`;
  if ('verbatim' in span) return html`<pre>${span.verbatim}</pre>`;
  if ('at' in span)
    return html`<time datetime="${span.at}" title="${span.at}" data-ago>${span.ago}</time>`;
  if ('channel' in span) return channel?.(span.channel) ?? span.channel;
  if ('tone' in span) {
    const { tone, text } = span;
    return tone === 'quiet'
      ? html`<span class="quiet">${words(text)}</span>`
      : html`<span class="chip ${tone}">${words(text)}</span>`;
  }
  const name = 'record' in span ? span.name : span.text;
  const href = 'record' in span ? recordLink?.(span.record) : pageLink?.(span.page);
  return href === undefined ? name : html`<a href="${href}">${name}</a>`;
}
