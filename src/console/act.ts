/**
 * Does what a form asks for, and returns to the page of the form:
 *
 *   a job (jobActions)             the page shows its progress and its answer
 *   a run (runActions)             waits a moment; then the page shows its progress
 *   a reading (apartActions)       waits for the answer of a process of its own
 *   anything else                  waits for the answer
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import { Invalid } from '../domain/errors.ts';
import type { Clock } from '../domain/clock.ts';
import { exitCode } from '../compose/output/exit-codes.ts';
import type { FlashKind, User } from './access/visitor.ts';
import {
  actions,
  apartActions,
  type FormValues,
  jobActions,
  runActions,
  stopAction,
} from './actions.ts';
import { answerLines } from './decision-notice.ts';
import { pathOf } from './sign-in.ts';
import type { CommandResult, ConsoleMirror } from './view/console-mirror.ts';
import type { Job } from './jobs/jobs.ts';
import { formOf } from './view/form-values.ts';
import { runBegun } from './view/layout.ts';
import { linkTo } from './view/page.ts';

const form = z.record(z.string(), z.string());
/** How long an answer waits for a run or a job that may end at once, in milliseconds. */
const waitMs = 1_500;

/** An action of an operator. */
interface Acting {
  /** The name of the action. */
  name: string;
  user: User;
  mirror: ConsoleMirror;
  clock: Clock;
}

/** What the page says next; nothing if it shows the answer itself. */
type Outcome = Pick<CommandResult, 'code' | 'lines'> | undefined;

/** Does what a form of an operator asks for, and sends the browser back. */
export async function act(
  request: FastifyRequest,
  reply: FastifyReply,
  acting: Acting,
): Promise<void> {
  const { back = linkTo(acting), csrf: _, ...values } = formOf(request, form);
  const done = await outcomeOf(acting, values);
  if (done) {
    const read = async () => acting.mirror.statusAndNext();
    const lines = await answerLines(acting.name, done, read);
    request.session.set('flash', { kind: kindOf(done.code), lines });
  }
  await reply.redirect(pathOf(back), 303);
}

const neutral: ReadonlySet<number> = new Set(
  (['held', 'rejected', 'changes'] as const).map(exitCode),
);

/** Returns how an answer is shown: an exit code that is no failure is not shown as one. */
function kindOf(code: number): FlashKind {
  if (code === 0) return 'good';
  return neutral.has(code) ? 'busy' : 'bad';
}

async function outcomeOf(acting: Acting, values: FormValues): Promise<Outcome> {
  const { name, user, mirror, clock } = acting;
  if (name === stopAction) return stopJob(mirror, values);
  let argv: string[];
  try {
    argv = actions[name]?.(values) ?? [];
  } catch (error) {
    if (error instanceof Invalid) return { code: exitCode('invalid'), lines: [error.message] };
    throw error;
  }
  if (name in jobActions) return beginJob(acting, { argv, values });
  const named = name === 'check' && user.seesAddresses ? [...argv, '--addresses'] : argv;
  const done = apartActions.has(name) ? mirror.runApart(named) : mirror.run(user, argv);
  if (!runActions.has(name)) return done;
  const begun = { code: 0, lines: [runBegun] };
  return (await soon(done, clock)) ?? begun;
}

/** Returns what the promise is resolved with, or undefined if that takes long. */
async function soon<T>(done: Promise<T>, clock: Clock): Promise<T | undefined> {
  const over = new AbortController();
  const waited = clock.sleep(waitMs, over.signal).then(
    () => undefined,
    async () => done,
  );
  return Promise.race([done.finally(() => over.abort()), waited]);
}

function stopJob({ jobs }: ConsoleMirror, { subject = '' }: FormValues): Outcome {
  jobs.get(subject)?.stop?.();
  return undefined;
}

interface Called {
  argv: readonly string[];
  values: FormValues;
  /** The job from which this one follows. */
  before?: Job;
}

/** Begins a job. The page of its subject shows the answer. */
async function beginJob(acting: Acting, called: Called): Promise<Outcome> {
  const job = startJob(acting, called);
  if (!job) return { code: exitCode('held'), lines: ['This is in progress already.'] };
  await soon(
    job.then((ended) => planAgain(acting, ended, called.values)),
    acting.clock,
  );
  return undefined;
}

function startJob({ name, user, mirror }: Acting, { argv, values, before }: Called) {
  const about = jobActions[name];
  if (!about) throw new Error(`${name} is no job`);
  const { kind, isReading, subjectOf } = about;
  return mirror.jobs.begin({
    kind,
    subject: subjectOf(values),
    by: user.name,
    argv,
    before,
    isStoppable: isReading,
    work: async (heard, stop) =>
      isReading ? mirror.runApart(argv, heard, stop) : mirror.run(user, argv),
  });
}

/** The exit codes with which an undo has left something to decide: another plan, or an approval. */
const undecided: ReadonlySet<number> = new Set((['invalid', 'held'] as const).map(exitCode));

/** Makes the plan of an undo anew if the undo was refused, or a guard has held a part of it. */
async function planAgain(acting: Acting, before: Job, values: FormValues): Promise<void> {
  const { answer, kind } = before;
  if (kind !== 'undo' || !answer || !undecided.has(answer.code)) return;
  const name = 'undo-plan';
  await startJob({ ...acting, name }, { argv: actions[name]?.(values) ?? [], values, before });
}
