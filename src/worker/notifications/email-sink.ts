/**
 * The sink that sends e-mail. A connection to another machine is always encrypted: smtps from the
 * beginning, smtp by STARTTLS, without which nothing is sent, not even the password.
 */
import { z } from 'zod';
import type { Receiver } from '../../config/schema/notices-schema.ts';
import { lasting } from '../../compose/output/format-values.ts';
import { systemClock } from '../../http/system-clock.ts';
import { isLoopback } from '../../domain/values/config-value.ts';
import { counted } from '../../domain/values/counted.ts';
import type { Sending } from './http-sinks.ts';
import { plainText, titleOf } from './message-text.ts';
import type { Message, Outcome } from './sink.ts';

type Email = NonNullable<Receiver['email']>;

/** How long to wait for the next word of the mail server, in milliseconds. */
const timeoutMs = 20_000;
/**
 * How long an attempt takes at most: a server that keeps talking is never silent. It is less than a
 * claim holds (told-memory.ts).
 */
const attemptMs = 60_000;

/** Creates the sending part of an e-mail receiver. nodemailer is loaded with the first message. */
export function emailSink(email: Email, deadlineMs = attemptMs): Sending {
  const { host } = new URL(email.smtp);
  return {
    host,
    isGrouped: true,
    async deliver(message, abort) {
      abort.throwIfAborted();
      const transport = await connect(email);
      const [late, over] = [new AbortController(), new AbortController()];
      const reason = `${host} did not take the message within ${lasting(deadlineMs)}`;
      const deadline = systemClock.sleep(deadlineMs, over.signal).then(() => {
        late.abort(new Error(reason));
        return undefined;
      });
      deadline.catch(() => undefined);
      try {
        const signal = AbortSignal.any([abort, late.signal]);
        const sending = transport.sendMail({ ...mailOf(email, message), signal });
        sending.catch(() => undefined);
        const sent = await Promise.race([sending, deadline]);
        if (!sent) return { is: 'later', reason };
        const { rejected } = sent;
        if (rejected.length === 0) return { is: 'sent' };
        return { is: 'sent', but: `${host} refuses ${counted(rejected.length, 'recipient')}` };
      } catch (error) {
        if (abort.aborted) throw abort.reason;
        if (late.signal.aborted) return { is: 'later', reason };
        return failureOf(host, error);
      } finally {
        over.abort();
        transport.close();
      }
    },
    close: async () => undefined,
  };
}

async function connect({ smtp, user, password }: Email) {
  const { createTransport } = await import('nodemailer');
  const { protocol, hostname, port } = new URL(smtp);
  const isHere = isLoopback(smtp.replace(/^smtps?:/i, 'http:'));
  return createTransport({
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
}

function mailOf({ from, to }: Email, message: Message) {
  const domain = /@([^\s<>@]+)>?$/.exec(from)?.[1] ?? 'localhost';
  return {
    from,
    to,
    subject: `[crm-mirror] ${titleOf(message)}`,
    text: `${plainText(message)}\n`,
    date: new Date(message.at),
    // Each attempt has the same id, so that a mail server or a mailbox can drop a second copy.
    messageId: `<${message.id}@${domain}>`,
    headers: { 'Auto-Submitted': 'auto-generated' },
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
