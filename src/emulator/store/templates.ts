import type { TemplateUpdateBody } from '../../platform/request.ts';
import type { Ids } from '../random.ts';
import { newestFirst, type Newest } from './newest.ts';

/** The fields of a template that somebody writes ("Templates": update). */
export type TemplateFields = {
  [Field in keyof TemplateUpdateBody]-?: NonNullable<TemplateUpdateBody[Field]>;
};

/** A template as it is kept; times in milliseconds since the epoch. */
export interface TemplateRow extends TemplateFields {
  readonly id: string;
  readonly serial: number;
  readonly createdAt: number;
  updatedAt: number;
}

/** A template to be added; what is left out is empty, and the status draft. */
export interface NewTemplate extends TemplateUpdateBody {
  name: string;
  id?: string | undefined;
  createdAt?: number | undefined;
}

export interface Templates {
  add(template: NewTemplate, now: number): TemplateRow;
  byId(id: string): TemplateRow | undefined;
  listed(): Newest<TemplateRow>;
}

export function createTemplates(ids: Ids): Templates {
  const all = newestFirst<TemplateRow>();
  const byId = new Map<string, TemplateRow>();
  let serial = 0;

  return {
    add({ id = ids('tpl'), createdAt, ...fields }, now) {
      serial += 1;
      const madeAt = createdAt ?? now;
      const row = { ...empty, id, serial, createdAt: madeAt, updatedAt: madeAt };
      write(row, fields);
      byId.set(id, row);
      all.add(row);
      return row;
    },
    byId: (id) => byId.get(id),
    listed: () => all,
  };
}

/** Overwrites the fields that are given, and no others. */
export function write(template: TemplateRow, fields: TemplateUpdateBody): void {
  const given = Object.entries(fields).filter(([, value]) => value !== undefined);
  Object.assign(template, Object.fromEntries(given));
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
