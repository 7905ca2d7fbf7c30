import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import { newestFirst } from './newest-first.ts';
import type { Shelf } from './storage.ts';
import type { TemplateFields, TemplateRow } from '../shared/row-types.ts';

/** A template to add. Omitted fields are empty, and the status defaults to draft. */
export interface NewTemplate extends TemplateUpdateBody {
  name: string;
  id?: string | undefined;
  createdAt?: number | undefined;
  updatedAt?: number | undefined;
}

export function createTemplates(ids: Ids, shelf: Shelf<TemplateRow>) {
  const all = newestFirst<TemplateRow>();
  const byId = new Map<string, TemplateRow>();
  let serial = 0;

  function put(row: TemplateRow): void {
    serial = Math.max(serial, row.serial);
    byId.set(row.id, row);
    all.add(row);
  }

  return {
    add(
      { id = ids('tpl'), createdAt, updatedAt, ...fields }: NewTemplate,
      now: number,
    ): TemplateRow {
      const times = { createdAt: createdAt ?? now, updatedAt: updatedAt ?? createdAt ?? now };
      const row = { ...empty, id, serial: serial + 1, ...times };
      Object.assign(row, given(fields));
      put(row);
      shelf.keep(row);
      return row;
    },
    put,
    remove(row: TemplateRow): void {
      byId.delete(row.id);
      all.remove(row);
      shelf.drop(row.id);
    },
    byId: (id: string) => byId.get(id),
    /** Overwrites only the given fields. */
    change(row: TemplateRow, fields: TemplateUpdateBody, now: number): void {
      Object.assign(row, given(fields), { updatedAt: now });
      shelf.keep(row);
    },
    listed: () => all,
    rows: () => byId.values(),
    clear(): void {
      byId.clear();
      all.clear();
      serial = 0;
    },
  };
}

/** Holds all templates of one organization, except deleted ones. */
export type Templates = ReturnType<typeof createTemplates>;

function given(fields: TemplateUpdateBody): TemplateUpdateBody {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

const empty: TemplateFields = {
  name: '',
  description: '',
  subject: '',
  fromEmail: '',
  replyTo: '',
  previewText: '',
  content: [],
  variables: [],
  status: 'draft',
};
