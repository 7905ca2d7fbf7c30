/** What checkers are given: what a run was, what it sent, and all that has happened. */
import type { LoggedRequest } from '../../../src/emulator/ui/dashboard.ts';
import type { GuardClass } from '../../../src/domain/guard-classes.ts';
import type { VirtualClock } from '../../support/waiting.ts';
import type { Absences } from './absence.ts';
import type { Approval, Approvals } from './approvals.ts';
import type { Asked } from './asked.ts';
import type { AuditAccount } from './audit-checks.ts';
import type { Canaries } from './canary-checks.ts';
import type { Reading } from '../world/crm.ts';
import type { Erasures } from './erasures.ts';
import type { Memories } from './expected-memory.ts';
import type { Judge } from './rules.ts';
import type { Rejection, Rejections } from './rejections.ts';
import type { Standing } from './held-changes.ts';
import type { RunStep } from '../story/steps.ts';
import type { Settlements } from './settlements.ts';
import type { Statements } from './stated-opt-outs.ts';
import type { Story } from '../story/story.ts';
import type { Undone } from './undone.ts';
import type { Unmanaged } from './unmanaged.ts';
import type { Unanswered } from './unanswered.ts';
import type { Witness } from '../world/platform-history.ts';

/** One run of one process, as seen from outside. */
export interface Outing {
  /** By the clock that never jumps. */
  startedAt: number;
  /** By the clock of the mirror. */
  ourStart: number;
  /** Holds the people this run has changed, of those that a guard counts and nobody approved. */
  through: Record<GuardClass, Set<string>>;
  /** Addresses that this run opts in, and whose opt-out the CRM had stated. */
  withdrawn: Set<string>;
  /** The classes of which something passed since it was approved, with whom that has changed. */
  approved: Map<GuardClass, readonly string[]>;
  /** Approved stated opt-outs (address, channel) whose contact was gone. */
  missed: Set<string>;
  /** In force when it began. */
  approvals: readonly Approval[];
  /** Rejected when it began. */
  rejected: readonly Rejection[];
  /** Whether a first load was over by then. */
  isLoaded: boolean;
  /** It forgets this address, and does nothing else. */
  forgets: string | undefined;
  /** It undoes an earlier run. */
  undoes: boolean;
  mode: 'full' | 'fast';
  only: RunStep['only'];
  /** How it maps the contacts. */
  mapping: string | undefined;
  /** It is limited to these addresses; undefined: it may change everybody. */
  chosen: ReadonlySet<string> | undefined;
  /** Another key was used before: it may have to prove whose this one is. */
  proves: boolean;
  people: Reading;
  templates: Reading;
  /** Contacts by id, with the address under which the platform showed each to it last. */
  shown: Map<string, string>;
  /** Enrolments that were acknowledged: address, channel, subscription. */
  answered: string[];
  /** The platform has refused its key. */
  refused: boolean;
  /** Requests that left all the same. */
  leftRefused: number;
}

/** `at`: by the clock that never jumps. */
export interface ReadBack {
  at: number;
  isAnswered: boolean;
}

/** A request that has reached the platform. */
export interface Arrival {
  outing: Outing;
  entry: LoggedRequest;
  /** What its body names. */
  asks: Asked;
  /** When it left, by the clock that never jumps. */
  sentAt: number;
}

/** One address, one channel, and since when its state had to be known. */
export interface About {
  key: string;
  channel: string;
  since: number;
}

/** What is known from outside of all that has happened. */
export interface Known {
  story: Story;
  clock: Pick<VirtualClock, 'now' | 'monotonic'>;
  witness: Witness;
  memories: Memories;
  absences: Absences;
  approvals: Approvals;
  standing: Standing;
  canaries: Canaries;
  rejections: Rejections;
  /** Opt-outs (address, channel) that an earlier run has read, and that were not held then. */
  letThrough: Set<string>;
  erasures: Erasures;
  audit: AuditAccount;
  statements: Statements;
  settlements: Settlements;
  undone: Undone;
  unmanaged: Unmanaged;
  unanswered: Pick<Unanswered, 'has' | 'hadBefore'>;
  /** Of each contact, how it was read by its id for the first time. */
  readBacks: Map<string, ReadBack>;
  /** Enrolments (address, channel, subscription) that the platform has refused. */
  refusals: Set<string>;
  judge: Judge;
}

const quarter = 15 * 60_000;
/** All that a fresh look, a slow answer and the next step may take. */
const travel = 30_000;

/** What happened before had to be known. */
export function horizon({ outing, sentAt }: Pick<Arrival, 'outing' | 'sentAt'>): number {
  return Math.max(outing.startedAt, sentAt - quarter - travel);
}
