import type { Statements } from '../database/prepared-statements.ts';
import { z } from 'zod';
import { causes, type ListRemark } from '../../domain/do-not-contact.ts';

/**
 * What the ledger is to learn by the decisions of one round; staged, so that memory does not grow
 * with the people.
 */
export interface ListNews {
  add(remark: ListRemark): void;
  /** The next ones after the number `after`, in the order they came. */
  next(after: number, count: number): { nth: number; remark: ListRemark }[];
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

export function listNewsIn(db: Statements): ListNews {
  const add = db.prepare('insert into temp.remarked (body) values (?)');
  const next = db.prepare<[number, number], { seq: number; body: string }>(
    'select seq, body from temp.remarked where seq > ? order by seq limit ?',
  );
  return {
    add: (remark) => void add.run(JSON.stringify(remark)),
    next: (after, count) =>
      next
        .all(after, count)
        .map(({ seq, body }) => ({ nth: seq, remark: staged.parse(JSON.parse(body)) })),
  };
}
