/**
 * Two people at random, under every quirk alone and in pairs, with enrolments that have no answer:
 * the CRM is told of nobody who did not leave, and nobody who left is opted in again.
 */
import { expect, test } from 'vitest';
import { quirks } from '../../../src/emulator/quirks/quirks.ts';
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Random } from '../../../src/domain/clock.ts';
import type { Send } from '../../../src/domain/exchange.ts';
import { hearing } from '../../support/engine/event-hearing.ts';
import { channels } from '../../support/engine/engine-mirror.ts';
import { createStage, type Stage } from '../../support/engine/engine-stage.ts';
import { sampled } from '../../support/extent.ts';

const emails = ['ann@example.com', 'bob@example.com'];
const wishes = ['yes', 'no', ''];
const variants = quirks.flatMap(({ name, values }) =>
  values ? values.map((value) => `${name}=${value}`) : [name],
);
const nameOf = (variant: string): string => variant.split('=')[0] ?? '';

const pick = <T>(random: Random, all: readonly T[]): T | undefined =>
  all[Math.floor(random() * all.length)];

/** Some enrolments are cut off: before they are carried out, or after that. */
function cutting(random: Random) {
  const state = { cuts: false };
  const wire =
    (send: Send): Send =>
    async (request, signal) => {
      if (!state.cuts || request.method !== 'POST' || random() < 0.6) return send(request, signal);
      if (random() < 0.5) await send(request, signal);
      throw new Unavailable('cut off', { acted: 'maybe' });
    };
  return { state, wire };
}

function shown(stage: Stage, email: string, channel: string) {
  const contact = stage.emulator.world.contact(email);
  return contact?.channels.find(({ id }) => id === channel)?.subscription;
}

/** A step of the CRM or of a person; answers whether the platform has to be listed first. */
function act(stage: Stage, random: Random, left: Set<string>): boolean {
  const email = pick(random, emails) ?? '';
  const channel = pick(random, channels) ?? '';
  const isThere = stage.emulator.world.contact(email) !== undefined;
  const isIn = shown(stage, email, channel) === 'opt_in';
  if (random() < 0.3 && isIn) {
    stage.emulator.dashboard.leave(email, channel);
    left.add(`${email} ${channel}`);
    return false;
  }
  if (random() < 0.1 && isThere) {
    stage.emulator.dashboard.signUp({ email, channels: [channel] });
    left.delete(`${email} ${channel}`);
    return true;
  }
  const person = stage.people.find((one) => one['email'] === email);
  if (person) person[channel] = pick(random, wishes);
  return false;
}

async function tell(played: readonly string[], seed: number): Promise<void> {
  const random = seeded(seed);
  const { heard, returns } = hearing();
  const { state, wire } = cutting(random);
  const stage = createStage({ seed, returns, wire, platform: { quirks: played } });
  const left = new Set<string>();
  const ever = new Set<string>();
  emails.forEach((email, at) => {
    const wished = Object.fromEntries(channels.map((channel) => [channel, pick(random, wishes)]));
    stage.people.push({ id: `${at}`, email, ...wished });
  });
  try {
    for (let step = 0; step < 8; step += 1) {
      const isSeen = act(stage, random, left);
      for (const one of left) ever.add(one);
      state.cuts = !isSeen && random() < 0.6;
      await stage.sync({ mode: isSeen || random() < 0.7 ? 'full' : 'fast' });
      for (const one of left) {
        const [email = '', channel = ''] = one.split(' ');
        expect([one, shown(stage, email, channel)]).not.toEqual([one, 'opt_in']);
      }
      for (const { email, channel } of heard) expect(ever).toContain(`${email} ${channel}`);
    }
  } finally {
    stage.close();
  }
}

test.each(sampled(variants, 9))(
  'nobody is opted back in under %s, alone and with a third of the others',
  async (first) => {
    const at = variants.indexOf(first);
    const others = variants.slice(at + 1).filter((second) => nameOf(second) !== nameOf(first));
    const each = [[first], ...others.map((second) => [first, second])];
    // A third of the pairs: each variant meets the others under other seeds, too.
    const some = [...each.entries()].filter(([nth]) => nth === 0 || (nth + at) % 3 === 0);
    for (const [nth, played] of sampled(some, 2)) {
      const seed = 1_000 * at + nth;
      await tell(played, seed).catch((error: unknown) => {
        throw new Error(`${played.join(' ')}, seed ${seed}`, { cause: error });
      });
    }
  },
);
