/** How a change of a template is sent, looked at before and recovered after. */
import { describe, expect, test } from 'vitest';
import type { Change, Op } from '../../src/domain/change.ts';
import { canonicalJson, type RecordedRow } from '../../src/domain/record.ts';
import { observeTemplate } from '../../src/records/template/template-state.ts';
import { file, states, WELCOME } from '../support/records/template-letter.ts';
import { open, passage, refused, signal, type Fault } from '../support/records/record-stage.ts';

const CREATE = 'POST /api/template';
const UPDATE = 'PUT /api/template';
const LIST = 'GET /api/template';

function change(op: Op, fields: object, target?: string): Change {
  const body = canonicalJson({ fields, wanted: { name: WELCOME, ...fields } });
  return { kind: 'template', key: WELCOME, op, part: '', target, body, phase: 0 };
}
const creation = change('create', { name: WELCOME, subject: 'Hello' });
const update = (id = 'tpl_1') => change('update', { subject: 'Hello' }, id);

function stage(...faults: Fault[]) {
  const world = open();
  faults.forEach(world.break);
  const { templates, emulator } = world;
  return {
    ...world,
    seed: emulator.seed.template,
    all: () => emulator.world.templates(),
    send: (what: Change) => world.run(templates.send(what, passage)),
    recover: (what: Change) => world.run(templates.recover(what, { late: false, signal })),
    look: (what: Change, recorded?: RecordedRow, fresh = false) =>
      world.run(templates.look(what, { recorded, fresh, signal })),
    recorded: () =>
      templates.decide(
        states({
          desired: [file()],
          observed: emulator.world.templates().slice(0, 1).map(observeTemplate),
        }),
      ).note,
  };
}

describe('sending a template', () => {
  test('a creation names the new template and shows it', async () => {
    const { send, all } = stage();
    const outcome = await send(creation);
    const id = all()[0]?.id;
    expect(outcome).toMatchObject({ is: 'acked', id, observed: { id, alias: WELCOME } });
    expect(all()).toMatchObject([{ name: WELCOME, subject: 'Hello' }]);
  });
  test.each(['update', 'complete', 'archive'] as const)('uses the id for an %s', async (op) => {
    const { send, seed, all } = stage();
    const id = seed({ name: WELCOME, description: 'stays' });
    const fields = op === 'archive' ? { status: 'archived' } : { subject: 'Hello' };
    expect(await send(change(op, fields, id))).toMatchObject({ is: 'acked', id, observed: { id } });
    expect(all()).toMatchObject([{ id, description: 'stays', ...fields }]);
  });
  test('is stale for an update of one that is gone', async () => {
    expect(await stage().send(update('tpl_gone'))).toMatchObject({ is: 'stale', observed: [] });
  });
  test('is refused on a 404 when the template exists', async () => {
    const { send, seed } = stage({ on: UPDATE, commits: false, gives: refused(404) });
    const id = seed({ name: WELCOME });
    expect(await send(update(id))).toMatchObject({ is: 'rejected', status: 404 });
  });
  test.each([500, 502, 503])(
    'is unknown for a creation answered with %i, and never repeated',
    async (status) => {
      const { send, asked } = stage({ on: CREATE, commits: true, gives: { status, body: {} } });
      expect(await send(creation)).toMatchObject({ is: 'unknown' });
      expect(asked).toHaveLength(1);
    },
  );
  test.each([true, false])(
    'is unknown for a creation without an answer (committed: %j)',
    async (commits) => {
      const { send, asked } = stage({ on: CREATE, commits, gives: 'lost' });
      expect(await send(creation)).toMatchObject({ is: 'unknown' });
      expect(asked).toHaveLength(1);
    },
  );
  test('is unknown for a creation with an unreadable answer', async () => {
    const gives = { status: 200, body: { ok: true } };
    const { send } = stage({ on: CREATE, commits: true, gives });
    expect(await send(creation)).toMatchObject({ is: 'unknown' });
  });
  test.each([500, 503])('is repeated for an update answered with %i', async (status) => {
    const once = { on: UPDATE, times: 1, commits: true, gives: { status, body: {} } };
    const { send, seed, asked } = stage(once);
    seed({ id: 'tpl_1', name: WELCOME });
    expect(await send(update())).toMatchObject({ is: 'acked', id: 'tpl_1' });
    expect(asked).toHaveLength(2);
  });
  test('is unknown for an update without an answer', async () => {
    const { send } = stage({ on: UPDATE, commits: true, gives: 'lost' });
    expect(await send(update())).toMatchObject({ is: 'unknown' });
  });
  test('is refused with 400 and 422 for this one, 401 for the run, 403 and 429 for the route', async () => {
    const of = (status: number) =>
      stage({ on: CREATE, commits: false, gives: refused(status) }).send(creation);
    for (const status of [400, 422])
      expect(await of(status)).toMatchObject({ is: 'rejected', status, fix: 'mend it' });
    expect(await of(401)).toMatchObject({ is: 'stopped', scope: 'run' });
    for (const status of [403, 429])
      expect(await of(status)).toMatchObject({ is: 'stopped', scope: 'route' });
  });
});

describe('looking before sending', () => {
  test('finds no template of exactly this name before a creation', async () => {
    const { look, seed } = stage();
    seed({ name: `${WELCOME} back` });
    expect(await look(creation)).toBeUndefined();
    const id = seed({ name: WELCOME });
    expect(await look(creation)).toMatchObject({ is: 'stale', observed: [{ id }] });
  });
  test.each([404, 500])('a failed look rejects no template: %i', async (status) => {
    const { look } = stage({ on: LIST, commits: false, gives: { status, body: {} } });
    expect(await look(creation)).toMatchObject({ is: 'unsent' });
  });
  test('reads every page before a creation', async () => {
    const { look, seed, asked } = stage();
    const id = seed({ name: WELCOME });
    for (let n = 0; n < 120; n += 1) seed({ name: `${n}` });
    expect(await look(creation)).toMatchObject({ is: 'stale', observed: [{ id }] });
    expect(asked).toHaveLength(2);
  });
  test('finds a template before an update: as last observed, edited, or gone', async () => {
    const { look, seed, recorded, emulator } = stage();
    seed({ id: 'tpl_1', name: WELCOME });
    const known = recorded();
    expect(await look(update(), known)).toBeUndefined();
    emulator.dashboard.editTemplate('tpl_1', { subject: 'Edited' });
    expect(await look(update(), known)).toMatchObject({
      is: 'stale',
      observed: [{ id: 'tpl_1' }],
    });
    expect(await look(update('tpl_gone'), known)).toMatchObject({ is: 'stale', observed: [] });
  });
  test('is skipped for a fresh observation', async () => {
    const { look, asked } = stage();
    expect(await look(creation, undefined, true)).toBeUndefined();
    expect(await look(update(), undefined, true)).toBeUndefined();
    expect(asked).toEqual([]);
  });
  test('sends nothing when it fails', async () => {
    const { look } = stage({ on: LIST, commits: false, gives: 'lost' });
    expect(await look(creation)).toMatchObject({ is: 'unsent' });
  });
});

describe('an unanswered change of a template', () => {
  test('a creation is found by its exact name', async () => {
    const { recover, seed } = stage();
    seed({ name: `${WELCOME} back` });
    expect(await recover(creation)).toMatchObject({ is: 'stale', observed: [] });
    const id = seed({ name: WELCOME });
    expect(await recover(creation)).toMatchObject({ is: 'acked', id, observed: { id } });
  });
  test('counts as ours, as it was sent, when the new template was edited since', async () => {
    const { clock, emulator, recover, seed, templates } = stage();
    const id = seed({ name: WELCOME, subject: 'Hello' });
    const found = async (subject: string) => {
      const outcome = await recover(creation);
      if (outcome?.is !== 'acked') throw new Error(outcome?.is);
      const row = templates.acknowledge(undefined, creation, { ...outcome, at: 0 });
      expect(JSON.parse(row?.body ?? '')).toMatchObject({ shown: { fields: { subject } } });
      return row;
    };
    expect(await found('Hello')).toHaveProperty('shown', expect.any(String));
    await clock.advance(1000);
    emulator.dashboard.editTemplate(id, { subject: 'By hand' });
    expect(await found('Hello')).toHaveProperty('shown', undefined);
  });
  test('is decided anew by both of them when two have its name', async () => {
    const { recover, seed, templates } = stage();
    for (const id of ['tpl_1', 'tpl_2']) seed({ id, name: WELCOME });
    const outcome = await recover(creation);
    const observed = outcome?.is === 'stale' ? (outcome.observed ?? []) : [];
    expect(observed.map(({ id }) => id).toSorted()).toEqual(['tpl_1', 'tpl_2']);
    const { changes, problems } = templates.decide(states({ desired: [file()], observed }));
    expect(changes).toEqual([]);
    expect(problems).toMatchObject([{ reason: expect.stringMatching(/tpl_1, tpl_2/) }]);
  });
  test('is done when the template shows it', async () => {
    const { recover, seed, emulator } = stage();
    seed({ id: 'tpl_1', name: WELCOME });
    seed({ id: 'tpl_0', name: WELCOME, subject: 'Hello' });
    expect(await recover(update())).toMatchObject({ is: 'stale', observed: [{ id: 'tpl_1' }] });
    emulator.dashboard.editTemplate('tpl_1', { subject: 'Hello' });
    expect(await recover(update())).toMatchObject({ is: 'acked', id: 'tpl_1' });
    expect(await recover(update('tpl_gone'))).toMatchObject({ is: 'stale', observed: [] });
  });
  test('is followed by reads only', async () => {
    const { recover, asked } = stage();
    await recover(creation);
    await recover(update());
    expect(asked.map((line) => line.split(' ')[0])).toEqual(['GET', 'GET']);
  });
});

test('a template is created, completed, settled, and then left alone', async () => {
  const { templates, run, all } = stage();
  const desired = [file({ subject: 'Hello', replyTo: 'c@d.de', status: 'published' })];
  let recorded: RecordedRow | undefined;
  for (const planned of templates.decide(states({ desired })).changes) {
    const step = { ...planned, target: planned.op === 'create' ? undefined : recorded?.id };
    const outcome = await run(templates.send(step, passage));
    expect(outcome).toMatchObject({ is: 'acked' });
    if (outcome?.is === 'acked')
      recorded = templates.acknowledge(recorded, step, { ...outcome, at: 1 });
  }
  expect(all()).toMatchObject([{ subject: 'Hello', replyTo: 'c@d.de', status: 'published' }]);
  const observed = all().map(observeTemplate);
  expect(recorded).toMatchObject({ ownership: 'created', shown: observed[0]?.fingerprint });
  for (const sight of ['listed', 'assumed'] as const) {
    const seen = sight === 'listed' ? observed : [];
    const next = templates.decide(states({ desired, recorded, observed: seen, sight }));
    expect(next).toMatchObject({ changes: [], problems: [] });
    expect(next.note?.desired).toBe(desired[0]?.fingerprint);
  }
});
