/** The sinks that are sent over HTTP: the signed webhook, Slack, Microsoft Teams and ntfy. */
import type { Receiver } from '../../config/schema/notices-schema.ts';
import type { Clock } from '../../domain/clock.ts';
import { isExpected } from '../../domain/errors.ts';
import type { Answer } from '../../domain/exchange.ts';
import { observe } from '../../http/rate-limit-headers.ts';
import { createSend } from '../../http/send-request.ts';
import { sign } from '../server/webhook-signature.ts';
import { headOf, levelOf, plainText, remedyOf, titleOf } from './message-text.ts';
import type { Message, Outcome, Sink } from './sink.ts';

/** The part of a sink that sends. */
export type Sending = Pick<Sink, 'host' | 'isGrouped' | 'deliver' | 'close'>;

/** A body, and the headers that belong to it. */
interface Written {
  body: string;
  headers: Record<string, string>;
}

interface Form {
  url: string;
  timeoutMs: number;
  isGrouped: boolean;
  /** Writes the request of one attempt. */
  write(message: Message): Written;
  /** What to do if the receiver refuses a message for good; without it, every failure may pass. */
  fix?: string;
}

const slowly = { timeoutMs: 15_000, isGrouped: true } as const;

/** Creates the sending part for one form. */
function overHttp({ url, timeoutMs, isGrouped, write, fix }: Form, clock: Clock): Sending {
  const { origin, host, pathname, search } = new URL(url);
  const { send, close } = createSend({ url: origin, timeoutMs, userAgent: 'crm-mirror' });
  return {
    host,
    isGrouped,
    close,
    async deliver(message, abort) {
      const request = { method: 'POST', path: pathname + search, ...write(message) } as const;
      try {
        return outcomeOf(await send(request, abort), { host, fix, now: clock.now() });
      } catch (error) {
        if (abort.aborted || !isExpected(error)) throw error;
        return { is: 'later', reason: error.problems[0].reason };
      }
    },
  };
}

interface Reading {
  host: string;
  fix: string | undefined;
  now: number;
}

/** Reads a response. A redirect counts as a refusal, because the body would go elsewhere. */
function outcomeOf(answer: Answer, { host, fix, now }: Reading): Outcome {
  const { status, headers, body } = answer;
  if (status >= 200 && status <= 299) return { is: 'sent' };
  // Slack names the reason in one word, such as no_service. Other bodies may hold anything.
  const word = /^[a-z][a-z_]{2,40}$/.test(body) ? `: ${body}` : '';
  const reason = `${host} answers ${status}${word}`;
  const mayPass = status >= 500 || [408, 425, 429].includes(status);
  if (fix !== undefined && !mayPass) return { is: 'refused', reason, fix };
  return { is: 'later', reason, waitMs: observe(status, headers, now).retryAfterMs };
}

const json = { 'content-type': 'application/json' };

/**
 * Sends the JSON of each notice, signed according to Standard Webhooks. Each attempt has its own
 * time and signature, because a receiver rejects an old one.
 */
export function webhookSink(
  { url, secret }: NonNullable<Receiver['webhook']>,
  clock: Clock,
): Sending {
  const write = ({ id, at, mirror, mirrors, run, items: [item] }: Message): Written => {
    const { type, reason, fix } = item;
    const timestamp = new Date(at).toISOString();
    const body = JSON.stringify({ type, timestamp, data: { mirror, mirrors, run, reason, fix } });
    return { body, headers: { ...json, ...sign(secret, id, { body, at: clock.now() }) } };
  };
  return overHttp({ url, timeoutMs: 5_000, isGrouped: false, write }, clock);
}

/** Posts to an incoming webhook of Slack: sections, and plain text for the preview. */
export function slackSink({ url }: NonNullable<Receiver['slack']>, clock: Clock): Sending {
  const fix =
    'create a new incoming webhook of Slack and write its URL into notices, then restart the worker';
  return overHttp({ ...slowly, url, write: slackBody, fix }, clock);
}

/** Slack refuses a message of more than 50 blocks: a title, "and n more" and a link need three. */
const itemsAtMost = 47;

function slackBody(message: Message): Written {
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
}

/** Escapes what Slack would take for a link or a mention. */
function slackText(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

/** Posts an Adaptive Card to a workflow of Teams ("When a Teams webhook request is received"). */
export function teamsSink({ url }: NonNullable<Receiver['teams']>, clock: Clock): Sending {
  const fix =
    'look at the workflow in Teams: it must be on and let anybody start it; copy its URL into ' +
    'notices again, then restart the worker';
  return overHttp({ ...slowly, url, write: teamsBody, fix }, clock);
}

const teamsColors = { error: 'Attention', warning: 'Warning', info: 'Good' } as const;

function teamsBody(message: Message): Written {
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
  const card = {
    contentType: 'application/vnd.microsoft.card.adaptive',
    contentUrl: null,
    content,
  };
  return { headers: json, body: JSON.stringify({ type: 'message', attachments: [card] }) };
}

/** Publishes to a topic of ntfy. */
export function ntfySink({ url, token }: NonNullable<Receiver['ntfy']>, clock: Clock): Sending {
  const fix =
    'correct the url (https://HOST/TOPIC) and the token of this receiver, which must be allowed ' +
    'to write to the topic, then restart the worker';
  const write = (message: Message): Written => {
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
  };
  return overHttp({ ...slowly, url, write, fix }, clock);
}

/** Cuts a text that a receiver would refuse for its length, which is in UTF-8 bytes. */
function cut(text: string, bytes: number): string {
  const whole = Buffer.from(text);
  if (whole.length <= bytes) return text;
  const room = whole.subarray(0, bytes - 3);
  return `${room.toString('utf8').replace(/\uFFFD+$/, '')}…`;
}
