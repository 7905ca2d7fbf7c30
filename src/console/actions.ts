/**
 * What operators can do in the console. Each action is a command line, so the command's own rules,
 * records and hand-over to a worker apply.
 */
import { z } from 'zod';
import { Invalid } from '../domain/errors.ts';
import { type JobKind, rehearsalSubject, undoSubject } from './jobs/jobs.ts';

/** The values of a form. */
export type FormValues = Readonly<Record<string, string | undefined>>;

/** A word that cannot be read as an option of the command line. */
const word = z
  .string()
  .trim()
  .min(1, 'is missing')
  .max(400, 'is too long')
  .regex(/^[^-\s]\S*$/, 'must be one word that does not begin with -');
/** A text that is passed as the value of one option. */
const text = z.string().trim().min(1, 'is missing').max(300, 'is too long');
/** The id of a record, which may contain anything, spaces at its ends too. */
const recordId = z.string().min(1, 'is missing').max(1_000, 'is too long');
const choice = z.string().max(200).optional();
/** A reason that may be left out. */
const why = z.string().trim().max(300, 'is too long').optional();

/** Returns the command line for the values of a form. Throws Invalid for one it cannot use. */
type Action = (values: FormValues) => string[];

function action<Form>(form: z.ZodType<Form>, argv: (form: Form) => string[]): Action {
  return (values) => {
    const read = form.safeParse(values);
    if (read.success) return argv(read.data);
    const [issue] = read.error.issues;
    const field = issue?.path.join('.') ?? '';
    throw new Invalid(`${field}: ${issue?.message ?? 'cannot be used'}`, {
      fix: 'go back and correct it',
    });
  };
}

/** Returns `--name=value` for each value that is given. */
function flags(values: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`--${name}=${value}`],
  );
}

const part = { channel: choice, op: choice, guard: choice };

/** How many people the page of a rehearsal names. */
const peopleNamed = 100;

/** Rate limits, separated by spaces or commas. */
const limits = z
  .string()
  .max(1000, 'is too long')
  .transform((given) => given.split(/[\s,;]+/).filter((limit) => limit !== ''))
  .refine(
    (given) => given.every((limit) => /^[\w.*-]+=\d+\/\d+$/.test(limit)),
    'must be like contacts.enrol=30/60, which means 30 requests in 60 seconds',
  );

const sending = z.object({
  run: word,
  plan: word,
  reason: text,
  agreed: z.literal('yes', 'tick the box if you agree'),
});

/** Every action by the name in its address. */
export const actions: Readonly<Record<string, Action>> = {
  pause: action(z.object({ reason: text }), ({ reason }) => ['pause', ...flags({ reason })]),
  resume: action(z.object({ reason: why }), ({ reason }) => ['resume', ...flags({ reason })]),
  'run-full': action(z.object({}), () => ['sync']),
  'run-fast': action(z.object({}), () => ['sync', '--fast']),
  approve: action(
    z.object({ plan: word, reason: text, ...part }),
    ({ plan, reason, channel, op, guard }) => [
      'approve',
      plan,
      ...flags({ reason, channel, op, guard }),
    ],
  ),
  reject: action(
    z.object({ plan: word, reason: text, ...part }),
    ({ plan, reason, channel, op, guard }) => [
      'reject',
      plan,
      ...flags({ reason, channel, op, guard }),
    ],
  ),
  retry: action(z.object({ person: word.optional(), reason: why }), ({ person, reason }) => [
    'retry',
    ...(person === undefined ? [] : [person]),
    ...flags({ reason }),
  ]),
  one: action(z.object({ person: word }), ({ person }) => ['one', person]),
  'one-id': action(z.object({ id: recordId }), ({ id }) => ['one', `--id=${id}`]),
  verify: action(z.object({}), () => ['audit', 'verify']),
  check: action(z.object({}), () => ['check']),
  rehearse: action(
    z.object({ mode: z.enum(['full', 'fast']), limits: limits.default([]) }),
    ({ mode, limits: given }) => [
      'rehearse',
      '--json',
      '--addresses',
      `--most=${peopleNamed}`,
      ...(mode === 'fast' ? ['--fast'] : []),
      ...given.map((limit) => `--limit=${limit}`),
    ],
  ),
  'undo-plan': action(z.object({ run: word }), ({ run }) => [
    'undo',
    run,
    '--plan',
    '--json',
    '--addresses',
  ]),
  undo: action(sending, ({ run, plan, reason }) => [
    'undo',
    run,
    '--json',
    '--quiet',
    ...flags({ agree: plan, reason }),
  ]),
  'undo-approve': action(sending, ({ run, plan, reason }) => [
    'undo',
    run,
    '--json',
    '--quiet',
    ...flags({ agree: plan, approve: plan, reason }),
  ]),
  resolve: action(
    z.object({
      person: word,
      channel: text,
      to: z.enum(['in', 'out']),
      reason: text,
      evidence: text,
    }),
    ({ person, channel, to, reason, evidence }) => [
      'resolve',
      person,
      `--${to}`,
      ...flags({ channel, reason, evidence }),
    ],
  ),
};

/** The action that stops a job; it is no command. */
export const stopAction = 'stop';

/** The actions that begin a job, whose page shows its progress and its answer (jobs/jobs.ts). */
export const jobActions: Readonly<Record<string, JobAction>> = {
  rehearse: { kind: 'rehearse', isReading: true, subjectOf: () => rehearsalSubject },
  'undo-plan': { kind: 'undo-plan', isReading: true, subjectOf: undoSubjectOf },
  undo: { kind: 'undo', isReading: false, subjectOf: undoSubjectOf },
  'undo-approve': { kind: 'undo', isReading: false, subjectOf: undoSubjectOf },
};

interface JobAction {
  kind: JobKind;
  /** Whether it only reads: then it runs in a process of its own, and can be stopped. */
  isReading: boolean;
  subjectOf(values: FormValues): string;
}

function undoSubjectOf({ run = '' }: FormValues): string {
  return undoSubject(run);
}

/** The actions that may take hours: the console shows their progress instead of waiting. */
export const runActions: ReadonlySet<string> = new Set(['run-full', 'run-fast', 'one', 'one-id']);

/** The actions that only read and may take long: they run in a process of their own. */
export const apartActions: ReadonlySet<string> = new Set(['verify', 'check']);
