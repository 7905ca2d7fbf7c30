/**
 * Sees all that several runs of one mirror read, send and are answered, and complains of what must
 * never leave. Knows nothing of how they share the people.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Answer, Request } from '../../../src/domain/exchange.ts';
import { channels, type Stage } from './engine-stage.ts';
import { wishOf } from './sample-people.ts';

export type CrmRecord = Readonly<Record<string, unknown>>;

/** Times are numbers of what happened, in its order. */
export interface RunSeen {
  name: string;
  of: 'full' | 'fast' | 'one' | 'look';
  begunAt: number;
  endedAt?: number;
  /** By id: what the CRM last said of it; undefined: nothing. */
  read: Map<string, { at: number; record: CrmRecord | undefined }>;
}

export interface Sent {
  run: RunSeen;
  key: string;
  channel: string;
  what: 'opt_in' | 'opt_out' | 'delete';
  leftAt: number;
  answeredAt?: number;
  /** 0: no answer. */
  status?: number;
}

export interface Onlooker {
  complaints: string[];
  sent: Sent[];
  /** Holds who did what to a contact on the platform, and when last. */
  touched: Map<string, number>;
  /** Holds everything that ever happened to an address, in words. */
  fates: Map<string, Set<string>>;
  /** Does it as a run that is looked at. */
  within<T>(of: RunSeen['of'], name: string, work: () => Promise<T>): Promise<T>;
  /** The CRM tells the run under way of one record, or of all. */
  tells(records: readonly CrmRecord[], id?: string): void;
  /** The person leaves a channel or all mail ('*'), comes back, or the contact is deleted. */
  leaves(key: string, channel: string): void;
  returns(key: string): void;
  vanishes(key: string): void;
  note(key: string, fate: string): void;
  /** One request, through all that becomes of it. */
  pass(request: Request, go: (received: () => void) => Promise<Answer>): Promise<Answer>;
}

export const keyOf = (record: CrmRecord): string => String(record['email']).trim().toLowerCase();

export function onlookerOf(stage: () => Stage): Onlooker {
  const current = new AsyncLocalStorage<RunSeen>();
  const runs: RunSeen[] = [];
  const sent: Sent[] = [];
  /** Holds, by person and channel, since when the person has been out by their own act. */
  const left = new Map<string, Map<string, number>>();
  const complaints: string[] = [];
  const touched = new Map<string, number>();
  const fates = new Map<string, Set<string>>();
  /** By id of the contact, of those that are gone, too. */
  const emails = new Map<string, string>();
  let now = 0;
  const tick = (): number => (now += 1);
  const note = (key: string, fate: string): void => {
    fates.set(key, (fates.get(key) ?? new Set()).add(fate));
  };
  const meet = (): void => {
    for (const { id, email } of stage().emulator.world.contacts()) emails.set(id, email);
  };
  const under = (key: string, channel: string): boolean =>
    sent.some((one) => one.key === key && one.channel === channel && isOpen(one)) ||
    stage()
      .snapshot.journal.open('contact')
      .some((change) => change.key === key && change.part === channel);

  return {
    complaints,
    sent,
    touched,
    fates,
    note,
    async within(of, name, work) {
      const run: RunSeen = {
        name: `${name} #${runs.length}`,
        of,
        begunAt: tick(),
        read: new Map(),
      };
      runs.push(run);
      return current.run(run, work).finally(() => (run.endedAt = tick()));
    },
    tells(records, id) {
      const run = current.getStore();
      if (!run || (id === undefined && run.of === 'one')) return;
      const at = tick();
      if (id === undefined) run.read.clear();
      for (const record of records) {
        if (id === undefined || record['id'] === id) {
          run.read.set(String(record['id']), { at, record });
        }
      }
      if (id !== undefined && !run.read.has(id)) run.read.set(id, { at, record: undefined });
    },
    leaves(key, channel) {
      touched.set(key, tick());
      note(key, channel === '*' ? 'unsubscribed' : `left ${channel}`);
      // What is under way may come to be after it, and nobody could tell one from the other.
      if (under(key, channel)) return;
      const facts = left.get(key) ?? new Map<string, number>();
      if (!facts.has(channel)) facts.set(channel, now);
      left.set(key, facts);
    },
    returns(key) {
      touched.set(key, tick());
      left.get(key)?.delete('*');
    },
    vanishes(key) {
      touched.set(key, tick());
      note(key, 'vanished');
      left.delete(key);
    },
    async pass(request, go) {
      const run = current.getStore();
      meet();
      const write = run && writeOf(request, emails);
      if (!run || !write) return go(() => undefined);
      const one: Sent = { run, ...write, leftAt: tick() };
      complaints.push(...judge(one, { runs, sent, left, stage: stage() }));
      sent.push(one);
      const received = (): void => {
        meet();
        const is = shown(stage(), one);
        if (is === one.what) left.get(one.key)?.delete(one.channel);
      };
      try {
        const answer = await go(received);
        one.status = answer.status;
        return answer;
      } catch (error) {
        one.status = 0;
        throw error;
      } finally {
        one.answeredAt = tick();
        if ((one.status ?? 0) === 0 || (one.status ?? 0) >= 400)
          note(one.key, `failed ${one.what}`);
      }
    },
  };
}

const isOpen = ({ answeredAt }: Sent): boolean => answeredAt === undefined;

function shown(stage: Stage, { key, channel }: Sent): string | undefined {
  return stage.emulator.world.contact(key)?.channels.find(({ id }) => id === channel)?.subscription;
}

function writeOf(
  { method, path, body = '{}' }: Request,
  emails: ReadonlyMap<string, string>,
): Pick<Sent, 'key' | 'channel' | 'what'> | undefined {
  const id = path.split('/').at(-1) ?? '';
  const who = (of: string): string => (emails.get(of) ?? of).toLowerCase();
  if (!path.startsWith('/api/contacts/') || method === 'GET') return undefined;
  if (method === 'DELETE') return { key: who(id), channel: '*', what: 'delete' };
  const said: { email?: string; contact_id?: string; subscription: Sent['what'] } =
    JSON.parse(body);
  return {
    key: who(said.contact_id ?? said.email ?? ''),
    channel: id,
    what: said.subscription,
  };
}

interface Known {
  runs: readonly RunSeen[];
  sent: readonly Sent[];
  left: ReadonlyMap<string, ReadonlyMap<string, number>>;
  stage: Stage;
}

function judge(one: Sent, known: Known): string[] {
  const { run, key, channel, what } = one;
  const said = `${run.name}: ${what} ${key} ${channel}`;
  const beside = known.sent.find(
    (other) => isOpen(other) && other.run !== run && other.key === key && other.channel === channel,
  );
  const found = [
    beside && `(2) ${said} leaves while that of ${beside.run.name} is under way`,
    contradicted(one, known) && `(5) ${said} leaves after ${contradicted(one, known)}`,
    what === 'opt_in' && whyNot(one, known),
  ];
  return found.flatMap((why) => {
    if (!why) return [];
    return why.startsWith('(') ? [why] : [`(1) ${said} leaves, though ${why}`];
  });
}

/** By which run about one person a run about everybody was overtaken. */
function contradicted({ run, key }: Sent, { sent }: Known): string | undefined {
  if (run.of === 'one') return undefined;
  const by = sent.find(
    (other) => other.run.of === 'one' && other.key === key && other.leftAt > run.begunAt,
  );
  return by?.run.name;
}

/** Why somebody must not be brought in. */
function whyNot({ run, key, channel }: Sent, { runs, left, stage }: Known): string | undefined {
  const facts = left.get(key);
  for (const part of [channel, '*']) {
    if ((facts?.get(part) ?? Infinity) < run.begunAt)
      return `the person had left ${part} before it began`;
  }
  const own = [...run.read.values()].filter(({ record }) => record && keyOf(record) === key);
  const ids = own.flatMap(({ record }) => (record ? [String(record['id'])] : []));
  const entries = stage.ledger.concerning({ key, ids });
  const entry = entries.find(({ part, cause }) => {
    return cause !== 'vanished' && (part === '*' || part === channel);
  });
  if (entry) return `the ledger knows: ${entry.cause} ${entry.part}`;
  const records = own.flatMap(({ record }) => (record ? [record] : []));
  if (wishOf(records, channel) !== 'opt_in') return 'what it had read forbids it';
  for (const other of runs) {
    if (other.of !== 'one' || other.endedAt === undefined || other === run) continue;
    for (const id of ids) {
      const newer = other.read.get(id);
      if (!newer?.record || newer.at < (run.read.get(id)?.at ?? 0)) continue;
      const wish = wishOf([newer.record], channel);
      const isHere = keyOf(newer.record) === key;
      if (wish === 'opt_out' || (isHere && wish !== 'opt_in')) {
        return `${other.name} had read ${wish ?? 'no wish'} of ${id} since, and has ended`;
      }
    }
  }
  return undefined;
}

/** What the platform shows of an address, by channel. */
export function shownOf(stage: Stage, key: string): Record<string, string | undefined> {
  return Object.fromEntries(
    channels.map((channel) => [
      channel,
      stage.emulator.world.contact(key)?.channels.find(({ id }) => id === channel)?.subscription,
    ]),
  );
}
