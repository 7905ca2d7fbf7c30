/** Renders tables. */
import { html, type Html } from './page.ts';

/** A column: its title alone if it has text. Numbers are at the right; a name heads its row. */
type Column = string | { title: string; holds: 'numbers' | 'names' };

/** What a cell shows. */
export type Cell = Html | string | number;

/** The cells of a row, with the class of the row in the style sheet if it has one. */
type Row = readonly Cell[] | { style: string; cells: readonly Cell[] };

/** Returns a column with numbers. */
export function numbers(title: string): Column {
  return { title, holds: 'numbers' };
}

/** Returns a column with the names of the rows. */
export function names(title: string): Column {
  return { title, holds: 'names' };
}

/** Returns a table, which scrolls in a narrow window; without rows, what `none` says. */
export function table(columns: readonly Column[], rows: readonly Row[], none?: string): Html {
  if (rows.length === 0 && none !== undefined) return html`<p class="quiet">${none}</p>`;
  return html`<div class="scroll" tabindex="0">
    <table>
      ${head(columns)} ${body(columns, rows)}
    </table>
  </div>`;
}

/**
 * Returns a quiet table of facts, which breaks its rows in a narrow window. Without columns, each
 * row is a name and a value.
 */
export function factsTable(rows: readonly Row[], columns?: readonly Column[]): Html {
  return html`<table class="facts">
    ${columns ? head(columns) : ''} ${body(columns ?? [names(''), ''], rows)}
  </table>`;
}

function head(columns: readonly Column[]): Html {
  const titles = columns.map((column) => {
    if (typeof column === 'string') return html`<th scope="col">${column}</th>`;
    const { title, holds } = column;
    return holds === 'numbers'
      ? html`<th scope="col" class="number">${title}</th>`
      : html`<th scope="col">${title}</th>`;
  });
  return html`<thead>
    <tr>
      ${titles}
    </tr>
  </thead>`;
}

function body(columns: readonly Column[], rows: readonly Row[]): Html {
  return html`<tbody>
    ${rows.map((row) => {
      const { style, cells } = 'cells' in row ? row : { style: '', cells: row };
      const shown = cells.map((cell, at) => bodyCell(columns[at], cell));
      return html`<tr ${style === '' ? '' : html`class="${style}"`}>
        ${shown}
      </tr>`;
    })}
  </tbody>`;
}

function bodyCell(column: Column | undefined, cell: Cell): Html {
  const holds = typeof column === 'object' ? column.holds : 'text';
  if (holds === 'names') return html`<th scope="row">${cell}</th>`;
  // On a phone, each row is a block in which the cells have their titles.
  const title = typeof column === 'object' ? column.title : (column ?? '');
  const named = title === '' ? '' : html` data-title="${title}"`;
  return holds === 'numbers'
    ? html`<td class="number" ${named}>${cell}</td>`
    : html`<td ${named}>${cell}</td>`;
}
