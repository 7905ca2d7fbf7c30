/** Signed approvals: what is rejected, or judged anew, needs signatures that were given since. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { expect, test } from 'vitest';
import { publicKeyOf } from '../../../src/domain/values/ed25519-key.ts';
import {
  type PartFilter,
  rejectPlan,
  signPart,
  signPlan,
  toSign,
} from '../../../src/engine/judge/plan-decisions.ts';
import type { Limit } from '../../../src/domain/guard-classes.ts';
import { exportOf, hour, mirrored, person, range } from '../../support/engine/change-volume.ts';

const few = { percent: 0, floor: 3 };
const fast = { mode: 'fast' } as const;
const one: PartFilter = { people: { file: 'f', entries: [{ line: 1, word: '1020' }] } };
const outs = [...range(0, 5).map((p) => ({ ...p, ch_news: 'no' })), ...range(5, 20)];

async function signed(optOuts: Limit = { ...few, holdForMs: 72 * hour }) {
  const pair = () => generateKeyPairSync('ed25519').privateKey;
  const keys: Record<string, KeyObject> = { ada: pair(), ben: pair() };
  const publicKeys = Object.fromEntries(Object.entries(keys).map(([n, k]) => [n, publicKeyOf(k)]));
  const approvers = {
    need: 2,
    mirror: 'test',
    platform: 'https://platform.test',
    keys: publicKeys,
  };
  const stage = await mirrored({
    approvers,
    guards: { opt_in: few, delete: few, opt_out: optOuts },
  });
  const put = (plan: string, signature: Parameters<typeof signPlan>[1]['signature']) =>
    signPlan(
      stage.snapshot,
      { plan, only: {}, signature, caller: 'x' },
      { approvers, now: stage.clock.now() },
    );
  const sign = (name: string, plan: string) => {
    const now = stage.clock.now();
    const about = toSign(stage.snapshot, { plan, only: {} }, { approvers, now });
    const by = { approvers, key: keys[name]!, name, at: now, reason: null };
    return put(plan, signPart(stage.snapshot, about, by));
  };
  const by = () => ({ at: stage.clock.now(), by: 'anna', reason: 'no' });
  return { stage, approvers, put, sign, by };
}

test('signatures of the hash of a part do not approve what somebody has rejected of it', async () => {
  const { stage, approvers, sign, by } = await signed();
  exportOf(stage, range(0, 24));
  const part = sign('ada', (await stage.sync()).plan).next;
  rejectPlan(stage.snapshot, { plan: part, only: one, decision: by(), approvers });
  sign('ben', part);
  sign('ada', part);
  await stage.sync();
  expect(stage.emulator.world.contact(person(20).email)).toBeUndefined();
});

test('a signature that is none approves nothing that is judged anew', async () => {
  const { stage, put, sign } = await signed();
  exportOf(stage, outs);
  const { plan } = await stage.sync(fast);
  sign('ben', sign('ada', plan).next);
  exportOf(stage, range(0, 20));
  await stage.sync(fast);
  exportOf(stage, outs);
  expect((await stage.sync(fast)).contacts.held.opt_out).toBe(5);
  const none = { name: 'ada', at: stage.clock.now(), reason: null, signature: 'AAAA' };
  expect(() => put(plan, none)).toThrow('not valid');
  expect((await stage.sync(fast)).contacts.applied['opt_out']).toBe(0);
});

test('what two approvers sign again after it was used is released again', async () => {
  const { stage, sign } = await signed({ percent: 100, floor: 1000 });
  const back = range(0, 20);
  exportOf(stage, outs);
  await stage.sync();
  exportOf(stage, back);
  const { plan } = await stage.sync(fast);
  sign('ben', sign('ada', plan).next);
  expect((await stage.sync(fast)).contacts.applied['opt_in']).toBe(5);
  exportOf(stage, outs);
  await stage.sync(fast);
  exportOf(stage, back);
  const again = await stage.sync(fast);
  expect(again.contacts.held.opt_in).toBe(5);
  await stage.clock.advance(hour);
  sign('ben', sign('ada', again.plan).next);
  expect((await stage.sync(fast)).contacts.applied['opt_in']).toBe(5);
});

test('a signature that was used counts for no later change of the same content', async () => {
  const { stage, put, sign } = await signed({ percent: 100, floor: 1000 });
  const back = range(0, 20);
  exportOf(stage, outs);
  await stage.sync();
  exportOf(stage, back);
  const { plan } = await stage.sync(fast);
  const { next } = sign('ada', plan);
  sign('ben', next);
  const used = stage.snapshot.holds.signatures(next);
  expect(used).toHaveLength(2);
  await stage.sync(fast);
  exportOf(stage, outs);
  await stage.sync(fast);
  exportOf(stage, back);
  const again = await stage.sync(fast);
  expect(again.plan).toBe(plan);
  for (const { number: _, ...one } of used) expect(() => put(plan, one)).toThrow('not valid');
  expect((await stage.sync(fast)).contacts.applied['opt_in']).toBe(0);
});

test('signatures from before a restored backup approve nothing', async () => {
  const { stage, sign } = await signed();
  exportOf(stage, range(0, 24));
  const { plan } = await stage.sync();
  sign('ben', sign('ada', plan).next);
  const { meta, transaction } = stage.snapshot;
  transaction(() => meta.set('copied-at', `${stage.clock.now()}`));
  expect((await stage.sync({ restored: true })).contacts.held.opt_in).toBe(4);
  transaction(() => meta.drop('copied-at'));
  sign('ada', plan);
  expect((await stage.sync()).contacts.held.opt_in).toBe(4);
  expect(stage.emulator.world.contact(person(20).email)).toBeUndefined();
});
