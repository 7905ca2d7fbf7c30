/**
 * What is asked for one record, or for one person of very many, never goes through a whole table:
 * SQLite chooses how it searches, and says so.
 */
import Database from 'better-sqlite3';
import { expect, test, vi } from 'vitest';
import { createStage, type Stage } from '../support/engine/engine-stage.ts';

/** Everything that was compiled meanwhile, with how SQLite goes about it. */
async function searches(story: () => Promise<void>): Promise<Map<string, string[]>> {
  const { prepare } = Database.prototype;
  const found = new Map<string, string[]>();
  const spy = vi.spyOn(Database.prototype, 'prepare').mockImplementation(function (
    this: Database.Database,
    sql: string,
  ) {
    if (/^\s*(select|with|insert|update|delete)/.test(sql) && !found.has(sql)) {
      const names = sql.match(/@\w+/g) ?? [];
      const explain = prepare.call(this, `explain query plan ${sql}`);
      const values = (sql.match(/\?/g) ?? []).map(() => 1);
      const rows =
        names.length > 0
          ? explain.all(Object.fromEntries(names.map((name) => [name.slice(1), 1])))
          : explain.all(values);
      found.set(
        sql,
        rows.map((row) => String(Reflect.get(Object(row), 'detail'))),
      );
    }
    return prepare.call(this, sql);
  });
  await story();
  spy.mockRestore();
  return found;
}

/** People who stay, come, leave and move, by full and by fast runs. */
async function story(tellsChanges: boolean): Promise<void> {
  const policy = { absent: 'opt_out', deletes: 'owned' } as const;
  const stage: Stage = createStage({ policy, tellsChanges });
  const { people } = stage;
  for (const id of ['1', '2', '3']) people.push({ id, email: `${id}@example.com`, ch_news: 'yes' });
  await stage.sync();
  people[0] = { id: '1', email: 'moved@example.com', ch_news: 'yes' };
  people.pop();
  stage.changed.push('1');
  for (const mode of ['fast', 'full', 'full'] as const) {
    await stage.clock.advance(86_400_000);
    await stage.sync({ mode });
  }
  stage.close();
}

/** Of one kind all there are, in the tables that have a row for everybody. */
const isWhole = (step: string): boolean =>
  /^(SCAN (main\.)?(origin|recorded|o|r)\b|SEARCH (origin|recorded|o|r) .*\(kind=\?\))/.test(step);

/** Counts and walks that are made once in a run. */
const once = ['select count(*) from recorded', "ownership <> 'noted'", 'select 1 from recorded'];

test('no query scans a table for one person', async () => {
  const found = await searches(async () => {
    await story(false);
    await story(true);
  });
  expect(found.size).toBeGreaterThan(80);
  const whole = [...found].filter(([sql, steps]) => {
    return steps.some(isWhole) && !once.some((known) => sql.includes(known));
  });
  expect(whole).toEqual([]);
});
