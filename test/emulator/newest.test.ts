import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newestFirst, type Dated } from '../../src/emulator/store/table.ts';
import { stage } from '../support/emulator/emulator-stage.ts';

test('the newest rows are what sorting all rows would give', () => {
  const step = fc.oneof(
    fc.record({ add: fc.integer({ min: 0, max: 5 }) }),
    fc.record({ remove: fc.nat() }),
  );
  fc.assert(
    fc.property(fc.array(step), fc.integer({ min: 1, max: 4 }), (steps, limit) => {
      const listed = newestFirst<Dated>();
      let model: Dated[] = [];
      for (const [serial, change] of steps.entries()) {
        if ('add' in change) {
          const row = { createdAt: change.add, serial };
          listed.add(row);
          model = [...model, row].sort((a, b) => b.createdAt - a.createdAt || b.serial - a.serial);
        } else {
          const row = model[change.remove % model.length];
          if (row === undefined) continue;
          listed.remove(row);
          model = model.filter((other) => other !== row);
        }
      }
      expect([...listed]).toEqual(model);
      expect(listed.size).toBe(model.length);
      const pages = Math.ceil(model.length / limit) + 1;
      const paged = Array.from({ length: pages }, (_, index) => listed.page(index + 1, limit));
      expect(paged.flat()).toEqual(model);
      expect(paged.at(-1)).toEqual([]);
    }),
  );
});

test('removing a missing row removes nothing', () => {
  const listed = newestFirst<Dated>();
  listed.add({ createdAt: 1, serial: 1 });
  listed.remove({ createdAt: 1, serial: 2 });
  listed.remove({ createdAt: 0, serial: 0 });
  expect(listed.size).toBe(1);
});

test.each([
  ['template', 'name', {}],
  ['domain', 'domain', { object: 'domain' }],
] as const)(
  'a list of %ss: newest first, 20 by default, all of them, an exact total',
  (kind, key, more) => {
    const platform = stage();
    for (let index = 0; index < 25; index += 1) {
      const name = `d${index}.example`;
      const status = index === 24 ? 'archived' : 'draft';
      if (kind === 'template') platform.seed.template({ name, status });
      else platform.seed.domain({ domain: name });
      platform.pass(1);
    }
    const list = (query = '') => platform.ask(`GET /api/${kind}/v1/list${query}`).json;
    const names = (rows: Record<string, unknown>[]) => rows.map((row) => row[key]);
    const { [`${kind}s`]: rows, ...first } = list();
    expect(first).toEqual({ ...more, total: 25, page: 1, limit: 20, event: `${kind}.list` });
    expect([rows.length, names(rows)[0]]).toEqual([20, 'd24.example']);
    const rest = [4, 3, 2, 1, 0].map((index) => `d${index}.example`);
    expect(names(list('?page=2')[`${kind}s`])).toEqual(rest);
    expect(list('?page=3')[`${kind}s`]).toEqual([]);
  },
);
