/**
 * The conversation of `init` on a terminal. It fills in the flags of a command line, question by
 * question, so that the same can be done again without it. Nothing is written before its end.
 */
import { existsSync } from 'node:fs';
import type { Shell } from '../../../compose/process-shell.ts';
import { codeOfStop, exitCode } from '../../../compose/output/exit-codes.ts';
import type { Chosen } from '../column-words.ts';
import { described } from '../describe-proposal.ts';
import { columnsIn } from '../flag-lists.ts';
import { choicesOf, commandLine, type Flags } from '../init-flags.ts';
import { platformChannels } from '../platform-channels.ts';
import { previewOf } from '../preview.ts';
import { type Proposal, propose } from '../propose-columns.ts';
import type { Sample } from '../sample/sample.ts';
import { Undecided } from '../sample/undecided.ts';
import { type Draft, mirrorName, nameFault, writeConfiguration } from '../write-configuration.ts';
import { locate } from './choose-source.ts';
import {
  askChannels,
  askOptOuts,
  askRole,
  decided,
  nameWords,
  type Subject,
  withoutWords,
} from './decide-columns.ts';
import { Cancelled, createTalk, type Talk } from './talk.ts';

/** Asks, writes, checks, and prints the command line that does the same. */
export async function converse(given: Flags, shell: Shell): Promise<number> {
  const talk = createTalk('crm-mirror init', shell.stop);
  const found = await agreed(given, talk, shell).catch((error: unknown) => {
    if (!(error instanceof Cancelled) && !shell.stop.aborted) throw error;
    talk.end('Nothing was written.', 'cancelled');
    return undefined;
  });
  if (!found) return shell.stop.aborted ? codeOfStop(shell.stop.reason) : exitCode('interrupted');
  const { flags, draft } = found;
  talk.end('Nothing more to ask.', 'done');
  const code = await writeConfiguration(draft, shell);
  shell.print('');
  shell.print('The same without questions:');
  shell.print(`  ${commandLine(flags)}`);
  return code;
}

async function agreed(
  asGiven: Flags,
  talk: Talk,
  shell: Shell,
): Promise<{ flags: Flags; draft: Draft }> {
  const { flags: located, sample } = await locate(asGiven, talk, shell);
  const { channels: platform, note } = await platformChannels(shell);
  if (note !== undefined) talk.warn(note);
  const given = withNamesOf(located, sample);
  const { flags, proposal } = await settled(given, { sample, platform, talk });
  const output = await askOutput(flags.output, talk);
  const mirror = await talk.ask('What is the name of this mirror?', {
    initial: flags.mirror ?? mirrorName(sample.origin),
    fault: nameFault,
  });
  const draft = { output, mirror, sample, proposal };
  const { named: source = flags.source } = sample;
  return { flags: { ...flags, ...(source !== undefined && { source }), output, mirror }, draft };
}

/** Returns the flags with a value for each column, so that an answer can take back one of them. */
function withNamesOf<T extends Flags>(flags: T, { columns }: Sample): T {
  const { unsubscribed, unused = [] } = flags;
  const namesIn = (lists: readonly string[]) => lists.flatMap((list) => columnsIn(list, columns));
  return {
    ...flags,
    unused: namesIn(unused),
    ...(unsubscribed && { unsubscribed: namesIn(unsubscribed) }),
  };
}

interface Settled {
  flags: Flags;
  proposal: Proposal;
}

/** Asks until everything is decided and the person accepts the preview. */
async function settled(given: Flags, on: Subject): Promise<Settled> {
  const asked = new Set<string>();
  let flags = given;
  for (;;) {
    const { proposal, ...rest } = await complete(flags, on, asked);
    ({ flags } = rest);
    on.talk.show(described(on.sample, proposal, true));
    const showing = { asTheyAre: true, width: on.talk.width() };
    on.talk.show(['', ...previewOf(on.sample, proposal, showing)]);
    const changes = [
      { value: 'write', label: 'Yes, write it' },
      ...['id', 'email', 'unsubscribed', 'deleted', 'channels', 'words'].map((value) => ({
        value,
        label: `Change ${value}`,
      })),
    ];
    const wish = await on.talk.choose('Is this right?', changes);
    if (wish === 'write') return { flags, proposal };
    flags = await changed(flags, { wish, proposal, on, asked });
  }
}

/** Asks what is not decided, and for the meaning of each unknown word, once for each column. */
async function complete(given: Flags, on: Subject, asked: Set<string>): Promise<Settled> {
  let flags = given;
  for (;;) {
    try {
      const { platform, sample } = on;
      const proposal = propose(sample, choicesOf(flags, { asTheyAre: true, platform }));
      const strange = proposal.channels.find(
        ({ column, unknown }) => unknown.length > 0 && !asked.has(column.name),
      );
      if (!strange) return { flags, proposal };
      asked.add(strange.column.name);
      const question = { about: 'words', use: 'subscription', ...strange } as const;
      flags = await nameWords(flags, question, on);
    } catch (error) {
      if (!(error instanceof Undecided)) throw error;
      on.talk.warn(error.problems[0].reason);
      flags = await decided(flags, error.question, on);
    }
  }
}

interface Change {
  wish: string;
  proposal: Proposal;
  on: Subject;
  asked: Set<string>;
}

async function changed(flags: Flags, { wish, proposal, on, asked }: Change): Promise<Flags> {
  if (wish === 'channels') return askChannels({ ...flags, channel: [] }, on);
  if (wish === 'words') {
    asked.clear();
    const { words: _words, ...rest } = flags;
    return { ...rest, ...explicit(proposal) };
  }
  if (wish === 'unsubscribed') {
    const present = proposal.unsubscribed.map(({ column }) => column.name);
    return askOptOuts(flags, on, present);
  }
  const roles = ['id', 'email', 'deleted'] as const;
  const role = roles.find((one) => one === wish) ?? 'id';
  const initial = proposal[role]?.column.name;
  const chosen = await askRole(role, on, { among: [], initial });
  return { ...withoutWords(flags, chosen === initial ? [] : [initial]), [role]: chosen };
}

/** Returns the flags that name every column of a proposal. */
function explicit({ id, email, unsubscribed, deleted, channels }: Proposal) {
  const nameOf = (chosen: Chosen | undefined): string | false => chosen?.column.name ?? false;
  return {
    id: id.column.name,
    email: email.column.name,
    unsubscribed:
      unsubscribed.length > 0 ? unsubscribed.map(({ column }) => column.name) : (false as const),
    deleted: nameOf(deleted),
    channel: channels.map((one) => `${one.id}=${one.column.name}`),
  };
}

async function askOutput(initial: string, talk: Talk): Promise<string> {
  const fault = (path: string) =>
    existsSync(path) ? 'this file exists, and init overwrites nothing' : undefined;
  return talk.ask('Where is the configuration written to?', { initial, fault });
}
