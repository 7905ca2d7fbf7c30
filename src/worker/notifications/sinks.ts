/**
 * Creates the sinks that a configuration names, the receivers of notifications. A sink writes a
 * message in the form that its receiver expects, sends it once, and states what came of it. It
 * neither retries nor remembers: notifier.ts does both, alike for all sinks.
 *
 * Four are sent over HTTP: the signed webhook, Slack, Microsoft Teams and ntfy. The fifth sends
 * e-mail; its connection to another machine is always encrypted: smtps from the beginning, smtp by
 * STARTTLS, without which nothing is sent, not even the password.
 */
import { z } from 'zod';
import type { Clock, Random } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Config } from '../../config/config.ts';
import {
  kindOf,
  nameOf,
  type Receiver,
  troubleLevels,
  type ReceiverKind,
  type Trouble,
} from '../../config/schema/notices-schema.ts';
import { observe } from '../../http/rate-limit-headers.ts';
import { createSend } from '../../http/send-request.ts';
import { systemClock } from '../../http/system-clock.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { sign } from '../server/webhook-signature.ts';
import { type Notice, titleOfNotice } from '../../views/status/trouble-notice.ts';
import { mendingPages } from '../../views/status/attention.ts';

/** Returns the sinks, none if the configuration names none. The caller closes them. */
export function sinksOf({ notices }: Config, clock: Clock): Sink[] {
  const { url, secret, to = [] } = notices ?? {};
  const own: Receiver[] =
    url === undefined || secret === undefined
      ? []
      : [{ webhook: { url, secret }, level: 'warning' }];
  return [...own, ...to].map((receiver): Sink => {
    const { level, events, slack, teams, ntfy, email, webhook } = receiver;
    const sending =
      (slack && slackSink(slack, clock)) ??
      (teams && teamsSink(teams, clock)) ??
      (ntfy && ntfySink(ntfy, clock)) ??
      (email && emailSink(email)) ??
      (webhook && webhookSink(webhook, clock));
    if (!sending) throw new TypeError('a receiver names its kind');
    return {
      ...sending,
      name: nameOf(receiver),
      kind: kindOf(receiver),
      receiver: JSON.stringify({ slack, teams, ntfy, email, webhook }),
      wants: (trouble) =>
        (events === undefined || events.includes(trouble)) &&
        (level === 'warning' || troubleLevels[trouble] === level),
    };
  });
}

const slowly = { timeoutMs: 15_000, isGrouped: true } as const;

/** `write` makes the request of one attempt. Without `fix`, every failure may pass. */
function overHttp(
  form: { url: string; timeoutMs: number; isGrouped: boolean; fix?: string },
  clock: Clock,
  write: (message: Message) => { body: string; headers: Record<string, string> },
): Sending {
  const { url, timeoutMs, isGrouped, fix } = form;
  const { origin, host, pathname, search } = new URL(url);
  const { send, close } = createSend({ url: origin, timeoutMs, userAgent: 'crm-mirror' });
  return {
    host,
    isGrouped,
    close,
    async deliver(message, abort) {
      const request = { method: 'POST', path: pathname + search, ...write(message) } as const;
      try {
        const { status, headers, body } = await send(request, abort);
        if (status >= 200 && status <= 299) return { is: 'sent' };
        // Slack names the reason in one word, such as no_service. Other bodies may hold anything.
        const word = /^[a-z][a-z_]{2,40}$/.test(body) ? `: ${body}` : '';
        const reason = `${host} answers ${status}${word}`;
        // A redirect counts as a refusal, because the body would go elsewhere.
        const mayPass = status >= 500 || [408, 425, 429].includes(status);
        if (fix !== undefined && !mayPass) return { is: 'refused', reason, fix };
        return { is: 'later', reason, waitMs: observe(status, headers, clock.now()).retryAfterMs };
      } catch (error) {
        if (abort.aborted || !isExpected(error)) throw error;
        return { is: 'later', reason: error.problems[0].reason };
      }
    },
  };
}

const json = { 'content-type': 'application/json' };

/** Each attempt has its own time and signature, because a receiver rejects an old one. */
function webhookSink({ url, secret }: NonNullable<Receiver['webhook']>, clock: Clock): Sending {
  return overHttp({ url, timeoutMs: 5_000, isGrouped: false }, clock, (message) => {
    const { id, at, mirror, mirrors, run, items } = message;
    const { type, reason, fix } = items[0];
    const timestamp = new Date(at).toISOString();
    const body = JSON.stringify({ type, timestamp, data: { mirror, mirrors, run, reason, fix } });
    return { body, headers: { ...json, ...sign(secret, id, { body, at: clock.now() }) } };
  });
}

/** Posts to an incoming webhook of Slack: sections, and plain text for the preview. */
export function slackSink({ url }: NonNullable<Receiver['slack']>, clock: Clock): Sending {
  const fix =
    'create a new incoming webhook of Slack and write its URL into notices, then restart the worker';
  return overHttp({ ...slowly, url, fix }, clock, (message) => {
    const { items, link } = message;
    const section = (text: string) => ({ type: 'section', text: { type: 'mrkdwn', text } });
    const more = items.length - itemsAtMost;
    const blocks = [
      { type: 'header', text: { type: 'plain_text', text: cut(titleOf(message), 150) } },
      ...items.slice(0, itemsAtMost).map((item) => {
        const lines = [item.reason, remedyOf(item)].filter((line) => line !== undefined);
        return section([`*${headOf(item)}*`, cut(slackText(lines.join('\n')), 2_800)].join('\n'));
      }),
      ...(more > 0 ? [section(`and ${more} more`)] : []),
      ...(link === undefined ? [] : [section(`<${link}|Open the console>`)]),
    ];
    const text = slackText(cut(`${titleOf(message)}\n${plainText(message)}`, 3_000));
    return { headers: json, body: JSON.stringify({ text, blocks }) };
  });
}

/** Slack refuses a message of more than 50 blocks: a title, "and n more" and a link need three. */
const itemsAtMost = 47;

function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Posts an Adaptive Card to a workflow of Teams ("When a Teams webhook request is received"). */
function teamsSink({ url }: NonNullable<Receiver['teams']>, clock: Clock): Sending {
  const fix =
    'look at the workflow in Teams: it must be on and let anybody start it; copy its URL into ' +
    'notices again, then restart the worker';
  return overHttp({ ...slowly, url, fix }, clock, (message) => {
    const { items, link } = message;
    // A RichTextBlock takes its text literally, where a TextBlock would read it as Markdown.
    const block = (text: string, look: object) => ({
      type: 'RichTextBlock',
      inlines: [{ type: 'TextRun', text: cut(text, 2_000), ...look }],
    });
    const content = {
      $schema: 'http://adaptivecards.io/schemas/adaptive-card.json',
      type: 'AdaptiveCard',
      version: '1.4',
      msteams: { width: 'Full' },
      body: [
        block(titleOf(message), { size: 'Large', weight: 'Bolder' }),
        ...items.flatMap((item) => {
          const remedy = remedyOf(item);
          return [
            block(headOf(item), { weight: 'Bolder', color: teamsColors[item.level] }),
            block(item.reason, {}),
            ...(remedy === undefined ? [] : [block(remedy, {})]),
          ];
        }),
      ],
      ...(link !== undefined && {
        actions: [{ type: 'Action.OpenUrl', title: 'Open the console', url: link }],
      }),
    };
    const contentType = 'application/vnd.microsoft.card.adaptive';
    const attachments = [{ contentType, contentUrl: null, content }];
    return { headers: json, body: JSON.stringify({ type: 'message', attachments }) };
  });
}

const teamsColors = { error: 'Attention', warning: 'Warning', info: 'Good' } as const;

function ntfySink({ url, token }: NonNullable<Receiver['ntfy']>, clock: Clock): Sending {
  const fix =
    'correct the url (https://HOST/TOPIC) and the token of this receiver, which must be allowed ' +
    'to write to the topic, then restart the worker';
  return overHttp({ ...slowly, url, fix }, clock, (message) => {
    const { link } = message;
    const priorities = { error: '4', warning: '3', info: '2' };
    const tags = { error: 'rotating_light', warning: 'warning', info: 'white_check_mark' };
    const level = levelOf(message);
    const headers = {
      'content-type': 'text/plain; charset=utf-8',
      title: titleOf(message),
      priority: priorities[level],
      tags: tags[level],
      ...(link !== undefined && { click: new URL(link).href }),
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    };
    // Above 4,096 bytes, ntfy would make the text an attachment.
    return { headers, body: cut(plainText(message), 4_000) };
  });
}

/** Cuts a text that a receiver would refuse for its length, which is in UTF-8 bytes. */
function cut(text: string, bytes: number): string {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return text;
  const room = whole.subarray(0, bytes - 3);
  return `${room.toString('utf8').replace(/\uFFFD+$/, '')}…`;
}

type Email = NonNullable<Receiver['email']>;

/** How long to wait for the next word of the mail server, in milliseconds. */
const timeoutMs = 20_000;
/** The time for a whole message: a server that keeps talking is never silent. */
const attemptMs = 60_000;

/** Creates the sending part of an e-mail receiver. nodemailer is loaded with the first message. */
export function emailSink(email: Email, deadlineMs = attemptMs): Sending {
  const { host } = new URL(email.smtp);
  const { from, to } = email;
  const domain = /@([^\s<>@]+)>?$/.exec(from)?.[1] ?? 'localhost';
  return {
    host,
    isGrouped: true,
    async deliver(message, abort) {
      abort.throwIfAborted();
      const { smtp, user, password } = email;
      const { createTransport } = await import('nodemailer');
      const { protocol, hostname, port } = new URL(smtp);
      const isHere = isLoopback(smtp.replace(/^smtps?:/i, 'http:'));
      const transport = createTransport({
        host: hostname.replaceAll(/[[\]]/g, ''),
        ...(port !== '' && { port: Number(port) }),
        secure: protocol === 'smtps:',
        requireTLS: !isHere,
        ignoreTLS: isHere,
        ...(user !== undefined && { auth: { user, pass: password } }),
        connectionTimeout: timeoutMs,
        greetingTimeout: timeoutMs,
        socketTimeout: timeoutMs,
        disableFileAccess: true,
        disableUrlAccess: true,
      });
      const [late, over] = [new AbortController(), new AbortController()];
      systemClock.sleep(deadlineMs, over.signal).then(
        () => late.abort(),
        () => undefined,
      );
      try {
        const { rejected } = await transport.sendMail({
          from,
          to,
          subject: `[crm-mirror] ${titleOf(message)}`,
          text: `${plainText(message)}\n`,
          date: new Date(message.at),
          // Each attempt has the same id, so that a mail server or a mailbox can drop a second
          // copy.
          messageId: `<${message.id}@${domain}>`,
          headers: { 'Auto-Submitted': 'auto-generated' },
          signal: AbortSignal.any([abort, late.signal]),
        });
        if (rejected.length === 0) return { is: 'sent' };
        return { is: 'sent', but: `${host} refuses ${counted(rejected.length, 'recipient')}` };
      } catch (error) {
        if (abort.aborted) throw abort.reason;
        if (!late.signal.aborted) return failureOf(host, error);
        const reason = `${host} did not take the message within ${lasting(deadlineMs)}`;
        return { is: 'later', reason };
      } finally {
        over.abort();
        transport.close();
      }
    },
    close: async () => undefined,
  };
}

/** The part of nodemailer's errors that contains no address and no word of the mail server. */
const mailError = z.object({
  code: z.string(),
  originalCode: z.string().optional(),
  responseCode: z.number().optional(),
  permanent: z.boolean().optional(),
});

const tlsCodes = /^(ETLS|ERR_TLS|ERR_SSL|CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_|HOSTNAME_|EPROTO$)/;
const restart = 'then restart the worker';

/** Reads an error of nodemailer. Throws any other error, which is a bug. */
function failureOf(host: string, error: unknown): Outcome {
  const read = mailError.safeParse(error);
  if (!read.success) throw error;
  const { code, originalCode, responseCode, permanent } = read.data;
  const said = responseCode === undefined ? '' : ` (${responseCode})`;
  if (tlsCodes.test(originalCode ?? code)) {
    const reason = `${host} offers no encryption that can be trusted (${originalCode ?? code})`;
    const fix =
      'use a mail server with STARTTLS or smtps and a certificate for its name; NODE_EXTRA_CA_CERTS ' +
      `names the file of your own authority; ${restart}`;
    return { is: 'refused', reason, fix };
  }
  if (permanent === false) return { is: 'later', reason: `${host} answers ${responseCode}` };
  if (code === 'EAUTH') {
    const reason = `${host} refuses the user or the password${said}`;
    return { is: 'refused', reason, fix: `correct user and password, ${restart}` };
  }
  if (permanent) {
    const reason = `${host} refuses the message${said}`;
    return { is: 'refused', reason, fix: `correct from and to of this receiver, ${restart}` };
  }
  return { is: 'later', reason: `${host} could not be reached (${originalCode ?? code})` };
}

export interface Sending {
  /** The host, the only part of an address that is printed: the rest may be a secret. */
  host: string;
  /** Whether one message holds everything that a run found; otherwise each notice is a message. */
  isGrouped: boolean;
  /** Makes one attempt. Throws only the reason of `abort`, and bugs. */
  deliver(message: Message, abort: AbortSignal): Promise<Outcome>;
  close(): Promise<void>;
}

export interface Sink extends Sending {
  /** The name under which the snapshot stores what the receiver was told. */
  name: string;
  kind: ReceiverKind;
  /** The same for all mirrors that name this receiver. It may contain secrets. */
  receiver: string;
  wants(trouble: Trouble): boolean;
}

export interface Message {
  id: string;
  /** When the message was made, in milliseconds since the epoch. */
  at: number;
  mirror: string;
  /** All mirrors that it is about, if there are several. */
  mirrors?: readonly string[];
  run: string | null;
  items: readonly [Item, ...Item[]];
  /** The page of the console that mends all items, or the mirror's; undefined if not known. */
  link: string | undefined;
}

export interface Item {
  type: Notice['type'] | 'mirror.test';
  level: 'error' | 'warning' | 'info';
  title: string;
  reason: string;
  fix: string;
  /** The page of the console that mends it, such as approvals; by default the overview. */
  page?: string;
  link?: string;
}

/**
 * What came of an attempt. `sent`: with `but`, some of the people behind the receiver do not get
 * the message. `later`: another attempt may succeed, after `waitMs` if the receiver names a time.
 * `refused`: no attempt succeeds until somebody changes something.
 */
export type Outcome =
  | { is: 'sent'; but?: string }
  | { is: 'later'; reason: string; waitMs?: number | undefined }
  | { is: 'refused'; reason: string; fix: string };

export function itemOf({ type, trouble, subject, reason, fix }: Notice): Item {
  const isOver = type === 'mirror.recovered';
  const title = titleOfNotice({ type, subject });
  const page = isOver ? undefined : mendingPages[subject];
  const level = isOver ? 'info' : troubleLevels[trouble];
  return { type, level, title, reason, fix, ...(page !== undefined && { page }) };
}

/** Returns the page that mends all that is not solved; '' (the overview) if there are several. */
export function pageOf(items: readonly Item[]): string {
  const open = items.filter(({ level }) => level !== 'info');
  const [first, ...more] = new Set(open.map(({ page }) => page));
  return more.length === 0 ? (first ?? '') : '';
}

/** Returns the parts of a message that do not depend on what it reports. */
export function messageHead(
  { mirror, server }: Config,
  { clock, random }: { clock: Clock; random: Random },
) {
  const at = clock.now();
  const id = `msg_${at.toString(36)}${random().toString(36).slice(2, 12)}`;
  const base = server?.publicUrl;
  return { id, at, mirror, link: base === undefined ? undefined : `${base}/m/${mirror}` };
}

const namedAtMost = 3;

function titleOf({ mirror, mirrors = [mirror], items }: Message): string {
  const [first, ...more] = items;
  const others = mirrors.length - namedAtMost;
  const names = mirrors.slice(0, namedAtMost).join(', ');
  if (more.length === 0)
    return `${names}${others > 0 ? ` and ${others} more` : ''}: ${first.title}`;
  const solved = items.filter(({ level }) => level === 'info').length;
  const open = items.length - solved;
  const worst = items.find(({ level }) => level === levelOf({ items }));
  const parts = [
    ...(open > 0 && worst ? [worst.title] : []),
    ...(open > 1 ? [`and ${open - 1} more`] : []),
    ...(solved > 0 ? [`${solved} solved`] : []),
  ];
  return `${mirror}: ${parts.join(', ')}`;
}

function levelOf({ items }: { items: readonly Item[] }): Item['level'] {
  const levels = new Set(items.map(({ level }) => level));
  if (levels.has('error')) return 'error';
  return levels.has('warning') ? 'warning' : 'info';
}

/** Returns the sentence that names the remedy, and its page; undefined if nothing is to be done. */
function remedyOf({ fix, link }: Item): string | undefined {
  const lines = [
    ...(fix === '' ? [] : [`What to do: ${fix}`]),
    ...(link === undefined ? [] : [link]),
  ];
  return lines.length === 0 ? undefined : lines.join('\n');
}

function plainText(message: Message): string {
  const { items, link, run, mirrors } = message;
  const isAlone = items.length === 1;
  const blocks = items.map((item) =>
    [...(isAlone ? [] : [headOf(item)]), item.reason, remedyOf(item)].filter(Boolean).join('\n'),
  );
  const named = mirrors && `Mirrors: ${mirrors.join(', ')}`;
  const end = [named, link && `Console: ${link}`, run !== null && `Newest run: ${run}`].filter(
    Boolean,
  );
  return [...blocks, ...(end.length > 0 ? [end.join('\n')] : [])].join('\n\n');
}

function headOf({ level, title }: Item): string {
  const words = { error: 'Error: ', warning: 'Warning: ', info: '' };
  const head = words[level] + title;
  return head.charAt(0).toUpperCase() + head.slice(1);
}
