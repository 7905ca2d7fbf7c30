/**
 * The way between a process and the platform: requests and answers travel, each for its own time,
 * may overtake each other, get lost, or come when nobody waits any more. A request that has left
 * arrives, within the time its sender waits for it at the latest, even if the sender is dead.
 */
import { seeded } from '../../../src/emulator/shared/seeded-random.ts';
import { refuse, toAnswer } from '../../../src/emulator/shared/api-answer.ts';
import { whole, type Delivery } from '../../../src/emulator/faults/faults.ts';
import { Unavailable } from '../../../src/domain/errors.ts';
import type { Answer, Request, Send } from '../../../src/domain/exchange.ts';
import type { LoggedRequest } from '../../../src/emulator/ui/dashboard.ts';
import { keyOf } from '../../support/engine/sample-people.ts';
import { checkArrival } from '../checks/request-checks.ts';
import { horizon, type Known, type Outing } from '../checks/checker-state.ts';
import type { Life } from './process-life.ts';
import type { Reached } from '../coverage.ts';
import type { Judge } from '../checks/rules.ts';
import type { RunStep } from '../story/steps.ts';
import { fallbackOf } from '../story/story.ts';
import { asked } from '../checks/asked.ts';
import { shownBy } from '../checks/shown.ts';
import { isReadable, type Unanswered } from '../checks/unanswered.ts';
import { createTraffic, type Counted, type Traffic } from './traffic.ts';
import { refusedDomain, type World } from './world.ts';

export const timeoutMs = 10_000;

export interface Wire {
  send: Send;
  counts(): Counted;
}

export interface WireOptions {
  world: World;
  known: Known;
  unanswered: Unanswered;
  step: RunStep;
  life: Life;
  outing: Outing;
  reached: Reached;
  /** Told what became of each request. */
  log(line: string): void;
  /** What a checker found. */
  found(error: unknown): void;
}

export function createWire(options: WireOptions): Wire {
  const { world, known, step, life, outing, unanswered, reached, found } = options;
  const judge: Judge = (rule, wrong) => attempt(() => known.judge(rule, wrong), found);
  const random = seeded(world.story.chance + step.latency);
  const traffic = createTraffic(outing, world.clock.monotonic);

  async function arrive(request: Request, trip: Trip): Promise<Delivery> {
    await world.clock.sleep(trip.there);
    const acts = step.meanwhile.filter(({ nth }) => nth === trip.nth);
    for (const { act } of acts) {
      options.log(`         meanwhile ${act.in}: ${act.does}`);
      world.act(act);
      reached.note('run', 'something changes during the run');
      known.memories.notice();
      // Nothing on the platform happens in the same millisecond as something else.
      await world.clock.sleep(1);
    }
    if (step.eaten === trip.nth) {
      world.eat();
      reached.note('run', 'other clients use up the limit');
    }
    return receive(options, request, trip);
  }

  const send: Send = async (request, signal) => {
    life.touch();
    signal?.throwIfAborted();
    if (outing.refused) outing.leftRefused += 1;
    traffic.leaves(request);
    const { left } = traffic;
    const fault = step.faults.find(({ nth }) => nth === left)?.fault;
    if (fault !== undefined) {
      traffic.disturbed += 1;
      reached.note('fault', fault);
    }
    if (fault === 'no connection') throw new Unavailable('no connection', { acted: 'no' });
    const sentAt = world.clock.monotonic();
    const trip = { nth: left, fault, sentAt, traffic, ...draw(step, random) };
    const enrols = enrolmentIn(request, world);
    const settle = unanswered.leave(request, enrols, judge);
    const exchanged = exchange(world, arrive(request, trip), { trip, signal });
    exchanged.catch(() => traffic.ends(request, undefined));
    const answer = await life
      .wait(exchanged)
      .then((heard) => dated(heard, request, options))
      .catch((error: unknown) => {
        noteLost(options, request, sentAt);
        throw error;
      });
    const isAnswered = answer.status < 500 && isReadable(answer);
    if (!isAnswered) noteLost(options, request, sentAt);
    // What is refused for its number or its key is asked again: by then the person may have acted.
    if (isAnswered) noteRead(options, request, ![401, 403, 429].includes(answer.status));
    traffic.ends(request, answer.status);
    if (answer.status === 401) outing.refused = true;
    settle(answer);
    for (const { id, key } of shownBy(request, answer)) outing.shown.set(id, key);
    if (enrols === undefined) return answer;
    if (answer.status < 300 && isReadable(answer)) {
      outing.answered.push(enrols);
      known.memories.created(addressIn(request), horizon({ outing, sentAt }));
    }
    // Its status says that much, whatever its body. Of several contacts one may be refused.
    if ([404, 409, 422].includes(answer.status)) noteRefused(known, enrols);
    if (answer.status === 422) known.canaries.refused(enrols, outing);
    return answer;
  };
  return { send, counts: () => traffic };
}

/** What a renamed contact is refused, the record of its former address is refused, too. */
function noteRefused({ refusals, witness }: Known, enrols: string): void {
  const [key = '', ...what] = enrols.split(' ');
  const former = witness.present(key).flatMap((person) => person.former?.key ?? []);
  for (const about of [key, ...former]) refusals.add([about, ...what].join(' '));
}

const day = 86_400_000;

/** What it tells of the time, where it lists: a proxy may be in the way. */
function dated(
  answer: Answer,
  { method }: Request,
  { world: { story }, step }: Pick<WireOptions, 'world' | 'step'>,
): Answer {
  if (method !== 'GET' || story.dates === 'right') return answer;
  const { date, ...headers } = answer.headers;
  if (story.dates === 'none' || date === undefined) return { ...answer, headers };
  const off = [0, 40, -40][step.latency % 3] ?? 0;
  const told = new Date(Date.parse(date) + off * day).toUTCString();
  return { ...answer, headers: { ...headers, date: told } };
}

/** A contact is read by its id: of one that we made, how soon it was answered matters. */
function noteRead(
  { known, reached, world }: WireOptions,
  { method, path }: Request,
  isAnswered: boolean,
): void {
  const [, id] = /^\/api\/contacts\/retrieve\/(.+)$/.exec(path) ?? [];
  if (method !== 'GET' || id === undefined || known.readBacks.has(id)) return;
  known.readBacks.set(id, { at: world.clock.monotonic(), isAnswered });
  const made = known.witness.people().find((person) => person.id === id)?.made;
  if (made?.by === 'us') reached.note('run', 'a creation is read back');
}

/** An unanswered opt-out of ours, of a person this run has read. */
function noteLost(options: WireOptions, request: Request, sentAt: number): void {
  const { known, outing, reached, world } = options;
  known.audit.unheard({ request }, outing);
  noteRead(options, request, false);
  const isOptIn = asked(request).subscription === 'opt_in';
  if (isOptIn && fallbackOf(world.story) === 'opt_out')
    reached.note('run', 'an opt-in has no answer where defaults are shown');
  const { id, subscription } = asked(request);
  const channel = request.path.split('/').at(-1);
  const key = outing.shown.get(id ?? '');
  if (subscription !== 'opt_out' || !id || !channel || key === undefined) return;
  if (outing.forgets !== undefined) return;
  known.memories.unheard({ id, key, channel, since: horizon({ outing, sentAt }) });
}

interface Trip {
  traffic: Traffic;
  nth: number;
  fault: string | undefined;
  sentAt: number;
  there: number;
  back: number;
}

/** Mostly milliseconds; now and then seconds, and an answer may take longer than anybody waits. */
function draw({ latency }: RunStep, random: () => number): Pick<Trip, 'there' | 'back'> {
  if (latency === 0) return { there: 1, back: 1 };
  const far = (most: number) =>
    Math.floor(random() < 0.05 ? random() * most : 2 + random() * random() * 120);
  return { there: far(timeoutMs - 1), back: far(timeoutMs * 1.2) };
}

/** The answer, or what the client makes of none. */
async function exchange(
  { clock }: World,
  arrival: Promise<Delivery>,
  { trip, signal }: { trip: Trip; signal: AbortSignal | undefined },
): Promise<Answer> {
  const lost = (why: string) => new Unavailable(why, { acted: 'maybe' });
  const { promise: givenUp, reject: giveUp } = Promise.withResolvers<never>();
  givenUp.catch(() => undefined);
  const leave = () => giveUp(lost('given up under way'));
  signal?.addEventListener('abort', leave, { once: true });
  const over = new AbortController();
  const late = clock.sleep(timeoutMs, over.signal).then(
    () => giveUp(lost('no answer in time')),
    () => undefined,
  );
  const answered = async (): Promise<Answer> => {
    const delivery = await arrival;
    if (delivery.is === 'silence') return givenUp;
    await clock.sleep(trip.back + (delivery.is === 'whole' ? delivery.delayMs : 0));
    if (delivery.is === 'whole') return delivery.answer;
    throw lost(`the connection was cut: ${delivery.is}`);
  };
  try {
    return await Promise.race([answered(), givenUp]);
  } finally {
    over.abort(new Error('over'));
    await late;
    signal?.removeEventListener('abort', leave);
  }
}

/** The platform takes the request, the witness sees what it does, the checkers judge it. */
function receive(options: WireOptions, request: Request, trip: Trip): Delivery {
  const { world, life } = options;
  const { emulator, witness } = world;
  emulator.fail(trip.fault === undefined ? [] : [trip.fault]);
  const headers = { ...request.headers, 'user-agent': 'crm-mirror', ...keyNow(options, trip) };
  const reads = request.method === 'GET';
  const seen = reads ? <T>(_: 'us', work: () => T): T => work() : witness.during;
  const delivery =
    refuseAddress(options, request, trip) ??
    seen('us', () => {
      const delivered = emulator.receive({ ...request, headers });
      judgeArrival(options, request, trip);
      options.log(describe(emulator.world.requests(1)[0], trip));
      return delivered;
    });
  // Killed when it was done, and not answered yet.
  if (!life.dead) attempt(life.touch, () => undefined);
  return delivery;
}

/** Somebody switches the key off while the run goes on. */
function keyNow(
  { step: { refused }, reached }: WireOptions,
  { nth }: Trip,
): Record<string, string> {
  if (refused === undefined || nth < refused) return {};
  reached.note('run', 'the key is refused in mid-run');
  return { 'x-api-key': 'switched off' };
}

/** An address that the platform refuses in every request. */
function refuseAddress(
  { log }: WireOptions,
  request: Request,
  { nth }: Trip,
): Delivery | undefined {
  const { email } = asked(request);
  if (request.method === 'GET' || !email?.endsWith(refusedDomain)) return undefined;
  log(`${String(nth).padStart(8)} contacts.enrol ${email} → 422`);
  const why = 'No mail server answers for it.';
  const outcome = refuse(422, 'Invalid email address', { why, fix: 'Correct the address.' });
  return whole(toAnswer(outcome, {}));
}

function judgeArrival(options: WireOptions, request: Request, trip: Trip): void {
  const { world, known, outing, found } = options;
  const [entry] = world.emulator.world.requests(1);
  if (!entry || !reachesPlatform(entry)) return;
  trip.traffic.writes += 1;
  const arrival = { outing, entry, asks: asked(request), sentAt: trip.sentAt };
  known.audit.arrived({ ...arrival, request });
  attempt(() => checkArrival(arrival, known), found);
  const { route, path, status, email, channelId } = entry;
  const gone = world.witness.people().find(({ id }) => path.endsWith(`/${id}`));
  if (route === 'contacts.delete' && gone && outing.forgets === undefined) {
    const done = status < 300;
    if (done) options.reached.note('run', 'somebody is deleted');
    known.memories.deleting(gone, { since: horizon(arrival), done });
  }
  if (status < 300 && email && channelId) known.memories.changed(keyOf(email), channelId);
}

/** Whether it asked an operation to change something; what is refused before that asks nothing. */
function reachesPlatform({ method, route, status, channelId }: LoggedRequest): boolean {
  if (method === 'GET' || route === null) return false;
  if (route === 'contacts.enrol') return channelId !== undefined;
  return ![0, 400, 401, 403, 422, 429].includes(status);
}

/** The key of the address that a request names. */
function addressIn(request: Request): string | undefined {
  const { email } = asked(request);
  return email && keyOf(email);
}

function enrolmentIn(request: Request, { witness }: World): string | undefined {
  const { id, subscription } = asked(request);
  const key = witness.people().find((person) => person.id === id)?.key ?? addressIn(request);
  const channel = request.path.split('/').at(-1);
  return subscription && key && `${key} ${channel} ${subscription}`;
}

function attempt(work: () => void, failed: (error: unknown) => void): void {
  try {
    work();
  } catch (error) {
    failed(error);
  }
}

function describe(entry: LoggedRequest | undefined, { nth, fault }: Trip): string {
  if (!entry) return '';
  const { route, method, path, email, contactId, channelId, subscription, status } = entry;
  const target = [email ?? contactId, channelId, subscription].filter(Boolean).join(' ');
  const what = fault === undefined ? '' : `  (${fault})`;
  return `${String(nth).padStart(8)} ${route ?? method} ${target || path} → ${status || '–'}${what}`;
}
