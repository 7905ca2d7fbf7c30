/**
 * What operators can do in the console. Each action is a command line, so the command's own rules,
 * records and hand-over to a worker apply. The browser returns to the page of the form, which waits
 * according to what the command does (commands/table.ts):
 *
 *   a job         the page shows its progress and its answer
 *   runs          waits a moment; then the page shows its progress
 *   reads         waits for the answer of a process of its own
 *   otherwise     waits for the answer
 */
import { z } from 'zod';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Invalid } from '../domain/errors.ts';
import { byGuard } from '../domain/guard-classes.ts';
import type { Clock } from '../domain/clock.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { tickWords } from '../config/schema/cron-pattern.ts';
import { isVerified, verificationSection } from '../views/audit/log-verification.ts';
import { nobodyWords } from '../views/run/run-sections.ts';
import { listed, present, type Section, type Text } from '../views/sections.ts';
import { decisionLines, isDecision } from '../views/status/approval-sections.ts';
import { listedRuns } from '../views/status/run-history.ts';
import { runsSection } from '../views/status/run-sections.ts';
import { openLinks } from '../views/status/status-sections.ts';
import { checkSections, isCheck } from '../app/check/mapped-columns.ts';
import type { CommandAnswer } from '../compose/process-shell.ts';
import {
  documentIn,
  type Job,
  type JobKind,
  rehearsalSubject,
  runIn,
  undoSubject,
} from './view/jobs.ts';
import type { User } from './access/access-rules.ts';
import { pathOf } from './sign-in.ts';
import type { ConsoleMirror } from './view/console-mirror.ts';
import { formOf } from './view/layout.ts';
import { channelName } from './view/console-text.ts';
import { linkTo } from './view/page.ts';

type FormValues = Readonly<Record<string, string | undefined>>;

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

function flags(values: Readonly<Record<string, string | undefined>>): string[] {
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [`--${name}=${value}`],
  );
}

const ids = z.string().max(5_000).optional();
const decision = z.object({ plan: word, reason: text, channel: ids, op: choice, guard: choice });

const peopleNamed = 100;

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

function undoing(agreed: (form: z.infer<typeof sending>) => Record<string, string>): Action {
  return action(sending, (form) => {
    const { run, reason } = form;
    return ['undo', run, ...asDocument, ...flags({ ...agreed(form), reason })];
  });
}

const asDocument = ['--json', '--quiet'];
const asPlan = ['--dry-run', '--json', '--addresses'];
const resolution = z.object({ channel: text, reason: text, evidence: text });

/** Every action by the name in its address. */
export const actions: Readonly<Record<string, Action>> = {
  pause: action(z.object({ reason: text }), (of) => ['pause', ...flags(of)]),
  'pause-stop': action(z.object({ reason: text }), (of) => ['pause', '--stop', ...flags(of)]),
  resume: action(z.object({ reason: why }), (of) => ['resume', ...flags(of)]),
  'run-full': action(z.object({}), () => ['sync', ...asDocument]),
  'run-fast': action(z.object({}), () => ['sync', '--fast', ...asDocument]),
  approve: action(decision, ({ plan, ...of }) => ['approve', plan, '--json', ...flags(of)]),
  reject: action(decision, ({ plan, ...of }) => ['reject', plan, '--json', ...flags(of)]),
  retry: action(z.object({ person: word.optional(), reason: why }), ({ person, reason }) => [
    'retry',
    ...(person === undefined ? [] : [person]),
    ...flags({ reason }),
  ]),
  one: action(z.object({ person: word }), ({ person }) => [
    'sync',
    `--person=${person}`,
    ...asDocument,
  ]),
  'one-id': action(z.object({ id: recordId }), ({ id }) => ['sync', `--id=${id}`, ...asDocument]),
  verify: action(z.object({}), () => ['audit', 'verify', '--json']),
  check: action(z.object({}), () => ['check', '--json']),
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
  'undo-plan': action(z.object({ run: word }), ({ run }) => ['undo', run, ...asPlan]),
  undo: undoing(({ plan: agree }) => ({ agree })),
  'undo-approve': undoing(({ plan }) => ({ agree: plan, approve: plan })),
  resolve: action(
    resolution.extend({ person: word, to: z.enum(['in', 'out']) }),
    ({ person, to, ...of }) => ['resolve', person, `--${to}`, ...flags(of)],
  ),
};

/** The action that stops a job; it is no command. */
export const stopAction = 'stop';

/** The actions that begin a job, whose page shows its progress and its answer (view/jobs.ts). */
const jobActions: Readonly<Record<string, JobKind>> = {
  rehearse: 'rehearse',
  'undo-plan': 'undo-plan',
  undo: 'undo',
  'undo-approve': 'undo',
};

const form = z.record(z.string(), z.string());
/** How long an answer waits for a run or a job that may end at once, in milliseconds. */
const waitMs = 1_500;

interface Acting {
  name: string;
  user: User;
  mirror: ConsoleMirror;
  clock: Clock;
}

/** What the page says next; nothing if it shows the answer itself. */
type Outcome = { code: number; sections: Section[] } | undefined;

/** Does what a form of an operator asks for, and sends the browser back. */
export async function act(
  request: FastifyRequest,
  reply: FastifyReply,
  acting: Acting,
): Promise<void> {
  const { back = linkTo(acting), csrf: _, ...values } = formOf(request, form);
  const done = await outcomeOf(acting, values).catch((error: unknown) => {
    if (error instanceof Invalid) return saying(exitCode('invalid'), [error.message]);
    throw error;
  });
  if (done) {
    const { sections } = done;
    const otherwise = neutral.has(done.code) ? 'busy' : 'bad';
    const kind = done.code === 0 ? 'good' : otherwise;
    request.session.set('flash', { kind, sections });
  }
  await reply.redirect(pathOf(back), 303);
}

/** Exit codes that are no failure, and are not shown as one. */
const neutral: ReadonlySet<number> = new Set(
  (['held', 'rejected', 'changes'] as const).map(exitCode),
);

async function outcomeOf(acting: Acting, values: FormValues): Promise<Outcome> {
  const { name, user, mirror, clock } = acting;
  if (name === stopAction) {
    mirror.jobs.get(values['subject'] ?? '')?.stop?.();
    return undefined;
  }
  const commands = commandLines(name, values);
  const [argv = []] = commands;
  if (name in jobActions) {
    const job = startJob(acting, argv, values);
    if (!job) return saying(exitCode('held'), ['This is in progress already.']);
    // The plan of an undo is made anew if the undo was refused, or a guard has held a part of it.
    const ended = job.then(async (before) => {
      const { answer, kind } = before;
      if (kind !== 'undo' || !answer || !undecided.has(answer.code)) return undefined;
      const again = { ...acting, name: 'undo-plan' };
      return startJob(again, commandLines(again.name, values)[0] ?? [], values, before);
    });
    await soon(ended, clock);
    return undefined;
  }
  const effect = mirror.effectOf(argv);
  if (effect === 'reads') {
    const isNaming = name === 'check' && user.seesAddresses;
    const answer = await mirror.runApart(isNaming ? [...argv, '--addresses'] : argv);
    const found = documentIn(answer, (value) => isCheck(value) || isVerified(value));
    const { code } = answer;
    if (Array.isArray(found)) return saying(code, found);
    if (isCheck(found)) return { code, sections: checkSections(found, true) };
    const log = `The audit log of ${mirror.config.mirror}`;
    return { code, sections: [verificationSection(log, found)] };
  }
  if (name === 'approve' || name === 'reject') return decide(acting, commands, values);
  const answered = mirror.run(user, argv);
  if (effect !== 'run') return answered.then(({ code, lines }) => saying(code, lines));
  const overview = { page: '', text: 'The overview' };
  const begun = saying(0, [['The run has begun. ', overview, ' shows its progress.']]);
  return (
    (await soon(
      answered.then(async (answer) => showRun(acting, answer)),
      clock,
    )) ?? begun
  );
}

function saying(code: number, lines: Section['lines']): { code: number; sections: Section[] } {
  return { code, sections: [{ lines }] };
}

/** Shows the run as a row among others, and links what it has left to do. */
async function showRun({ user, mirror }: Acting, answer: CommandAnswer) {
  const found = runIn(answer);
  const { code } = answer;
  if (Array.isArray(found)) return saying(code, found);
  const lines = present<Text>(nobodyWords(found), listed(openLinks(mirror.status().status)));
  const row = await mirror.read(user, (seen) => {
    const kept = seen.snapshot?.runs.get(found.run);
    const runs = listedRuns(seen, kept ? [kept] : [], 1);
    return runsSection(runs, { now: seen.now, none: '' });
  });
  return { code, sections: [row, { lines }] };
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

function startJob(
  { name, user, mirror }: Acting,
  argv: readonly string[],
  values: FormValues,
  before?: Job,
) {
  const kind = jobActions[name];
  if (!kind) throw new Error(`${name} is no job`);
  const isReading = mirror.effectOf(argv) === 'reads';
  return mirror.jobs.begin({
    kind,
    subject: kind === 'rehearse' ? rehearsalSubject : undoSubject(values['run'] ?? ''),
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

/** Returns the values of the boxes of a form, such as channel=ch_news, that are ticked or not. */
function boxesOf(values: FormValues, isTicked: boolean): [option: string, value: string][] {
  const keys = Object.keys(values).filter((key) => key.startsWith('part-'));
  return keys
    .filter((key) => (values[key.replace('part', 'tick')] !== undefined) === isTicked)
    .map((key) => {
      const [option = '', value = ''] = (values[key] ?? '').split('=', 2);
      return [option, value];
    });
}

/**
 * Returns the command lines of a form, each of which is done if those before it did not fail. Of a
 * decision with several boxes, the ticked ones are decided, and then perhaps all the others.
 */
function commandLines(name: string, values: FormValues): string[][] {
  const argvOf = (action: string, form: FormValues): string[] => actions[action]?.(form) ?? [];
  const ticked = boxesOf(values, true);
  // All of it is no part.
  if (boxesOf(values, false).length === 0) return [argvOf(name, values)];
  const [[option] = []] = ticked;
  if (option === undefined) throw new Invalid('nothing is ticked', { fix: 'tick what is meant' });
  const part = { [option]: ticked.map(([, value]) => value).join(',') };
  const first = argvOf(name, { ...values, ...part });
  return values['rest'] === 'reject' ? [first, argvOf('reject', values)] : [first];
}

/** Returns what the decisions answer; an approval also names the next run. */
async function decide(acting: Acting, commands: string[][], values: FormValues): Promise<Outcome> {
  const { name, user, mirror } = acting;
  const others = boxesOf(values, false).map(([, part]) => channelName({ mirror }, part));
  const unticked = others.length === 0 ? [] : [`Not ticked: ${others.join(', ')}.`];
  const lines: string[] = [];
  // Only full runs do what follows from somebody's absence.
  let needsFull = false;
  for (const [at, argv] of commands.entries()) {
    const answer = await mirror.run(user, argv);
    const { code } = answer;
    const found = documentIn(answer, isDecision);
    if (Array.isArray(found)) return saying(code, [...lines, ...found, ...unticked]);
    // What is still open is decided next, and what was approved is left out of the rest.
    const rest = at === commands.length - 1 ? found.rest : byGuard(() => 0);
    const { uncreated = 0, unknown = [] } = found.leftOut ?? {};
    const approved = at > 0 ? 0 : (found.leftOut?.approved ?? 0);
    lines.push(...decisionLines({ ...found, rest, leftOut: { uncreated, unknown, approved } }));
    if (uncreated > 0) lines.push(...unticked);
    needsFull ||= argv[0] === 'approve' && found.held.delete > 0;
    if (code !== 0) return saying(code, lines);
  }
  if (commands.length > 1)
    lines.push('A person with changes in several channels may count in both.');
  if (name !== 'approve') return saying(0, lines);
  const { due } = (await mirror.statusAndNext()).next;
  const next = due.find(({ run }) => run === 'full' || (run === 'fast' && !needsFull));
  const last = next
    ? `The next scheduled run that does it: ${tickWords(next.run)}, ${next.at}.`
    : `${needsFull ? 'No full run' : 'Nothing'} is scheduled: “Run now”, below, starts a run.`;
  return saying(0, [...lines, last]);
}
