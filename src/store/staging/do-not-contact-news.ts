import type { Statements } from '../database/prepared-statements.ts';
import { z } from 'zod';
import { causes, type ListRemark } from '../../domain/do-not-contact.ts';

/**
 * Stages the changes to the do-not-contact list from the decisions of one round, so that memory use
 * does not grow with the number of people.
 */
export interface ListNews {
  add(remark: ListRemark): void;
  /** Returns the next remarks after number `after`, in the order in which they were added. */
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

/** Prepares the statements about staged remarks. */
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
