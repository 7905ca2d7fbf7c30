/**
 * One life of a process: everything it does with the world outside is a touch, and at any touch it
 * may be killed. A dead process does nothing more; what it has sent is under way all the same.
 */
import type { AuditTrail } from '../../../src/store/memory/audit-trail.ts';
import type { Memory } from '../../../src/store/memory/memory.ts';
import type { Clock } from '../../../src/domain/clock.ts';
import type { DoNotContactList } from '../../../src/store/memory/do-not-contact.ts';
import type { Snapshot } from '../../../src/store/snapshot.ts';

export interface Life {
  readonly dead: boolean;
  /** It has ended by itself: what is still under way touches nothing more. */
  end(): void;
  /** Resolves when it is killed. */
  readonly died: Promise<'killed'>;
  /** One more touch. Throws when it dies of it, or is dead. */
  touch(): void;
  /** The same, for what can wait for ever: a dead process is never answered. */
  wait<T>(answer: Promise<T>): Promise<T>;
}

/** `at` is told the number of each touch: what else happens then, before the process goes on. */
export function createLife(killedAt: number | undefined, at: (touch: number) => void): Life {
  const { promise: died, resolve: die } = Promise.withResolvers<'killed'>();
  const never = new Promise<never>(() => undefined);
  let touches = 0;
  let dead = false;
  let over = false;

  function touch(): void {
    if (over) return;
    if (!dead) {
      touches += 1;
      at(touches);
      dead = touches === killedAt;
      if (dead) die('killed');
    }
    if (dead) throw new Error('this process is dead');
  }

  return {
    get dead() {
      return dead;
    },
    end: () => void (over = !dead),
    died,
    touch,
    async wait(answer) {
      const settled = await answer.then(
        (value) => ({ value }),
        (reason: unknown) => ({ reason }),
      );
      try {
        touch();
      } catch {
        return never;
      }
      if ('value' in settled) return settled.value;
      throw settled.reason;
    },
  };
}

/** The world's clock as the process sees it. */
export function clockOf(life: Life, clock: Clock, ahead: () => number): Clock {
  return {
    now: () => clock.now() + ahead(),
    monotonic: clock.monotonic,
    sleep: (ms, signal) => life.wait(clock.sleep(ms, signal)),
  };
}

/** Every use of what is kept is a touch; staging is a process's own business. */
export function snapshotOf(life: Life, snapshot: Snapshot): Snapshot {
  const { meta, recorded, journal, runs, problems, purge } = snapshot;
  return {
    ...snapshot,
    meta: touching(life, meta),
    recorded: touching(life, recorded),
    journal: touching(life, journal),
    runs: touching(life, runs),
    problems: touching(life, problems),
    purge: touching(life, purge),
    stage(work) {
      if (life.dead) life.touch();
      snapshot.stage(work);
    },
    transaction(work) {
      life.touch();
      const done = snapshot.transaction(work);
      life.touch();
      return done;
    },
  };
}

/** Every word to the memory is one too, before it is written and after. */
export function memoryOf(life: Life, memory: Memory): Memory {
  return {
    ...memory,
    list: () => ledgerOf(life, memory.list()),
    forget(person, said) {
      life.touch();
      memory.forget(person, said);
      life.touch();
    },
  };
}

function ledgerOf(life: Life, ledger: DoNotContactList): DoNotContactList {
  return {
    ...ledger,
    concerning(who) {
      if (life.dead) life.touch();
      return ledger.concerning(who);
    },
    write(remarks, at) {
      const all = [...remarks];
      if (all.length === 0) return;
      life.touch();
      ledger.write(all, at);
      life.touch();
    },
  };
}

/** And so is every entry of the audit log. */
export function auditOf(life: Life, { log, ...trail }: AuditTrail): AuditTrail {
  const touched =
    <Given extends unknown[]>(work: (...given: Given) => void) =>
    (...given: Given): void => {
      life.touch();
      work(...given);
      life.touch();
    };
  const { append, checkpoint } = log;
  const words = {
    append: touched(append),
    checkpoint: touched(checkpoint),
  };
  return { ...trail, log: { ...log, ...words } };
}

function touching<Part extends object>(life: Life, part: Part): Part {
  return new Proxy(part, {
    get(target, name) {
      const own: unknown = Reflect.get(target, name);
      if (typeof own !== 'function') return own;
      return (...given: unknown[]): unknown => {
        life.touch();
        const done: unknown = Reflect.apply(own, target, given);
        return done;
      };
    },
  });
}
