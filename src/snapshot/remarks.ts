import type { Statements } from './statements.ts';
import { z } from 'zod';
import { causes, type Remark } from '../model/ledger.ts';

/**
 * What the ledger is to learn by the decisions of one round; staged, so that memory does not grow
 * with the people.
 */
export interface Remarks {
  add(remark: Remark): void;
  /** In the order they came. Nothing else may use the snapshot meanwhile. */
  all(): IterableIterator<Remark>;
}

const memory = z.object({
  part: z.string(),
  cause: z.enum(causes),
  contact: z.string().nullable(),
  after: z.number().nullable(),
  by: z.number(),
});
const staged = z.object({
  key: z.string(),
  ids: z.array(z.string()),
  adds: z.array(memory),
  ends: z.array(z.object({ seq: z.number(), why: z.string() })),
});

export function remarksIn(db: Statements): Remarks {
  const add = db.prepare('insert into temp.remarked (body) values (?)');
  const all = db.prepare<[], { body: string }>('select body from temp.remarked order by seq');
  return {
    add: (remark) => void add.run(JSON.stringify(remark)),
    *all() {
      for (const { body } of all.iterate()) yield staged.parse(JSON.parse(body));
    },
  };
}
