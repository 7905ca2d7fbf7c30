/** A run that takes longer than a slice asks the CRM again before it goes on. */
import { expect, test } from 'vitest';
import type { Certificate } from '../../../src/sources/source.ts';
import { rule } from '../../support/engine/change-volume.ts';
import { openStage, type Stage, type StageOptions } from '../../support/engine/engine-stage.ts';

const person = (at: number, word = 'yes') => ({
  id: `${at}`,
  email: `p${at}@example.com`,
  ch_news: word,
});
const range = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, at) => person(from + at));
const crowd = (size: number) => range(10, 10 + size);

/** One enrolment a minute: some ten of them fit into a slice. `edit` happens before the fifth. */
function slow(edit: (stage: Stage) => void, options: StageOptions = {}): Stage {
  let enrolments = 0;
  const stage: Stage = openStage({
    ...options,
    limits: ['contacts.enrol=1/60', '*=1000000/1'],
    wire: (send) => async (request, signal) => {
      if (request.path.startsWith('/api/contacts/channel/')) enrolments += 1;
      if (enrolments === 5 && stage.certificate.reading === 'all') edit(stage);
      return send(request, signal);
    },
  });
  stage.people.push(...crowd(20));
  return stage;
}

function changed(stage: Stage, certificate: Partial<Certificate> = {}): void {
  stage.certificate = { complete: true, reading: 'second', ...certificate } as Certificate;
}

const addresses = (stage: Stage): string[] =>
  stage
    .writes()
    .filter(({ status }) => status < 300)
    .map(({ email = '' }) => email)
    .toSorted();

const emails = (people: readonly { email: string }[]): string[] =>
  people.map(({ email }) => email).toSorted();

test('a run in slices continues when the source is unchanged, and does everything once', async () => {
  const stage = slow(() => undefined);
  const summary = await stage.sync();
  expect(summary).toMatchObject({ status: 'done', contacts: { applied: { create: 20 } } });
  expect(summary.ms).toBeGreaterThan(15 * 60_000);
  expect(addresses(stage)).toEqual(emails(crowd(20)));
});

test('a run in slices drops removed people and adds new ones', async () => {
  const stage = slow((now) => {
    now.people.splice(19, 1);
    now.people[18] = person(28, 'no');
    now.people.push(person(50));
    changed(now);
  });
  const summary = await stage.sync();
  expect(summary).toMatchObject({ status: 'done', contacts: { applied: { create: 19 } } });
  expect(addresses(stage)).toEqual(emails([...crowd(18), person(50)]));
  expect((await stage.sync()).contacts.changes).toMatchObject({ create: 0, opt_in: 0, opt_out: 0 });
  expect(addresses(stage)).toEqual([]);
});

test('a rule is asked about what is planned after a change of the source, too', async () => {
  const more = range(50, 80);
  const stage = slow(
    (now) => {
      now.people.push(...more);
      changed(now);
    },
    { rules: [rule('plan.create > 25')] },
  );
  const summary = await stage.sync();
  expect(summary).toMatchObject({ status: 'held', contacts: { applied: { create: 20 } } });
  expect(summary.contacts.held.opt_in).toBe(30);
  expect(addresses(stage)).toEqual(emails(crowd(20)));
});

test('a person opted in before a change of the source is opted out when the CRM says so now', async () => {
  const stage = slow((now) => {
    now.people[0] = person(10, 'no');
    changed(now);
  });
  const summary = await stage.sync();
  expect(summary).toMatchObject({
    status: 'done',
    contacts: { applied: { create: 20, opt_out: 1 } },
  });
});

test('stated opt-outs do not wait for the CRM to be read again', async () => {
  const stage = slow((now) => changed(now));
  for (const one of stage.people) {
    stage.emulator.seed.contact({ email: String(one['email']), channels: { ch_news: 'opt_in' } });
    one['ch_news'] = 'no';
  }
  const summary = await stage.sync();
  expect(summary).toMatchObject({ status: 'done', contacts: { applied: { opt_out: 20 } } });
  expect(summary.ms).toBeGreaterThan(15 * 60_000);
  expect(stage.asked).toEqual(['all']);
});

test('an uncertified reading in between stops opt-ins, and the run says so', async () => {
  const stage = slow((now) => {
    changed(now, { complete: false, why: 'cut short', fix: 'export again' });
  });
  const summary = await stage.sync();
  expect(summary).toMatchObject({ status: 'failed', certificate: { source: false } });
  expect(summary.reasons.join()).toContain('cut short, so only opt-outs are applied from now on');
  const first = addresses(stage);
  expect(first.length).toBeGreaterThan(5);
  expect(first.length).toBeLessThan(15);
  stage.certificate = { complete: true, reading: 'third' };
  expect(await stage.sync()).toMatchObject({ status: 'done' });
  expect([...first, ...addresses(stage)].toSorted()).toEqual(emails(crowd(20)));
});

test('an approved plan ends where the CRM has changed', async () => {
  const stage = slow((now) => {
    now.people.push(person(50));
    changed(now);
  });
  const summary = await stage.sync({ agrees: () => undefined });
  expect(summary.status).toBe('failed');
  expect(summary.reasons.join()).toContain('plan again');
  const sent = addresses(stage);
  expect(sent.length).toBeLessThan(15);
  expect(sent).not.toContain(person(50).email);
});

test('an undo in slices deletes created contacts although the CRM is read again in between', async () => {
  let outs = 0;
  const stage = openStage({
    policy: { deletes: 'created' },
    guards: { delete: { percent: 100, floor: 1000 } },
    limits: ['contacts.enrol=1/60', '*=1000000/1'],
    wire: (send) => async (request, signal) => {
      if (request.path.startsWith('/api/contacts/channel/')) {
        outs += 1;
        if (outs === 25) stage.certificate = { complete: true, reading: 'second' } as Certificate;
      }
      return send(request, signal);
    },
  });
  for (let at = 10; at < 30; at += 1)
    stage.people.push({ id: `${at}`, email: `p${at}@example.com`, ch_news: 'yes' });
  const { run } = await stage.sync();
  const undo = await stage.sync({ mode: 'undo', undo: { run } });
  expect(undo.ms).toBeGreaterThan(10 * 60_000);
  expect(undo).toMatchObject({ contacts: { applied: { opt_out: 20, delete: 20 } } });
});

test('a creation is not sent on the word of a listing that is a quarter of an hour old', async () => {
  const leavers = [74, 75, 76, 77, 78, 79];
  let enrolments = 0;
  const stage: Stage = openStage({
    limits: ['contacts.enrol=4/60', '*=1000000/1'],
    wire: (send) => async (request, signal) => {
      if (request.path.startsWith('/api/contacts/channel/')) enrolments += 1;
      // Since the listing they have signed up, and left; their creations wait for the limit.
      if (enrolments === 50)
        for (const at of leavers.splice(0))
          stage.emulator.seed.contact({ email: person(at).email, status: 'unsubscribed' });
      return send(request, signal);
    },
  });
  stage.people.push(...crowd(90));
  const { contacts } = await stage.sync();
  expect(contacts).toMatchObject({ conflicts: 6, applied: { create: 84, opt_in: 0 } });
  expect(stage.writes()).toHaveLength(84);
});
