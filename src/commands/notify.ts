import { type Message, messageHead, type Sink, sinksOf } from '../worker/notifications/sinks.ts';
import { type Called, looking } from '../compose/command-options.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { systemClock } from '../http/system-clock.ts';
import { print } from '../app/snapshot-command.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { cell } from '../compose/output/text-style.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';

const options = {
  ...looking,
  'to <name>': 'only to this receiver: its name, or its kind if it has no name',
};

export const parts = {
  test: {
    options,
    help: 'Each receiver gets one message, whatever its events and level. Nothing is sent again.',
    run,
  },
} satisfies Record<string, CommandModule>;

/** The exit code is 1 if a receiver did not take it. */
async function run({ flags }: Called<typeof options>, shell: Shell): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const sinks = sinksOf(config, systemClock);
  try {
    const { to } = flags;
    if (sinks.length === 0) {
      const fix = 'add notices: { to: [ … ] }, as docs/notifications.md shows';
      throw new Invalid(`${config.file} names no receiver of notifications`, { fix });
    }
    const chosen = to === undefined ? sinks : sinks.filter(({ name }) => name === to);
    if (chosen.length === 0) {
      const fix = `use ${sinks.map(({ name }) => name).join(' or ')}`;
      throw new Invalid(`--to ${to}: notices has no receiver of this name`, { fix });
    }
    const reason = `this is a test of the notifications about the mirror ${config.mirror}`;
    const title = 'test of the notifications';
    const item = { type: 'mirror.test', level: 'info', title, reason, fix: '' } as const;
    const head = messageHead(config, { clock: systemClock, random: Math.random });
    const message: Message = { ...head, run: null, items: [item] };
    const results = await Promise.all(chosen.map(async (sink) => test(sink, message, shell)));
    const lines = results.map(({ name, host, sent, reason, fix }) => {
      const why = reason === null ? '' : `: ${renderProblem({ reason, fix: fix ?? undefined })}`;
      return cell(`${name} (${host}): ${sent ? 'sent' : 'not sent'}${why}`);
    });
    const code = exitCode(results.every(({ sent }) => sent) ? 'done' : 'failed');
    const document = { mirror: config.mirror, receivers: results };
    return print({ document, lines, code }, flags, shell);
  } finally {
    await Promise.all(sinks.map(async (sink) => sink.close()));
  }
}

async function test({ name, kind, host, deliver }: Sink, message: Message, shell: Shell) {
  const outcome = await deliver(message, shell.stop);
  const told = { name, kind, host };
  if (outcome.is === 'sent') return { ...told, sent: true, reason: outcome.but ?? null, fix: null };
  const again = `try again later; if it goes on, look whether this machine reaches ${host}`;
  const fix = outcome.is === 'refused' ? outcome.fix : again;
  return { ...told, sent: false, reason: outcome.reason, fix };
}
