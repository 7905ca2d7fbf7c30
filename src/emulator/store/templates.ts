import type { TemplateUpdateBody } from '../../platform/request-schemas.ts';
import type { Ids } from '../shared/seeded-random.ts';
import { createTable } from './newest-first.ts';
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
  const table = createTable(shelf);
  return {
    ...table,
    add(
      { id = ids('tpl'), createdAt, updatedAt, ...fields }: NewTemplate,
      now: number,
    ): TemplateRow {
      const times = { createdAt: createdAt ?? now, updatedAt: updatedAt ?? createdAt ?? now };
      const row = { ...empty, id, serial: table.nextSerial(), ...times };
      return table.insert(Object.assign(row, given(fields)));
    },
    /** Overwrites only the given fields. */
    change: (row: TemplateRow, fields: TemplateUpdateBody, now: number) =>
      table.change(row, given(fields), now),
  };
}

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
