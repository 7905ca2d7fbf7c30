/** The truth table of templates, row by row. */
import { describe, expect, test } from 'vitest';
import type { RecordedRow } from '../../src/domain/record.ts';
import {
  answered,
  decide,
  hello,
  helloShown,
  keep,
  nothing,
  overwrite,
  settled,
  bodyOf,
  EDITED,
  file,
  sends,
  shown,
  WELCOME,
} from '../support/records/template-letter.ts';
import { LATER, open, type States } from '../support/records/record-stage.ts';

const archive = open({ templates: { absentTemplates: 'archive' } }).templates;
const none = { note: undefined, adopts: false, forgets: [], problems: [] };

describe('a template missing in the source', () => {
  test('1: is left alone when it is foreign', () => {
    expect(decide({ observed: [shown()] }, archive)).toEqual({ ...nothing, note: undefined });
    expect(decide({}, archive)).toEqual({ ...nothing, note: undefined });
  });
  test('2: is forgotten when it is gone from the platform', () => {
    expect(decide({ recorded: settled })).toMatchObject({ changes: [], forgets: [WELCOME] });
  });
  test('2: is forgotten only after a listing', () => {
    const vanished = { ...settled, id: undefined };
    for (const recorded of [settled, vanished])
      expect(decide({ recorded, sight: 'assumed' })).toMatchObject({ changes: [], forgets: [] });
  });
  test('3: is kept or archived, as the policy says', () => {
    const known = { recorded: settled, observed: [helloShown()] };
    expect(decide(known)).toMatchObject(nothing);
    const decision = decide(known, archive);
    expect(sends(decision)).toEqual([
      { op: 'archive', target: 'tpl_1', fields: { status: 'archived' } },
    ]);
    const observed = helloShown({ status: 'archived', updatedAt: EDITED });
    const recorded = answered(archive, decision, { before: settled, observed });
    expect(decide({ recorded, observed: [observed] }, archive)).toMatchObject(nothing);
    expect(decide({ recorded, sight: 'assumed' }, archive)).toMatchObject(nothing);
  });
  test('3: is not missing without a complete reading of the source', () => {
    const known = { recorded: settled, certified: false };
    expect(decide({ ...known, observed: [helloShown()] }, archive)).toMatchObject(nothing);
    expect(decide(known, archive)).toMatchObject(nothing);
  });
  test('is present when its file is unusable', () => {
    const desired = [file({ subject: 7 })];
    const known = { recorded: settled, observed: [helloShown()], desired };
    expect(decide(known, archive)).toMatchObject(nothing);
    expect(decide({ recorded: settled, desired }, archive)).toMatchObject(nothing);
    expect(decide({ desired })).toMatchObject(nothing);
  });
});

describe('a template that is not recorded', () => {
  test('4: is created in one step when one is enough', () => {
    const fields = { name: WELCOME, description: 'd', subject: 's', content: [{ a: 1 }] };
    expect(sends(decide({ desired: [file(fields)] }))).toEqual([
      { op: 'create', target: undefined, fields },
    ]);
  });
  test('4: is created, then completed with what only an update can set', () => {
    const first = { name: 'Welcome!', subject: 's' };
    const rest = { fromEmail: 'a@b.de', replyTo: 'c@d.de', previewText: 'p', status: 'published' };
    expect(sends(decide({ desired: [file({ ...first, ...rest })] }))).toEqual([
      { op: 'create', target: undefined, fields: first },
      { op: 'complete', target: undefined, fields: rest },
    ]);
  });
  test('4: gets its content together with its variables', () => {
    const content = ['Hi {{name}}'];
    const variables = [{ name: 'name', type: 'string', defaultValue: null }];
    expect(sends(decide({ desired: [file({ content, variables })] }))).toEqual([
      { op: 'create', target: undefined, fields: { name: WELCOME, content } },
      { op: 'complete', target: undefined, fields: { content, variables } },
    ]);
  });
  test('4: is completed with the rest after a crash between both steps', () => {
    const desired = [file({ subject: 'Hello', status: 'published', replyTo: 'c@d.de' })];
    const first = decide({ desired });
    const onlyFirst = { ...first, changes: first.changes.slice(0, 1) };
    const recorded = answered(keep, onlyFirst, { observed: helloShown() });
    for (const sight of ['listed', 'assumed'] as const) {
      const observed = sight === 'listed' ? [helloShown()] : [];
      const next = decide({ desired, recorded, observed, sight });
      expect(next.problems).toEqual([]);
      expect(sends(next)).toEqual([
        { op: 'update', target: 'tpl_1', fields: { status: 'published', replyTo: 'c@d.de' } },
      ]);
      expect(next.changes[0]?.guard).toBeUndefined();
    }
  });
  test('4: no guard counts its updates until it has been written as a whole', () => {
    const changed = [file({ subject: 'Hallo', status: 'published' })];
    const desired = [file({ subject: 'Hello', status: 'published' })];
    const { changes } = decide({ desired });
    const first = { ...none, changes: changes.slice(0, 1) };
    const begun = answered(keep, first, { observed: helloShown() });
    const guardsOf = (recorded: RecordedRow | undefined, known: Partial<States>, kind = keep) =>
      decide({ recorded, ...known }, kind).changes.map(({ op, guard }) => [op, guard]);
    const unguarded = [['update', undefined]];
    expect(guardsOf(begun, { desired: changed, observed: [helloShown()] })).toEqual(unguarded);
    const edited = [helloShown({ subject: 'Theirs', updatedAt: EDITED })];
    expect(guardsOf(begun, { desired, observed: edited }, overwrite)).toEqual(unguarded);

    const whole = helloShown({ status: 'published' });
    for (const recorded of [
      answered(keep, { ...none, changes }, { observed: whole }),
      // Somebody else has done the second step.
      decide({ desired, recorded: begun, observed: [whole] }).note,
      // The source does not want the second step any more.
      decide({ desired: [hello], recorded: begun, observed: [helloShown()] }).note,
    ]) {
      expect(guardsOf(recorded, { desired: changed, observed: [whole] })).toEqual([
        ['update', 'template'],
      ]);
    }
  });
  test('5: is adopted by its exact name when equal in every stated field', () => {
    const observed = helloShown({ description: 'theirs' });
    const decision = decide({ desired: [hello], observed: [observed] });
    expect(decision).toMatchObject({ changes: [], problems: [], adopts: true });
    expect(decision.note).toMatchObject({
      id: 'tpl_1',
      ownership: 'adopted',
      desired: hello.fingerprint,
      shown: observed.fingerprint,
      seenAt: LATER,
    });
  });
  test('5: is left alone under keep when it differs, until the source changes', () => {
    const observed = [shown({ subject: 'Theirs' })];
    const decision = decide({ desired: [hello], observed });
    expect(decision).toMatchObject({ changes: [], adopts: true, note: { desired: undefined } });
    expect(decision.problems).toMatchObject([{ class: 'conflict', key: WELCOME }]);
    const known = { recorded: decision.note, observed };
    const again = decide({ ...known, desired: [hello] });
    expect(again).toMatchObject({ changes: [], adopts: false, problems: decision.problems });
    expect(sends(decide({ ...known, desired: [file({ subject: 'Hallo' })] }))).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'Hallo' } },
    ]);
  });
  test('5: is written at once under overwrite when it differs', () => {
    const decision = decide({ desired: [hello], observed: [shown()] }, overwrite);
    expect(decision).toMatchObject({ adopts: true, problems: [] });
    expect(sends(decision)).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'Hello' } },
    ]);
  });
  test.each([keep, overwrite])('6: is rejected when two have its name, with the ids', (kind) => {
    const observed = [helloShown({ id: 'tpl_b' }), helloShown({ id: 'tpl_a' })];
    const decision = decide({ desired: [hello], observed }, kind);
    expect(decision).toMatchObject({ changes: [], note: undefined, adopts: false });
    expect(decision.problems).toMatchObject([
      { class: 'rejected', reason: expect.stringContaining('tpl_a, tpl_b') },
    ]);
  });
});

describe('a template of ours', () => {
  const known = { recorded: settled, observed: [helloShown()] };
  const changed = file({ subject: 'Hallo' });
  const other = [shown({ subject: 'Edited', updatedAt: EDITED })];

  test('7: is a conflict under keep when it vanished, also in a fast run', () => {
    const decision = decide({ desired: [hello], recorded: settled });
    expect(decision).toMatchObject({ changes: [], problems: [{ class: 'conflict' }] });
    expect(decision.note).toMatchObject({ id: undefined, shown: undefined, desired: undefined });
    const next = decide({ desired: [hello], recorded: decision.note, sight: 'assumed' });
    expect(next).toMatchObject({ changes: [], problems: [{ class: 'conflict' }] });
  });
  test('7: is created again under overwrite when it vanished', () => {
    const decision = decide({ desired: [hello], recorded: settled }, overwrite);
    const fields = { name: WELCOME, subject: 'Hello' };
    expect(sends(decision)).toEqual([{ op: 'create', target: undefined, fields }]);
    const observed = helloShown({ id: 'tpl_2' });
    const recorded = answered(overwrite, decision, { before: settled, observed });
    expect(recorded).toMatchObject({ id: 'tpl_2', ownership: 'created' });
    const next = decide({ desired: [hello], recorded, observed: [observed] }, overwrite);
    expect(next).toMatchObject({ changes: [], note: { desired: hello.fingerprint } });
  });
  test('8: is settled when it shows what the source states, by any author', () => {
    const observed = [shown({ subject: 'Hallo', updatedAt: EDITED })];
    const decision = decide({ desired: [changed], recorded: settled, observed });
    expect(decision).toMatchObject(nothing);
    expect(decision.note?.desired).toBe(changed.fingerprint);
    expect(bodyOf(decision.note)).toMatchObject({ sent: { subject: 'Hallo' } });
  });
  test('9: is left alone when nothing changed on either side', () => {
    for (const sight of ['listed', 'assumed'] as const) {
      const observed = sight === 'listed' ? known.observed : [];
      const decision = decide({ ...known, observed, sight, desired: [hello] });
      expect(decision).toMatchObject({ ...nothing, note: { desired: hello.fingerprint } });
    }
  });
  test('10: is updated with the differences when the source changed', () => {
    const more = file({ subject: 'Hallo', description: 'new' });
    for (const sight of ['listed', 'assumed'] as const) {
      const observed = sight === 'listed' ? known.observed : [];
      const decision = decide({ ...known, observed, sight, desired: [more] });
      expect(sends(decision)).toEqual([
        { op: 'update', target: 'tpl_1', fields: { subject: 'Hallo', description: 'new' } },
      ]);
      const after = shown({ subject: 'Hallo', description: 'new', updatedAt: EDITED });
      const recorded = answered(keep, decision, { observed: after });
      expect(decide({ recorded, observed: [after], desired: [more] })).toMatchObject(nothing);
      expect(decide({ recorded, sight: 'assumed', desired: [more] })).toMatchObject({
        ...nothing,
        note: { desired: more.fingerprint },
      });
    }
  });
  test('keeps fields that the file does not state', () => {
    const observed = [helloShown({ description: 'by hand', updatedAt: EDITED })];
    expect(decide({ ...known, observed, desired: [hello] })).toMatchObject(nothing);
    expect(sends(decide({ ...known, observed, desired: [changed] }))).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'Hallo' } },
    ]);
  });
  test('11: is left alone under keep after an edit, until the edit is taken back', () => {
    for (const desired of [[hello], [changed]]) {
      const decision = decide({ recorded: settled, observed: other, desired });
      expect(decision).toMatchObject({
        changes: [],
        problems: [{ class: 'conflict', reason: expect.stringContaining('subject') }],
        note: { desired: undefined },
      });
      // So that a fast run, which takes what is recorded for it, looks and finds the edit.
      expect(decision.note?.shown).toBeUndefined();
      const again = decide({ recorded: decision.note, observed: other, desired });
      expect(again).toMatchObject({ changes: [], problems: decision.problems });
      const unread = { recorded: decision.note, sight: 'assumed' } as const;
      const fast = decide({ ...unread, desired });
      expect(fast).toEqual({ ...none, changes: [], problems: decision.problems });
      expect(decide({ ...unread, desired: [file({ subject: 'Newer' })] }).changes).toHaveLength(1);
      const reverted = [helloShown({ updatedAt: '2026-11-20T00:00:00.000Z' })];
      const after = decide({ recorded: decision.note, observed: reverted, desired });
      expect(after.problems).toEqual([]);
      expect(after.changes).toHaveLength(desired[0] === hello ? 0 : 1);
    }
  });
  test('11: has its edited version kept under overwrite before ours is written', () => {
    const decision = decide({ recorded: settled, observed: other, desired: [hello] }, overwrite);
    expect(sends(decision)).toEqual([
      { op: 'update', target: 'tpl_1', fields: { subject: 'Hello' } },
    ]);
    expect(bodyOf(decision.note).replaced?.fields).toMatchObject({ subject: 'Edited' });
    const observed = helloShown({ updatedAt: '2026-11-20T00:00:00.000Z' });
    const recorded = answered(overwrite, decision, { observed });
    expect(bodyOf(recorded).replaced?.fields).toMatchObject({ subject: 'Edited' });
    const next = decide({ recorded, observed: [observed], desired: [hello] }, overwrite);
    expect(next).toMatchObject(nothing);
    expect(bodyOf(next.note).replaced?.fields).toMatchObject({ subject: 'Edited' });
  });
});

describe('a content nested too deeply', () => {
  const nested = (levels: number): unknown[] =>
    Array.from({ length: levels }).reduce<unknown[]>((inner) => [inner], []);

  test('rejects the template of the platform, and nothing is sent', () => {
    const observed = [shown({ content: nested(8_000) })];
    const decision = decide({ recorded: settled, desired: [hello], observed });
    expect(decision.changes).toEqual([]);
    expect(decision.problems).toMatchObject([{ class: 'rejected' }]);
    expect(decision.problems[0]?.reason).toContain('nested more than 500 levels');
    const unread = { recorded: decision.note, sight: 'assumed', desired: [hello] } as const;
    expect(decide(unread)).toEqual({ ...none, changes: [], problems: decision.problems });
    const now = { recorded: decision.note, desired: [hello], observed: [helloShown()] };
    expect(decide(now)).toMatchObject({ ...nothing, note: { desired: hello.fingerprint } });
  });

  test('makes the file of the source invalid', () => {
    const row = file({ content: nested(8_000) });
    expect(row.invalid?.reason).toBe('is nested more than 500 levels deep');
    expect(file({ content: nested(498) }).invalid).toBeUndefined();
  });
});
