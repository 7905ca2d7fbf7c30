import type { Command } from 'commander';
import { Invalid, renderProblem } from '../domain/errors.ts';
import { table } from '../compose/output/table.ts';
import type { Domain } from '../platform/answer-schemas.ts';
import { domainCreateBody } from '../platform/request-schemas.ts';
import { cell } from '../compose/output/visible-text.ts';
import { once, reach, type Reached, type ReachFlags } from '../app/platform-command.ts';
import { lookOptions } from '../app/snapshot-command.ts';
import type { CommandPart, Shell } from '../compose/process-shell.ts';

export const parts: readonly CommandPart[] = [
  {
    name: 'list',
    summary: 'every domain and its status',
    options: (command) => void lookOptions(command),
    run: list,
  },
  {
    name: 'create',
    summary: 'add a domain; prints its DNS records',
    options: (command) => {
      lookOptions(command)
        .argument('<domain>', 'as news.example.com')
        .option(
          '--return-path <label>',
          "the return path's subdomain (the platform's default: inbound)",
        )
        .option('--tracking <label>', "the tracking subdomain (the platform's default: tracking)")
        .option('--click-tracking', 'count clicks')
        .option('--open-tracking', 'count opens')
        .option('--tls <mode>', 'opportunistic or enforced')
        .option('--no-sending', 'send no email from it')
        .option('--no-receiving', 'receive no email at it');
    },
    run: create,
  },
  {
    name: 'verify',
    summary: 'have the DNS records of a domain looked at',
    options: named,
    run: verify,
  },
  {
    name: 'nameservers',
    summary: 'who answers for a domain',
    options: (command) => {
      named(command);
      command.addHelpText(
        'after',
        `\nThe platform takes no API key for this. Put the cookie of a signed-in browser into ` +
          `${cookieName}:\nname=value, where the name ends in .session_token.`,
      );
    },
    run: nameservers,
  },
];

/** The cookie comes from the environment, because any process could read it on a command line. */
const cookieName = 'PLATFORM_SESSION_COOKIE';

function named(command: Command): void {
  lookOptions(command).argument('<domain>', 'the domain, or its id on the platform');
}

interface CreateFlags extends ReachFlags {
  returnPath?: string;
  tracking?: string;
  clickTracking?: true;
  openTracking?: true;
  tls?: string;
  sending: boolean;
  receiving: boolean;
}

async function list(command: Command, shell: Shell): Promise<number> {
  return reach(command.opts<ReachFlags>(), shell, async ({ platform, signal }) => {
    const domains: Domain[] = [];
    for await (const domain of platform.domains.all({}, { signal })) domains.push(domain);
    return { document: { domains }, lines: domains.length > 0 ? shown(domains) : ['No domains.'] };
  });
}

function shown(domains: readonly Domain[]): string[] {
  const rows = domains.map((domain) => [
    domain.domain,
    domain.status,
    domain.isSendingEmailEnabled,
    domain.isReceivingEmailEnabled,
    domain.tls,
    domain.lastVerifiedAt,
    domain.id,
  ]);
  const failed = domains.filter(({ verificationFailedReason }) => verificationFailedReason);
  return [
    ...table([
      ['DOMAIN', 'STATUS', 'SENDS', 'RECEIVES', 'TLS', 'LAST VERIFIED', 'ID'],
      ...rows.map((row) => row.map(cell)),
    ]),
    ...failed.map(
      ({ domain, verificationFailedReason: why }) => `${cell(domain)} failed: ${cell(why)}`,
    ),
  ];
}

async function create(command: Command, shell: Shell): Promise<number> {
  const flags = command.opts<CreateFlags>();
  // What the flags omit is omitted, so that the platform's defaults apply.
  const parsed = domainCreateBody.safeParse({
    domain: (command.args[0] ?? '').trim().replace(/\.$/, ''),
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
    const look = 'crm-mirror domains list tells';
    const made = await once(platform.domains.create(parsed.data, { signal }), look);
    return { document: made, lines: [...shown([made]), ...recordsOf(made)] };
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

function recordsOf({ domain, id, dnsRecords }: Domain): string[] {
  if (!dnsRecords || dnsRecords.length === 0) return [];
  const rows = dnsRecords.map((record) =>
    [
      record.recordType,
      record.name,
      record.recordTypeName,
      record.ttl,
      record.priority,
      record.value,
    ].map(cell),
  );
  return [
    '',
    `Put these into the DNS of ${cell(domain)}, then: crm-mirror domains verify ${cell(id)}`,
    '',
    ...table([['TYPE', 'NAME', 'FOR', 'TTL', 'PRIORITY', 'VALUE'], ...rows]),
  ];
}

async function verify(command: Command, shell: Shell): Promise<number> {
  const [domain = ''] = command.args;
  return reach(command.opts<ReachFlags>(), shell, async (reached) => {
    const id = await idOf(domain, reached);
    const { status } = await reached.platform.domains.verify(id, { signal: reached.signal });
    const failed = /^(failed|suspended)$/.test(status);
    const fix = failed ? 'crm-mirror domains list says why' : undefined;
    return {
      document: { id, status },
      lines: [renderProblem({ reason: `${domain}: ${cell(status)}`, fix })],
      failed,
    };
  });
}

async function nameservers(command: Command, shell: Shell): Promise<number> {
  const [domain = ''] = command.args;
  const sessionCookie = shell.env[cookieName] ?? '';
  if (sessionCookie === '') {
    throw new Invalid(`${cookieName} is not set`, {
      fix: 'put the cookie of a signed-in browser into it, name=value',
    });
  }
  return reach(command.opts<ReachFlags>(), shell, async (reached) => {
    const { platform, signal } = reached;
    const id = await idOf(domain, reached);
    const found = await platform.domains.nameservers(id, { sessionCookie, signal });
    const provider = found.dnsProvider ? ` (${cell(found.dnsProvider)})` : '';
    const head = `${cell(found.domain ?? domain)} is answered for by${provider}:`;
    return {
      document: found,
      lines: [head, ...found.nameservers.map((name) => `  ${cell(name)}`)],
    };
  });
}

/**
 * Returns the id of a domain, looked up by name. A word that matches no name is treated as an id.
 */
async function idOf(domain: string, { platform, signal }: Reached): Promise<string> {
  const name = domain.trim().toLowerCase();
  if (!name.includes('.')) return domain;
  for await (const known of platform.domains.all({}, { signal })) {
    if (known.domain.toLowerCase() === name) return known.id;
  }
  return domain;
}
