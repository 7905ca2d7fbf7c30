/**
 * What waits, and until when, as docs/guards-and-approvals.md and docs/decisions/guards.md say it:
 * lists of objects, without a database. It leaves out canaries, signatures, swapped answers, and
 * runs about one person.
 */
import type { GuardClass, Limit } from '../../../src/domain/guard-classes.ts';
import type { Op } from '../../../src/domain/change.ts';
import type { RecordTypeName } from '../../../src/domain/record.ts';
import { hour } from './change-volume.ts';

/** Where a change is planned. */
export interface Place {
  guard: GuardClass;
  kind: RecordTypeName;
  key: string;
  op: Op;
  part: string;
}

/** A planned change. */
export interface Row extends Place {
  target: string | undefined;
  body: string;
  /** Whether the CRM states it about this person. */
  stated: boolean;
  /** Whether it withdraws an opt-out that the CRM had stated. */
  withdraws: boolean;
}

export interface Hold extends Row {
  since: number;
  plans: Set<string>;
  decision?: Decision | undefined;
  isOpen: boolean;
}

export interface Decision {
  id: string;
  plan: string;
  verdict: 'approved' | 'rejected';
  at: number;
  number: number;
  holds: Set<Hold>;
  isOver: boolean;
}

/** What lets a change pass although others of its class wait. */
type Pass = Decision | 'exempt' | 'expired' | undefined;

interface Sent extends Row {
  run: number;
  by: Pass;
  /** How many decisions there had been. */
  given: number;
  at: number;
  state: 'acked' | 'rejected' | 'stale' | 'unknown';
}

export interface Judged {
  row: Row;
  is: 'sent' | 'held' | 'rejected' | 'deferred' | 'kept out';
  by: Pass;
}

/** What a run knows besides its plan. */
export interface Facts {
  run: number;
  /** Our clock, and the time by which stated opt-outs wait. */
  at: number;
  waitAt: number;
  mode: 'full' | 'fast';
  isExempt: boolean;
  limits: Readonly<Record<GuardClass, Limit>>;
  closed: ReadonlySet<GuardClass>;
  /** Asks about these classes if more people than that would be changed. */
  rule: { over: number; for: readonly GuardClass[] } | undefined;
  owned: ReadonlySet<string>;
  subscribed: ReadonlySet<string>;
  stating: readonly { key: string; part: string }[];
  wanted: number;
  templates: number;
}

const weekMs = 168 * hour;
const wish = ({ op }: Place) => (op === 'create' ? 'opt_in' : op);
const keysOf = (rows: readonly Judged[]) => new Set(rows.map(({ row }) => row.key));
const isOf = (a: Place, b: Place) => a.kind === b.kind && a.key === b.key;
const isAt = (a: Place, b: Place) => isOf(a, b) && a.guard === b.guard && a.part === b.part;
/** A change of a person is the same for the same contact, of a template with the same content. */
const isShown = (hold: Hold, row: Row) =>
  isAt(hold, row) &&
  (hold.target === undefined || hold.target === row.target) &&
  (row.kind === 'contact' || hold.body === row.body);
const isSame = (hold: Hold, row: Row) =>
  isShown(hold, row) &&
  hold.op === row.op &&
  hold.stated === row.stated &&
  hold.withdraws === row.withdraws;
const isPassing = (one: Judged) => one.is === 'sent' && !one.by;

export function createHoldModel() {
  const holds: Hold[] = [];
  const decisions: Decision[] = [];
  const sent: Sent[] = [];
  let given = 0;

  const open = () => holds.filter(({ isOpen }) => isOpen);
  const isInForce = (one: Decision | undefined, at: number): boolean =>
    one?.verdict === 'approved' && !one.isOver && one.at > at - weekMs;
  /** What waits of the same person, or of the same channel if it is a stated opt-out. */
  const waitingWith = (row: Row) =>
    open().filter((hold) =>
      row.guard === 'opt_out' ? isAt(hold, row) : isOf(hold, row) && hold.guard === row.guard,
    );
  const isUsed = ({ number, id }: Decision, row: Place, states: readonly Sent['state'][]) =>
    sent.some(
      (one) =>
        isOf(one, row) &&
        wish(one) === wish(row) &&
        one.part === row.part &&
        one.given >= number &&
        typeof one.by === 'object' &&
        (id === '' || one.by.id === id) &&
        states.includes(one.state),
    );

  /** The later decision counts. One about what was concluded does not reject what is stated. */
  function isRejected(row: Row): boolean {
    const [latest] = open()
      .filter((hold) => isShown(hold, row) && wish(hold) === wish(row))
      .flatMap(({ decision, stated }) =>
        decision && (decision.verdict === 'approved' || stated || !row.stated) ? [decision] : [],
      )
      .filter(({ isOver }) => !isOver)
      .toSorted((a, b) => b.number - a.number);
    return latest?.verdict === 'rejected';
  }

  /** An approval passes a change once, and withdraws no opt-out that it did not show. */
  const approvalOf = (row: Row, at: number): Decision | undefined =>
    open()
      .filter((hold) => isShown(hold, row) && hold.op === row.op)
      .filter(({ withdraws }) => withdraws || !row.withdraws)
      .flatMap(({ decision }) => (decision && isInForce(decision, at) ? [decision] : []))
      .filter((one) => !isUsed({ ...one, id: '' }, row, ['acked', 'rejected', 'unknown']))
      .toSorted((a, b) => b.number - a.number)[0];

  function isWithdrawn(mine: readonly Judged[], { stating }: Facts): boolean {
    if (!mine.some((one) => one.row.withdraws && isPassing(one))) return false;
    return [undefined, ...new Set(mine.map(({ row }) => row.part))].some((part) => {
      const isIn = (one: { part: string }) => part === undefined || one.part === part;
      const all = keysOf(mine.filter(({ row }) => row.withdraws && isIn(row))).size;
      return all >= 4 && 2 * all > new Set(stating.filter(isIn).map(({ key }) => key)).size;
    });
  }

  /** Returns whether what is new of a class is too much, or looks like an accident. */
  function isTooMuch(guard: GuardClass, mine: readonly Judged[], facts: Facts): boolean {
    const { owned, subscribed, limits } = facts;
    const fresh = keysOf(mine.filter(isPassing));
    if (fresh.size === 0) return false;
    const { percent, floor } = limits[guard];
    const unapproved = keysOf(mine.filter(({ by }) => !by));
    const lately = sent.filter(
      (one) =>
        one.guard === guard &&
        !one.by &&
        one.run !== facts.run &&
        ['acked', 'unknown'].includes(one.state) &&
        one.at >= facts.at - weekMs &&
        !unapproved.has(one.key),
    );
    // Stated opt-outs that wait or are approved do not count against others.
    const isTimed = guard === 'opt_out';
    const counted = ({ row, by }: Judged) => !isTimed || (!by && waitingWith(row).length === 0);
    const all = keysOf(mine.filter(counted)).size;
    const others = [...subscribed].filter((key) => !keysOf(mine).has(key)).length;
    if (isTimed && all >= 4 && others === 0 && percent < 100) return true;
    const week = new Set(lately.map(({ key }) => key)).size + (isTimed ? all : unapproved.size);
    const of = {
      delete: owned.size,
      opt_out: keysOf(mine).size + others,
      opt_in: facts.wanted,
      template: facts.templates,
    }[guard];
    const most = Math.max(floor, Math.floor((of * percent) / 100 + 1e-6));
    if (all > most || week > 2 * most) return true;
    if (guard !== 'delete' || fresh.size <= floor) return false;
    const domainOf = (key: string) => key.split('@')[1];
    const domains = new Set([...fresh].map(domainOf));
    const same = [...owned].filter((key) => domains.has(domainOf(key))).length;
    return domains.size === 1 && same < 0.9 * owned.size;
  }

  function judgeClass(guard: GuardClass, all: readonly Judged[], facts: Facts): void {
    let mine = all.filter(({ row }) => row.guard === guard);
    if (guard !== 'opt_out') for (const one of mine) if (isRejected(one.row)) one.is = 'rejected';
    const heldOut = keysOf(all.filter(({ row, is }) => row.guard === 'opt_out' && is === 'held'));
    if (guard === 'opt_in')
      for (const one of mine)
        if (one.is === 'sent' && heldOut.has(one.row.key)) one.is = 'kept out';
    mine = mine.filter(({ is }) => is === 'sent');
    for (const one of mine) one.by = approvalOf(one.row, facts.at);
    const hold = (which: (row: Row) => boolean): void => {
      for (const one of mine) if (isPassing(one) && which(one.row)) one.is = 'held';
    };
    if (guard === 'opt_in' && isWithdrawn(mine, facts)) {
      const who = keysOf(mine.filter(({ row, by }) => row.withdraws && !by));
      hold(({ key }) => who.has(key));
    }
    const { holdForMs = Infinity } = facts.limits[guard];
    for (const one of mine.filter(isPassing)) {
      const those = waitingWith(one.row);
      const isOver = those.some(({ since }) => facts.waitAt - since >= holdForMs);
      if (guard === 'opt_out' && isOver) one.by = 'expired';
      else if (those.some(({ stated }) => stated || !one.row.stated)) one.is = 'held';
      else if (guard === 'opt_in' && facts.isExempt) one.by = 'exempt';
    }
    if (isTooMuch(guard, mine, facts)) hold(() => true);
  }

  return {
    open,
    decisions,
    isApproved: ({ decision }: Hold, at: number) => isInForce(decision, at),
    inForce: (at: number) => decisions.filter((one) => isInForce(one, at)),
    judge(rows: readonly Row[], facts: Facts): Judged[] {
      const all = rows.map((row): Judged => ({ row, is: 'sent', by: undefined }));
      for (const one of open())
        if (one.guard === 'opt_out') one.since = Math.min(one.since, facts.waitAt);
      for (const guard of ['delete', 'opt_out', 'opt_in', 'template'] as const)
        judgeClass(guard, all, facts);
      const { rule, closed } = facts;
      const asked = all.filter(
        ({ row, is, by }) => is === 'sent' && (!by || by === 'exempt') && !row.stated,
      );
      const people = asked.filter(({ row }) => row.kind === 'contact');
      const names = new Set(people.map(({ row }) => `${row.guard} ${row.key}`));
      for (const one of rule && names.size > rule.over ? asked : [])
        if (rule?.for.includes(one.row.guard)) one.is = 'held';
      for (const one of all)
        if (one.is === 'sent' && closed.has(one.row.guard) && !one.row.stated) one.is = 'deferred';
      return all;
    },
    /** Stores what a run holds; what replaces a hold of the same record waits as long. */
    hold(judged: readonly Judged[], waitAt: number): void {
      const made = judged.flatMap(({ row, is }): Hold[] => {
        if (is !== 'held' || open().some((hold) => isSame(hold, row))) return [];
        const since = Math.min(waitAt, ...waitingWith(row).map((hold) => hold.since));
        return [{ ...row, since, plans: new Set(), isOpen: true }];
      });
      holds.push(...made);
    },
    /** Stores under which hash a plan showed it. Returns whether the hash covers nothing else. */
    show(judged: readonly Judged[], plan: string): boolean {
      const shown = judged.filter(({ is }) => is === 'held');
      const before = holds.filter(({ plans }) => plans.has(plan));
      const isListed = ({ row }: Judged) => before.some((hold) => isSame(hold, row));
      const isCovered = before.length === 0 || shown.every(isListed);
      const decision = decisions.find(({ id }) => id === plan);
      for (const hold of open().filter((one) => shown.some(({ row }) => isSame(one, row)))) {
        hold.plans.add(plan);
        decision?.holds.add(hold);
      }
      return isCovered;
    },
    /** What a decision about a plan can be about: what it showed and nobody rejected elsewhere. */
    waitingUnder: (plan: string) =>
      open().filter(
        ({ plans, decision: by }) =>
          plans.has(plan) && (by?.verdict !== 'rejected' || by.isOver || by.id === plan),
      ),
    decide(made: Pick<Decision, 'id' | 'plan' | 'verdict' | 'at'>, of: readonly Hold[]): void {
      given += 1;
      const before = decisions.find(({ id }) => id === made.id);
      const decision = before ?? { ...made, number: 0, holds: new Set(), isOver: false };
      Object.assign(decision, made, { number: given, isOver: false });
      if (!before) decisions.push(decision);
      for (const hold of of) {
        decision.holds.add(hold);
        hold.plans.add(made.id);
      }
      for (const hold of decision.holds) if (hold.isOpen) hold.decision = decision;
    },
    send(judged: readonly Judged[], { run, at }: Facts, outcome: () => Sent['state']): Sent[] {
      const passed = judged.filter(({ is }) => is === 'sent');
      const now = passed.map(({ row, by }) => ({ ...row, by, given, run, at, state: outcome() }));
      sent.push(...now);
      return now;
    },
    /** Finds out what became of the requests without an outcome. */
    findOut(outcome: () => 'acked' | 'stale'): Sent[] {
      const found = sent.filter(({ state }) => state === 'unknown');
      for (const one of found) one.state = outcome();
      return found;
    },
    endRejections(at: number): void {
      for (const one of decisions)
        if (one.verdict === 'rejected' && one.at <= at - 720 * hour) one.isOver = true;
    },
    /** Ends the approvals that a full run could do everything for. */
    endApprovals(begun: readonly Decision[], settled: readonly RecordTypeName[]): void {
      for (const one of begun)
        if ([...one.holds].every(({ kind }) => settled.includes(kind))) one.isOver = true;
    },
    /** Ends what was done, is not wanted any more, or passed by an approval. */
    close(judged: readonly Judged[], closing: Closing): void {
      const { facts, settled, begun, isRead } = closing;
      for (const hold of open()) {
        const here = judged.filter(({ row }) => isAt(hold, row));
        const isHeld = here.some(({ row, is }) => is === 'held' && isSame(hold, row));
        const doneNow = sent.some(
          (one) =>
            one.run === facts.run &&
            one.state === 'acked' &&
            isOf(one, hold) &&
            one.part === hold.part &&
            wish(one) === wish(hold),
        );
        const { decision } = hold;
        const isDone = doneNow || (decision && isUsed(decision, hold, ['acked']));
        if (isDone && !isHeld) hold.isOpen = false;
        else if (decision && isUsed(decision, hold, ['acked', 'rejected']))
          hold.decision = undefined;
        const isWaiting = (at: GuardClass) =>
          judged.some(({ row, is }) => is === 'held' && row.guard === at && isOf(row, hold));
        // What a run could not plan may still be wanted.
        const isUnsure =
          hold.guard !== 'opt_out' &&
          (sent.some((one) => one.state === 'unknown' && isOf(one, hold)) ||
            (hold.guard === 'opt_in' && isWaiting('opt_out')));
        const wanted = here.filter(
          ({ row, is }) => is !== 'held' && is !== 'kept out' && wish(row) === wish(hold),
        );
        const tells = (hold.guard === 'opt_out' && isRead) || settled.includes(hold.kind);
        if (!tells || isHeld) continue;
        const isKnown = facts.mode === 'full' || facts.owned.has(hold.key);
        if (isKnown && !isUnsure && wanted.length === 0) hold.isOpen = false;
        const isReleased = hold.decision && begun.includes(hold.decision);
        if (facts.mode === 'full' && isReleased && !wanted.some(({ is }) => is === 'rejected'))
          hold.isOpen = false;
      }
    },
  };
}

interface Closing {
  facts: Facts;
  /** What a full run could do everything for. */
  settled: readonly RecordTypeName[];
  /** The approvals in force when the run began. */
  begun: readonly Decision[];
  /** Whether the CRM was read completely. */
  isRead: boolean;
}
