/** The inverse of a run's changes to a template, line by line of the table of `undoTemplate`. */
import type { States } from '../support/records/record-stage.ts';
import { expect, test } from 'vitest';
import type { DoneChange } from '../../src/domain/change.ts';
import { canonicalJson } from '../../src/domain/record.ts';
import {
  answered,
  hello,
  helloShown,
  keep,
  overwrite,
  settled,
  EDITED,
  file,
  sends,
  shown,
  states,
} from '../support/records/template-letter.ts';

const run = 'r1';
/** Written by the run that is undone. */
const known = { desired: [hello], recorded: settled, observed: [helloShown()] };
const fields = { subject: 'Hello' };
const before = canonicalJson({ name: 'welcome', subject: 'Before' });
const done = (op: DoneChange['op'], more: Partial<DoneChange> = {}): DoneChange => ({
  op,
  part: '',
  target: op === 'create' ? undefined : 'tpl_1',
  body: canonicalJson({ fields, wanted: { name: 'welcome', subject: 'Hello' } }),
  before,
  later: undefined,
  isUndone: false,
  wasThere: false,
  ...more,
});
const back = { op: 'update', target: 'tpl_1', fields: { subject: 'Before' } };
const archived = { op: 'archive', target: 'tpl_1', fields: { status: 'archived' } };
const archive = {
  body: canonicalJson({ fields: { status: 'archived' }, wanted: { name: 'welcome' } }),
  before: canonicalJson({ name: 'welcome', status: 'published' }),
};

test.each<[string, DoneChange[], Partial<States>, unknown[], string[]]>([
  ['an update', [done('update')], {}, [back], []],
  ['two updates: the version before the first', [done('update'), done('update')], {}, [back], []],
  ['a later run', [done('update', { later: 'r2' })], {}, [], ['changed-later']],
  ['gone', [done('update')], { observed: [] }, [], ['template-gone']],
  [
    'edited since',
    [done('update')],
    { observed: [shown({ subject: 'By hand', updatedAt: EDITED })] },
    [],
    ['template-edited'],
  ],
  ['a version not kept', [done('update', { before: undefined })], {}, [], ['version-unknown']],
  [
    'a field that was empty and cannot be',
    [done('update', { before: canonicalJson({ name: 'welcome' }) })],
    {},
    [],
    ['version-unknown'],
  ],
  ['a creation', [done('create'), done('complete')], {}, [archived], []],
  [
    'an archive',
    [done('archive', archive)],
    {},
    [{ op: 'update', target: 'tpl_1', fields: { status: 'published' } }],
    [],
  ],
])('%s', (_what, changes, more, expected, rules) => {
  const { decision, cannot } = keep.undo(states({ ...known, ...more }), { run, changes });
  expect(sends(decision)).toEqual(expected);
  expect(cannot.map(({ rule }) => rule)).toEqual(rules);
});

test.each([keep, overwrite])('what was undone is left alone until the source changes', (type) => {
  const { decision } = type.undo(states(known), { run, changes: [done('update')] });
  const observed = shown({ subject: 'Before', updatedAt: EDITED });
  const row = answered(type, decision, { before: settled, observed });
  const next = type.decide(states({ desired: [hello], recorded: row, observed: [observed] }));
  expect(next.changes).toEqual([]);
  expect(next.problems).toMatchObject([{ class: 'conflict', cause: 'template-undone' }]);
  const other = file({ subject: 'New' });
  const changed = type.decide(states({ desired: [other], recorded: row, observed: [observed] }));
  expect(sends(changed)).toEqual([{ op: 'update', target: 'tpl_1', fields: { subject: 'New' } }]);
});
