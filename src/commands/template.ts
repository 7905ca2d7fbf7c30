import { existsSync } from 'node:fs';
import type { Command } from 'commander';
import { Invalid } from '../domain/errors.ts';
import type { Template } from '../platform/answer-schemas.ts';
import { testSendBody } from '../platform/request-schemas.ts';
import { openSnapshot } from '../store/snapshot.ts';
import { cell } from '../compose/output/visible-text.ts';
import { once, reach, type Reached, type ReachFlags } from '../app/platform-command.ts';
import { lookOptions } from '../app/snapshot-command.ts';
import type { CommandPart, Shell } from '../compose/process-shell.ts';

export const parts: readonly CommandPart[] = [
  {
    name: 'test',
    summary: 'send one template to an address',
    options: (command) => {
      lookOptions(command)
        .argument(
          '<key>',
          "the template's key in the source, or its exact name or id on the platform",
        )
        .requiredOption('--to <address>', 'who gets it')
        .option('--var <name=value...>', 'values for its variables; others have their defaults')
        .option('--from <address>', "instead of the template's sender")
        .option('--subject <text>', "instead of the template's subject")
        .addHelpText(
          'after',
          '\nWhat the platform has is sent: `sync` first what changed in the source.',
        );
    },
    run,
  },
];

interface Flags extends ReachFlags {
  to: string;
  var?: readonly string[];
  from?: string;
  subject?: string;
}

async function run(command: Command, shell: Shell): Promise<number> {
  const [key = ''] = command.args;
  const flags = command.opts<Flags>();
  const { to, from: fromEmail, subject } = flags;
  const { var: texts = [] } = flags;
  const values = new Map<string, string>();
  for (const text of texts) {
    const [, name = '', value = ''] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
    if (name === '') throw new Invalid(`--var "${text}": write name=value`);
    if (values.has(name)) throw new Invalid(`--var ${name} is given twice: give each once`);
    values.set(name, value);
  }
  const said = testSendBody.safeParse({
    to: to.trim(),
    fromEmail,
    subject,
    variables: values.size > 0 ? Object.fromEntries(values) : undefined,
  });
  if (!said.success) throw new Invalid('--to: write the address it goes to');
  return reach(flags, shell, async (reached) => {
    const id = recordedId(key, reached) ?? (await listedId(key, reached));
    const look = 'look into the mailbox before you send it again';
    const { platform, signal } = reached;
    const sent = await once(platform.templates.test(id, said.data, { signal }), look);
    const failed = sent !== 'sent';
    const end = failed ? 'the platform did not say that it was sent' : 'sent';
    const document = { template: { key, id }, to: said.data.to, success: !failed };
    return {
      document,
      lines: [`${cell(key)} (${cell(id)}) to ${cell(said.data.to)}: ${end}`],
      failed,
    };
  });
}

/** Returns the id under which the mirror last observed the template with this key. */
function recordedId(key: string, { config }: Reached): string | undefined {
  if (!existsSync(config.snapshot)) return undefined;
  const snapshot = openSnapshot(config.snapshot);
  try {
    return snapshot.recorded.get('template', key)?.id;
  } finally {
    snapshot.close();
  }
}

/**
 * Returns the id of a template that is not mirrored, found by exact name or otherwise by id. Throws
 * Invalid if no template or several templates match.
 */
async function listedId(key: string, { platform, signal }: Reached): Promise<string> {
  const found: Template[] = [];
  for await (const template of platform.templates.all({}, { signal })) {
    if (!template.deletedAt && (template.name === key || template.id === key)) found.push(template);
  }
  const byName = found.filter(({ name }) => name === key);
  const [only, ...more] = byName.length > 0 ? byName : found;
  if (more.length > 0) {
    const ids = byName.map(({ id }) => cell(id)).join(', ');
    throw new Invalid(`${byName.length} templates on the platform have the name ${key}: ${ids}`, {
      fix: 'give the id of one',
    });
  }
  if (only) return only.id;
  throw new Invalid(`the mirror has no template ${key}, and the platform none of that name`, {
    fix: 'run sync first, or mend the key',
  });
}
