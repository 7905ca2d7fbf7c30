/** Templates over time: spelling, names, content. */
import { describe, expect, test } from 'vitest';
import {
  answered,
  decide,
  hello,
  helloShown,
  keep,
  nothing,
  overwrite,
  settled,
  EDITED,
  file,
  MADE,
  sends,
  shown,
  WELCOME,
} from '../support/records/template-letter.ts';
import { NOON } from '../support/records/record-stage.ts';

describe('content and variables', () => {
  const variables = [{ name: 'name', type: 'string', defaultValue: null }];
  const content = ['Hi {{name}}'];
  const desired = file({ content, variables });
  const observed = shown({ content, variables });
  const recorded = decide({ desired: [desired], observed: [observed] }).note;

  test.each([
    { content: ['Ho {{name}}'], variables },
    { content, variables: [{ name: 'name', type: 'string', defaultValue: 'you' }] },
  ])('are sent together when one of them changes: %j', (fields) => {
    const decision = decide({ desired: [file(fields)], recorded, observed: [observed] });
    expect(sends(decision)).toEqual([{ op: 'update', target: 'tpl_1', fields }]);
  });
  test('are not sent when neither does', () => {
    const next = file({ content, variables, subject: 'new' });
    expect(sends(decide({ desired: [next], recorded, observed: [observed] }))).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'new' } },
    ]);
  });
});

describe('the platform’s own spelling', () => {
  const desired = file({ content: [{ html: '<p>Hi' }] });
  const decision = decide({ desired: [desired] });
  const spelt = (content: unknown[], updatedAt = MADE) => shown({ content, updatedAt });
  const recorded = answered(keep, decision, { observed: spelt([{ html: '<p>Hi</p>' }]) });

  test('is no drift of what was sent, and is never sent again', () => {
    const next = decide({
      desired: [desired],
      recorded,
      observed: [spelt([{ html: '<p>Hi</p>' }])],
    });
    expect(next).toMatchObject({ ...nothing, note: { desired: desired.fingerprint } });
  });
  test('is no drift either with a later time and no edit', () => {
    for (const kind of [keep, overwrite]) {
      const observed = [spelt([{ html: '<p>Hi</p>', id: 1 }])];
      const next = decide({ desired: [desired], recorded, observed }, kind);
      expect(next).toMatchObject({ ...nothing, note: { desired: desired.fingerprint } });
    }
  });
  test('is an edit with a new time of change', () => {
    const observed = [spelt([{ html: '<p>Ho</p>' }], EDITED)];
    const next = decide({ desired: [desired], recorded, observed });
    expect(next).toMatchObject({ changes: [], problems: [{ class: 'conflict' }] });
  });
});

describe('names', () => {
  test('a new key with the name of one whose key is gone takes it over', () => {
    const former = [{ row: { ...settled, key: 'old' }, seen: [] }];
    const observed = [helloShown()];
    const same = decide({ former, observed, desired: [hello] });
    expect(same).toMatchObject({ changes: [], problems: [], adopts: false, forgets: ['old'] });
    expect(same.note).toMatchObject({ key: WELCOME, id: 'tpl_1', desired: hello.fingerprint });
    const changed = decide({ former, observed, desired: [file({ subject: 'Hallo' })] });
    expect(sends(changed)).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'Hallo' } },
    ]);
    expect(changed).toMatchObject({ forgets: ['old'], note: { key: WELCOME, id: 'tpl_1' } });
  });
  test('a new name in the file is an update of the same template', () => {
    const desired = [file({ name: 'Welcome!', subject: 'Hello' })];
    expect(sends(decide({ recorded: settled, observed: [helloShown()], desired }))).toEqual([
      { op: 'update', target: 'tpl_1', fields: { name: 'Welcome!' } },
    ]);
  });
  test.each([keep, overwrite])('a foreign template of the same name is left alone', (kind) => {
    const twin = shown({ id: 'tpl_0', subject: 'Theirs', updatedAt: EDITED });
    const observed = [twin, helloShown()];
    const decision = decide({ recorded: settled, observed, desired: [hello] }, kind);
    expect(decision.changes).toEqual([]);
    expect(decision.note?.id).toBe('tpl_1');
    const next = decide({ recorded: settled, observed, desired: [file({ subject: 'x' })] }, kind);
    expect(sends(next)).toEqual([{ op: 'update', target: 'tpl_1', fields: { subject: 'x' } }]);
  });
  test('two files with one key do nothing', () => {
    expect(decide({ desired: [hello, hello] })).toMatchObject({ changes: [], note: undefined });
  });
});

test('a fast run does not claim to have seen the platform', () => {
  const desired = [file({ subject: 'Hallo' })];
  const { note, changes } = decide({ desired, recorded: settled, sight: 'assumed' });
  expect(changes).toHaveLength(1);
  expect(note).toMatchObject({ shown: settled.shown, seenAt: NOON });
});
