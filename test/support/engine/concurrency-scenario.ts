/**
 * A mirror on a busy day, as data: people on both sides, runs about everybody, and what happens at
 * the n-th request of one: changes on both sides, runs about single people, faults.
 */
import fc from 'fast-check';
import type { Answer, Send } from '../../../src/domain/exchange.ts';
import type { Summary } from '../../../src/engine/report/run-summary.ts';
import { channels, createStage, type Stage } from './engine-stage.ts';
import { keyOf, onlookerOf, type CrmRecord, type Onlooker } from './outside-observer.ts';

const wish = fc.constantFrom('yes', 'yes', 'no', '', 'maybe');
const shown = fc.constantFrom('none', 'in', 'out');
const person = fc.record({
  wishes: fc.tuple(wish, wish),
  twin: fc.constantFrom('none', 'none', 'yes', 'no'),
  platform: fc.constantFrom('absent', 'absent', 'subscribed', 'subscribed', 'unsubscribed'),
  shown: fc.tuple(shown, shown),
});

const act = fc.record({
  who: fc.nat({ max: 3 }),
  what: fc.constantFrom(
    ...(['one', 'one', 'one', 'one', 'one twin', 'look'] as const),
    ...(['yes', 'yes', 'no', 'no', 'blank', 'maybe', 'product yes', 'product no'] as const),
    ...(['refuses all', 'moves', 'moves', 'joins', 'drops', 'comes', 'twin yes'] as const),
    ...(['twin no', 'no twin', 'leaves', 'leaves product', 'unsubscribes', 'returns'] as const),
    ...(['is deleted', 'signs up'] as const),
  ),
  /** Whether the CRM sends an event, so that the person is brought in line at once. */
  told: fc.constantFrom(true, true, false),
});
type Act = typeof act extends fc.Arbitrary<infer T> ? T : never;

const moment = fc.record({
  nth: fc.integer({ min: 1, max: 14 }),
  when: fc.constantFrom('before', 'answered'),
  holdMs: fc.constantFrom(0, 1, 500, 500, 4_000),
  acts: fc.array(act, { minLength: 1, maxLength: 4 }),
});

const kinds = ['500', 'reset-before', 'reset-after', 'timeout-before', 'timeout-after'];
const fault = fc.record({
  nth: fc.integer({ min: 1, max: 24 }),
  kind: fc.constantFrom(...kinds),
});

export const bustle = fc.record({
  /** Few in a second: then what is planned waits, and is overtaken. */
  limit: fc.constantFrom('*=1000000/1', 'contacts.enrol=1/1', 'contacts.enrol=2/3'),
  people: fc.array(person, { minLength: 1, maxLength: 4 }),
  rounds: fc.array(
    fc.record({
      mode: fc.constantFrom('full', 'full', 'fast'),
      before: fc.array(act, { maxLength: 5 }),
      moments: fc.array(moment, { minLength: 1, maxLength: 4 }),
      faults: fc.array(fault, { maxLength: 2 }),
    }),
    { minLength: 1, maxLength: 4 },
  ),
});
type Bustle = typeof bustle extends fc.Arbitrary<infer T> ? T : never;
export type Round = Bustle['rounds'][number];

export interface Played {
  stage: Stage;
  onlooker: Onlooker;
  /** What every run said that ended since the last round. */
  summaries: { name: string; summary: Summary }[];
  play(round: Round): Promise<void>;
}

const addressOf = (who: number, is: 'old' | 'new' = 'old'): string => `${is}${who}@example.com`;

/** On a file, so that runs beside each other have connections of their own. */
export function begin({ people, limit }: Bustle, path: string): Played {
  const summaries: Played['summaries'] = [];
  const under = new Set<Promise<unknown>>();
  let round: Round | undefined;
  let count = 0;
  const onlooker = onlookerOf(() => stage);

  const wire = (send: Send): Send => {
    return async (request, signal) =>
      onlooker.pass(request, async (received): Promise<Answer> => {
        count += 1;
        const nth = count;
        await happenAt(nth, 'before');
        const broken = round?.faults.find((one) => one.nth === nth);
        stage.emulator.fail(broken ? [broken.kind] : []);
        const answering = send(request, signal);
        stage.emulator.fail([]);
        received();
        const answer = await answering;
        await happenAt(nth, 'answered');
        return answer;
      });
  };
  const happenAt = async (nth: number, when: 'before' | 'answered'): Promise<void> => {
    for (const one of round?.moments ?? []) {
      if (one.nth !== nth || one.when !== when) continue;
      for (const each of one.acts) happen(each);
      if (one.holdMs > 0) await stage.clock.sleep(one.holdMs);
    }
  };
  const start = (name: string, id: string): void => {
    const running = onlooker
      .within('one', name, async () => stage.one(id))
      .then(
        (summary) => void summaries.push({ name, summary }),
        (error: unknown) => {
          const { name: is = '', stack = '' } = error instanceof Error ? error : {};
          if (is !== 'Busy') onlooker.complaints.push(`(3) ${name}: ${stack}`);
        },
      );
    under.add(running);
  };
  const happen = (one: Act): void => {
    if (one.what === 'look') {
      under.add(onlooker.within('look', 'look', async () => stage.look()).catch(expected));
    } else if (one.what === 'one twin') start(`one ${one.who}-twin`, `${one.who}-twin`);
    else if (one.what !== 'one') applyAct({ stage, onlooker, crm }, one);
    const isCrm = !one.what.startsWith('one') && one.told;
    if (one.what === 'one' || isCrm) start(`one ${one.who}`, `${one.who}`);
  };
  const expected = (error: Error): void => {
    const isFault = error.name === 'Unavailable' || error.name === 'Busy';
    if (!isFault) onlooker.complaints.push(`(3) look: ${error.stack}`);
  };

  const stage = createStage({
    path,
    limits: [limit],
    wire,
    heard: async (id) => onlooker.tells(crm.people, id),
  });
  const crm: Sides['crm'] = { people: [] };
  Object.defineProperty(stage, 'people', {
    get: () => {
      onlooker.tells(crm.people);
      return crm.people;
    },
    set(value: CrmRecord[]) {
      crm.people = value;
    },
  });
  arrange({ stage, onlooker, crm }, people);
  return {
    stage,
    onlooker,
    summaries,
    async play(next) {
      count = 0;
      summaries.length = 0;
      for (const one of next.before) applyAct({ stage, onlooker, crm }, one);
      round = next;
      const mode = next.mode === 'full' ? 'full' : 'fast';
      const summary = await onlooker.within(mode, mode, async () => stage.sync({ mode }));
      summaries.push({ name: mode, summary });
      while (under.size > 0) {
        const all = [...under];
        under.clear();
        await stage.clock.run(Promise.all(all));
      }
      round = undefined;
    },
  };
}

type Sides = Pick<Played, 'stage' | 'onlooker'> & { crm: { people: CrmRecord[] } };

function arrange({ stage, onlooker, crm }: Sides, people: Bustle['people']): void {
  const records = people.flatMap(({ wishes: [news, product], twin }, who) => {
    const email = addressOf(who);
    const record = { id: `${who}`, email, ch_news: news, ch_product: product, unsubscribed: '' };
    return twin === 'none' ? [record] : [record, { ...record, id: `${who}-twin`, ch_news: twin }];
  });
  const anchor = { id: 'anchor', email: 'anchor@example.com', ch_news: 'yes', ch_product: '' };
  crm.people = [...records, { ...anchor, unsubscribed: '' }];
  for (const [who, { platform, shown: is }] of people.entries()) {
    if (platform === 'absent') continue;
    const rows = channels.flatMap((id, at) => (is[at] === 'none' ? [] : [[id, `opt_${is[at]}`]]));
    stage.emulator.seed.contact({
      email: addressOf(who),
      status: platform,
      channels: Object.fromEntries(rows),
      createdAt: stage.clock.now() - 86_400_000,
    });
    if (platform === 'unsubscribed') onlooker.leaves(addressOf(who), '*');
    for (const [id, said] of rows) {
      if (id && said === 'opt_out') onlooker.leaves(addressOf(who), id);
    }
  }
}

/** What changes on either side, at once. */
function applyAct(sides: Sides, act: Act): void {
  const { crm } = sides;
  const id = `${act.who}`;
  const record = crm.people.find((one) => one['id'] === id);
  const twin = crm.people.find((one) => one['id'] === `${id}-twin`);
  const change = crmChange(act, record ?? { id, email: addressOf(act.who), unsubscribed: '' });
  if (!change) return applyToContact(sides, act, record ? keyOf(record) : addressOf(act.who));
  const { fields, of = '' } = change;
  const before = of === '' ? record : twin;
  const others = crm.people.filter((one) => one['id'] !== `${id}${of}`);
  if (fields === undefined) crm.people = others;
  else if (before) crm.people = [...others, { ...before, ...fields }];
  else if (change.makes) {
    const made = { email: addressOf(act.who), ch_product: '', unsubscribed: '', ...record };
    crm.people = [...others, { ...made, ...fields, id: `${id}${of}` }];
  }
}

interface CrmChange {
  /** Undefined: the record is taken out. */
  fields: CrmRecord | undefined;
  of?: '-twin';
  makes?: boolean;
}

function crmChange({ what, who }: Act, record: CrmRecord): CrmChange | undefined {
  const isOld = keyOf(record) === addressOf(who);
  const word = { yes: 'yes', no: 'no', blank: '', maybe: 'maybe' } as const;
  if (what in word) return { fields: { ch_news: word[what as keyof typeof word] } };
  switch (what) {
    case 'product yes':
      return { fields: { ch_product: 'yes' } };
    case 'product no':
      return { fields: { ch_product: 'no' } };
    case 'refuses all':
      return { fields: { unsubscribed: 'true' } };
    case 'moves':
      return { fields: { email: addressOf(who, isOld ? 'new' : 'old') } };
    case 'joins':
      return { fields: { email: addressOf((who + 1) % 4) } };
    case 'drops':
      return { fields: undefined };
    case 'comes':
      return { fields: { ch_news: 'yes', unsubscribed: '' }, makes: true };
    case 'twin yes':
    case 'twin no':
      return { fields: { ch_news: what.slice(5) }, of: '-twin', makes: true };
    case 'no twin':
      return { fields: undefined, of: '-twin' };
    default:
      return undefined;
  }
}

function applyToContact({ stage, onlooker }: Sides, { what }: Act, key: string): void {
  const { dashboard, world } = stage.emulator;
  const known = world.contact(key);
  if (!known) {
    if (what === 'signs up') dashboard.signUp({ email: key, channels: ['ch_news'] });
    return;
  }
  if (what === 'leaves' || what === 'leaves product') {
    const channel = what === 'leaves' ? 'ch_news' : 'ch_product';
    const isOut = known.channels.some((one) => one.id === channel && one.subscription !== 'opt_in');
    if (!isOut) onlooker.leaves(key, channel);
    dashboard.leave(known.id, channel);
  } else if (what === 'unsubscribes') {
    if (known.status === 'subscribed') onlooker.leaves(key, '*');
    dashboard.unsubscribe(known.id);
  } else if (what === 'returns') {
    dashboard.resubscribe(known.id);
    onlooker.returns(key);
  } else if (what === 'is deleted') {
    dashboard.deleteContact(known.id);
    onlooker.vanishes(key);
  }
}
