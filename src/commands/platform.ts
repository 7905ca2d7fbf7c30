/** The commands that send one request to the platform, for what a run does not need. */
import { existsSync } from 'node:fs';
import { type Called, type LookFlags, looking } from '../compose/command-options.ts';
import type { Config } from '../config/config.ts';
import { loadConfig } from '../config/load-config.ts';
import { Invalid, renderProblem, Unavailable } from '../domain/errors.ts';
import { connect } from '../compose/platform-connection.ts';
import { exitCode } from '../compose/output/failure-report.ts';
import { cell } from '../compose/output/text-style.ts';
import type { CommandModule, Shell } from '../compose/process-shell.ts';
import type { Domain } from '../platform/answer-schemas.ts';
import type { Platform } from '../platform/platform.ts';
import { domainCreateBody, testSendBody } from '../platform/request-schemas.ts';
import { openSnapshot } from '../store/open-snapshot.ts';
import { type CommandAnswer, print } from '../app/snapshot-command.ts';
import type { Section } from '../views/sections.ts';

/** The cookie comes from the environment, because any process could read it on a command line. */
const cookieName = 'PLATFORM_SESSION_COOKIE';

const named = { ...looking, '<domain>': 'the domain, or its id on the platform' };
const createOptions = {
  ...looking,
  '<domain>': 'as news.example.com',
  'return-path <label>': "the return path's subdomain (the platform's default: inbound)",
  'tracking <label>': "the tracking subdomain (the platform's default: tracking)",
  'click-tracking': 'count clicks',
  'open-tracking': 'count opens',
  'tls <mode>': 'opportunistic or enforced',
  'no-sending': 'send no email from it',
  'no-receiving': 'receive no email at it',
};
const testOptions = {
  ...looking,
  '<key>': "the template's key in the source, or its exact name or id on the platform",
  'to <address>': { text: 'who gets it', isRequired: true },
  'var <name=value...>': 'values for its variables; others have their defaults',
  'from <address>': "instead of the template's sender",
  'subject <text>': "instead of the template's subject",
} as const;

export const parts = {
  list: { options: looking, run: list },
  create: { options: createOptions, run: create },
  verify: { options: named, run: verify },
  nameservers: {
    options: named,
    help:
      `The platform takes no API key for this. Put the cookie of a signed-in browser into ` +
      `${cookieName}:\nname=value, where the name ends in .session_token.`,
    run: nameservers,
  },
  test: {
    options: testOptions,
    help: 'What the platform has is sent: `sync` first what changed in the source.',
    run: sendTest,
  },
  enable: {
    options: { ...looking, '<id>': 'the id of the key, not the key' },
    help: 'A disabled key cannot enable itself: configure another one for this.',
    run: enable,
  },
} satisfies Record<string, CommandModule>;

async function list({ flags }: Called<typeof looking>, shell: Shell): Promise<number> {
  return reach(flags, shell, async ({ platform, signal }) => {
    const domains = await Array.fromAsync(platform.domains.all({}, { signal }));
    return { document: { domains }, sections: domainSections(domains) };
  });
}

function domainSections(domains: readonly Domain[]): Section[] {
  const rows = domains.map((one) => {
    const { domain, status, isSendingEmailEnabled: sends, isReceivingEmailEnabled: receives } = one;
    return [domain, status, sends, receives, one.tls, one.lastVerifiedAt, one.id].map(cell);
  });
  const failed = domains.filter(({ verificationFailedReason }) => verificationFailedReason);
  const columns = ['Domain', 'Status', 'Sends', 'Receives', 'TLS', 'Last verified', 'Id'];
  const leavesOut = ['TLS', 'Receives', 'Sends', 'Last verified'];
  const lines = failed.map((one) => {
    return `${cell(one.domain)} failed: ${cell(one.verificationFailedReason)}`;
  });
  return [{ table: { columns, rows, leavesOut }, none: 'No domains.' }, { lines }];
}

async function create({ flags, args: [word = ''] }: Called<typeof createOptions>, shell: Shell) {
  // What the flags omit is omitted, so that the platform's defaults apply.
  const parsed = domainCreateBody.safeParse({
    domain: word.trim().replace(/\.$/, ''),
    custom_return_path: flags.returnPath,
    tracking: flags.tracking,
    click_tracking: flags.clickTracking,
    open_tracking: flags.openTracking,
    tls: flags.tls,
    sending_email: flags.sending ? undefined : false,
    receiving_email: flags.receiving ? undefined : false,
  });
  if (!parsed.success) {
    const [field] = parsed.error.issues[0]?.path ?? [];
    const { reason, fix } = mend[String(field)] ?? { reason: 'this domain cannot be created' };
    throw new Invalid(reason, { fix });
  }
  return reach(flags, shell, async ({ platform, signal }) => {
    const look = 'crm-mirror platform domains list tells';
    const made = await once(platform.domains.create(parsed.data, { signal }), look);
    const { domain, id, dnsRecords } = made;
    const rows = (dnsRecords ?? []).map((one) =>
      [one.recordType, one.name, one.recordTypeName, one.ttl, one.priority, one.value].map(cell),
    );
    const verify = `crm-mirror platform domains verify ${cell(id)}`;
    const then = `Put these into the DNS of ${cell(domain)}, then: \`${verify}\``;
    const columns = ['Type', 'Name', 'For', 'TTL', 'Priority', 'Value'];
    const dns = [{ lines: [then] }, { table: { columns, rows, leavesOut: ['For', 'TTL'] } }];
    const sections = [...domainSections([made]), ...(rows.length > 0 ? dns : [])];
    return { document: made, sections };
  });
}

const label = 'write labels of letters, digits and inner hyphens, with dots between them';
const mend: Record<string, { reason: string; fix?: string }> = {
  domain: {
    reason: 'no domain name',
    fix: 'write it as news.example.com, other letters than a to z as xn--…',
  },
  custom_return_path: { reason: '--return-path: no subdomain', fix: label },
  tracking: { reason: '--tracking: no subdomain', fix: label },
  tls: { reason: '--tls: there are opportunistic and enforced' },
};

async function verify({ flags, args: [domain = ''] }: Called<typeof looking>, shell: Shell) {
  return reach(flags, shell, async (reached) => {
    const id = await idOf(domain, reached);
    const { status } = await reached.platform.domains.verify(id, { signal: reached.signal });
    const failed = /^(failed|suspended)$/.test(status);
    const fix = failed ? 'crm-mirror platform domains list says why' : undefined;
    return {
      document: { id, status },
      lines: [renderProblem({ reason: `${domain}: ${cell(status)}`, fix })],
      code: exitCode(failed ? 'failed' : 'done'),
    };
  });
}

async function nameservers({ flags, args: [domain = ''] }: Called<typeof looking>, shell: Shell) {
  const sessionCookie = shell.env[cookieName] ?? '';
  if (sessionCookie === '') {
    throw new Invalid(`${cookieName} is not set`, {
      fix: 'put the cookie of a signed-in browser into it, name=value',
    });
  }
  return reach(flags, shell, async (reached) => {
    const { platform, signal } = reached;
    const id = await idOf(domain, reached);
    const found = await platform.domains.nameservers(id, { sessionCookie, signal });
    const provider = found.dnsProvider ? ` (${cell(found.dnsProvider)})` : '';
    const head = `${cell(found.domain ?? domain)} is answered for by${provider}:`;
    const lines = [head, ...found.nameservers.map((name) => `  ${cell(name)}`)];
    return { document: found, lines };
  });
}

/** A word that matches no name is treated as an id. */
async function idOf(domain: string, { platform, signal }: Reached): Promise<string> {
  const name = domain.trim().toLowerCase();
  if (!name.includes('.')) return domain;
  for await (const known of platform.domains.all({}, { signal })) {
    if (known.domain.toLowerCase() === name) return known.id;
  }
  return domain;
}

async function sendTest({ flags, args: [key = ''] }: Called<typeof testOptions>, shell: Shell) {
  const { to, from: fromEmail, subject, var: texts = [] } = flags;
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
    return {
      document: { template: { key, id }, to: said.data.to, success: !failed },
      lines: [`${cell(key)} (${cell(id)}) to ${cell(said.data.to)}: ${end}`],
      code: exitCode(failed ? 'failed' : 'done'),
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

/** A template that is not mirrored, by its exact name or otherwise its id. */
async function listedId(key: string, { platform, signal }: Reached): Promise<string> {
  const all = await Array.fromAsync(platform.templates.all({}, { signal }));
  const found = all.filter((one) => !one.deletedAt && (one.name === key || one.id === key));
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

async function enable({ flags, args: [id = ''] }: Called<typeof looking>, shell: Shell) {
  return reach(flags, shell, async ({ platform, signal }) => {
    const key = await platform.apiKeys.enable(id, { signal });
    const { name, start, enabled, permissions, requestCount } = key;
    const columns = ['Key', 'Begins with', 'Enabled', 'Permissions', 'Requests', 'Id'];
    const rows = [[name, start, enabled, permissions, requestCount, key.id].map(cell)];
    const sections = [{ table: { columns, rows, leavesOut: ['Requests', 'Permissions'] } }];
    return { document: key, sections, code: exitCode(enabled ? 'done' : 'failed') };
  });
}

interface Reached {
  platform: Platform;
  config: Config;
  signal: AbortSignal;
}

async function reach(
  flags: LookFlags,
  shell: Shell,
  ask: (reached: Reached) => Promise<CommandAnswer>,
): Promise<number> {
  const config = loadConfig(flags.config, shell.env);
  const platform = connect(config, shell);
  try {
    return print(await ask({ platform, config, signal: shell.stop }), flags, shell);
  } finally {
    await platform.close();
  }
}

/** Such a request is never sent twice. `look` is what to check before the next try. */
async function once<T>(sent: Promise<T>, look: string): Promise<T> {
  try {
    return await sent;
  } catch (error) {
    if (!(error instanceof Unavailable) || error.acted === 'no') throw error;
    const { acted, message } = error;
    throw new Unavailable(`${message}; it may have been done`, { fix: look, acted, cause: error });
  }
}
