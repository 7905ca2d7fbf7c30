import type { Random } from '../../../src/domain/clock.ts';
import type { GuardClass } from '../../../src/domain/guard-classes.ts';
import type { RecordTypeName } from '../../../src/domain/record.ts';
import { channels } from './engine-stage.ts';
import type { Place, Row } from './hold-model.ts';

/** Stores what is recorded, and who stated an opt-out. */
interface Store {
  put(row: { kind: RecordTypeName; key: string; body: string }): void;
  state(key: string, part: string): void;
}

/** To be in a channel is one wish, whether or not the person has to be created for it. */
export const nameOf = ({ guard, key, op, part }: Place) =>
  `${guard} ${key} ${op === 'create' ? 'opt_in' : op} ${part}`;

/** Draws a CRM, the people and templates of its mirror, and what it asks for. */
export function drawWorld(random: Random, { put, state }: Store) {
  const below = (n: number) => Math.floor(random() * n);
  const oneIn = (n: number) => below(n) === 0;
  const pick = <const T>(of: readonly [T, ...T[]]): T => of[below(of.length)] ?? of[0];
  const size = oneIn(3) ? below(9) : below(41);
  const people = Array.from({ length: size }, (_, at) => `p${at}@${pick(['a', 'a', 'b'])}.com`);
  const templates = Array.from({ length: below(8) }, (_, at) => `t${at}`);
  const owned = new Set<string>();
  const subscribed = new Set<string>();
  const stating: { key: string; part: string }[] = [];
  const joined = new Set<string>();
  /** What the CRM asks for, and is not done. */
  const wishes = new Map<string, Row>();

  const isOut = (key: string, part: string) =>
    stating.some((one) => one.key === key && one.part === part);
  function stateOut(key: string, part: string): void {
    if (joined.has(`${key} ${part}`) || isOut(key, part)) return;
    stating.push({ key, part });
    state(key, part);
  }
  function record(key: string): void {
    if (owned.has(key)) return;
    owned.add(key);
    const isIn = channels.filter((part) => !isOut(key, part) && !oneIn(4));
    if (isIn.length > 0) subscribed.add(key);
    for (const part of isIn) joined.add(`${key} ${part}`);
    const all = channels.flatMap((part) => {
      if (isIn.includes(part)) return [[part, { is: 'opt_in', by: 'us' }]];
      return isOut(key, part) ? [[part, { is: 'opt_out', by: 'us' }]] : [];
    });
    const body = { contacts: [], defaults: [], channels: Object.fromEntries(all) };
    put({ kind: 'contact', key, body: JSON.stringify(body) });
  }
  for (const key of people) {
    for (const part of channels) if (oneIn(3)) stateOut(key, part);
    if (!oneIn(3)) record(key);
  }
  for (const key of templates) put({ kind: 'template', key, body: '{}' });

  function wish(guard: GuardClass, key: string): Row[] {
    const isOurs = owned.has(key);
    const part = pick(['ch_news', 'ch_product']);
    const plain = { guard, kind: 'contact', key, part, body: '{}' } as const;
    const row = {
      ...plain,
      target: isOurs ? `id ${key}` : undefined,
      stated: false,
      withdraws: false,
    };
    if (guard === 'template') {
      const body = `{"version":${below(3)}}`;
      const op = pick(['update', 'update', 'archive']);
      return [{ ...row, kind: 'template', op, part: '', target: `id ${key}`, body }];
    }
    if (guard === 'opt_in') {
      const withdraws = isOut(key, part);
      const body = withdraws ? '{"withdraws":true}' : '{}';
      const made: Row = { ...row, op: isOurs ? 'opt_in' : 'create', body, withdraws };
      const other = part === 'ch_news' ? 'ch_product' : 'ch_news';
      return isOurs || oneIn(2) ? [made] : [made, { ...row, op: 'opt_in', part: other }];
    }
    if (!isOurs) return [];
    const out = { ...row, op: 'opt_out' } as const;
    if (guard === 'opt_out') return [{ ...out, body: '{"cause":"stated"}', stated: true }];
    const stated = oneIn(4);
    if (oneIn(2)) return [{ ...row, op: 'delete', part: '', stated }];
    return [{ ...out, body: `{"cause":"${stated ? 'flag' : 'absence'}"}`, stated }];
  }
  function change(): void {
    for (const name of wishes.keys()) if (oneIn(12)) wishes.delete(name);
    if (oneIn(15)) wishes.clear();
    for (const { key, part } of wishes.values()) if (oneIn(20)) stateOut(key, part || 'ch_news');
    for (let times = below(3); times > 0; times -= 1) {
      const guard = pick(['delete', 'opt_out', 'opt_in', 'template']);
      const share = pick([1, 1, 3, 8]);
      const some = (guard === 'template' ? templates : people).filter(() => below(9) < share);
      for (const row of some.flatMap((key) => wish(guard, key))) wishes.set(nameOf(row), row);
    }
    // A person who is recorded by now is opted in, not created.
    for (const [name, row] of wishes) {
      if (!owned.has(row.key) || row.target !== undefined) continue;
      wishes.delete(name);
      const now: Row = { ...row, op: 'opt_in', target: `id ${row.key}` };
      wishes.set(nameOf(now), now);
    }
  }
  const world = { owned, subscribed, stating, wanted: 30, templates: templates.length };
  return { below, oneIn, pick, people, world, wishes, record, change };
}
