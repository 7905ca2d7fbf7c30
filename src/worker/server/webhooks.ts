/**
 * Accepts the events of a CRM: `POST /webhooks/<mirror>`, and finds the records that they name.
 *
 *   202  durably queued                      400  not JSON, or no event names a record
 *   200  accepted before, or not about a     401  unsigned, wrong secret, or too old
 *        contact; nothing is queued          404  no such mirror, or it accepts no events
 *   503  Redis is away, or the mirror may    413, 415  over 1 MB, or not application/json
 *        be one whose file is refused; send
 *        it again later
 *
 * A delivery is remembered after it was queued. If something fails between these two steps and the
 * CRM sends it again, it is queued once more, which costs one additional check of each person.
 */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { z } from 'zod';
import type { Clock } from '../../domain/clock.ts';
import { Unavailable } from '../../domain/errors.ts';
import { parseJson } from '../../domain/stored-json.ts';
import { fieldAt, textOf } from '../../domain/values/record-field.ts';
import type { EventQueue, DeliveryLog } from '../../compose/queues/event-queue.ts';
import type { Metrics } from './metrics.ts';
import { type Signing, verify } from './webhook-signature.ts';

export interface Webhook extends Signing, Naming {
  events: Pick<EventQueue, 'add' | 'knows' | 'remember'>;
  deliveries?: DeliveryLog;
}

export interface WebhookOptions {
  /** Returns the webhook of a mirror, or undefined if it accepts no events. */
  webhookOf(mirror: string): Webhook | undefined;
  /** Returns the files whose mirrors are stopped, whose names are not known. */
  refused?: (() => readonly unknown[]) | undefined;
  /** The URL by which the CRM calls, without a trailing slash; undefined: as `Host` says. */
  publicUrl: string | undefined;
  metrics: Metrics;
  clock: Clock;
}

const retryAfterSeconds = 60;

const mirrorOf = z.object({ mirror: z.string() });

export function serveWebhooks(app: FastifyInstance, options: WebhookOptions): void {
  const { metrics } = options;
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) =>
    done(null, body),
  );
  const askedIn = (request: FastifyRequest) => {
    const { mirror } = mirrorOf.parse(request.params);
    return { mirror, webhook: options.webhookOf(mirror) };
  };
  const path = '/webhooks/:mirror';
  // This hook responds before the body is read.
  const onRequest = async (request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    if (askedIn(request).webhook) return;
    if ((options.refused?.() ?? []).length > 0) {
      reply.header('retry-after', retryAfterSeconds);
      await reply.code(503).send({ error: 'not now: this mirror may be stopped' });
      return;
    }
    await reply.code(404).send({ error: 'there is no such webhook' });
  };
  app.post(path, { onRequest }, async (request, reply) => {
    const { mirror, webhook } = askedIn(request);
    if (!webhook) return reply.callNotFound();
    const { code, body } = await take(request, { ...options, mirror, webhook }).catch(
      (error: unknown) => {
        if (error instanceof Unavailable) metrics.refused(mirror, 'unavailable');
        throw error;
      },
    );
    return reply.code(code).send(body);
  });
}

async function take(
  request: FastifyRequest,
  of: WebhookOptions & { mirror: string; webhook: Webhook },
): Promise<{ code: number; body: object }> {
  const { mirror, webhook, metrics, clock } = of;
  const { method, headers } = request;
  const body = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
  const delivered = { method, headers, body, url: urlOf(request, of.publicUrl) };
  const verdict = verify(webhook, delivered, clock.now());
  if ('refused' in verdict) {
    metrics.refused(mirror, verdict.refused);
    webhook.deliveries?.refused(verdict.refused);
    return { code: 401, body: { error: 'not signed as it should be, or too long ago' } };
  }
  const content = parseJson(body.toString('utf8'));
  const { ids, erased, others } = toldIn(content, webhook);
  if (ids.length === 0 && others) return { code: 200, body: { status: 'of no contact' } };
  if (ids.length === 0) {
    metrics.refused(mirror, 'unnamed');
    webhook.deliveries?.refused('unnamed');
    const error = `no event names a record at ${webhook.id}`;
    return { code: 400, body: { error: content === undefined ? 'the body is no JSON' : error } };
  }
  if (await webhook.events.knows(verdict.delivery)) {
    metrics.refused(mirror, 'duplicate');
    return { code: 200, body: { status: 'accepted before' } };
  }
  const changed = ids.filter((id) => !erased.includes(id));
  await webhook.events.add(changed);
  await webhook.events.add(erased, 'erased');
  await webhook.events.remember(verdict.delivery);
  webhook.deliveries?.accepted(changed, 'changed');
  webhook.deliveries?.accepted(erased, 'erased');
  metrics.accepted(mirror, ids.length);
  return { code: 202, body: { status: 'accepted', records: ids.length } };
}

/** X-Forwarded-Host never counts: anybody can set it, and replay a signature for another URL. */
function urlOf({ headers, originalUrl }: FastifyRequest, publicUrl: string | undefined): string {
  if (publicUrl !== undefined) return publicUrl + originalUrl;
  const isEncrypted = String(headers['x-forwarded-proto'] ?? '').startsWith('https');
  return `${isEncrypted ? 'https' : 'http'}://${headers.host ?? ''}${originalUrl}`;
}

const longestId = 500;

/** When HubSpot records are merged, these fields name the other records. */
const merged = ['primaryObjectId', 'newObjectId', 'mergedObjectIds'];

const contactType: unknown = '0-1';

interface Naming {
  format: 'standard' | 'hubspot';
  id: string;
}

/**
 * Returns the records that a body names. A body is one event or a list of events, and the path
 * leads to one id or a list of ids. An event that names no record is skipped. `erased` is the
 * subset of `ids` that, according to the CRM, was erased for privacy; `others` says whether there
 * are events about other objects, which require no action.
 */
export function toldIn(body: unknown, { format, id }: Naming) {
  const isHubspot = format === 'hubspot';
  const events: unknown[] = Array.isArray(body) ? body : [body];
  const ours = isHubspot ? events.filter((event) => whatOf(event) !== 'other') : events;
  const erased = isHubspot ? ours.filter((event) => whatOf(event) === 'erased') : [];
  return {
    ids: idsAt(ours, isHubspot ? [id, ...merged] : [id]),
    erased: idsAt(erased, [id]),
    others: ours.length < events.length,
  };
}

/** Returns what an event of HubSpot is about. Nothing may be erased on a guess. */
function whatOf(event: unknown): 'changed' | 'erased' | 'other' {
  const type = fieldAt(event, 'subscriptionType');
  if (typeof type !== 'string') return 'changed';
  const [object, what] = type.split('.');
  const objectType = fieldAt(event, 'objectTypeId');
  const isStated = object === 'contact' || (object === 'object' && objectType === contactType);
  if (isStated && type === `${object}.privacyDeletion`) return 'erased';
  const isOurs = isStated || (object === 'object' && objectType === undefined);
  return isOurs && what !== 'associationChange' ? 'changed' : 'other';
}

function idsAt(events: readonly unknown[], paths: readonly string[]): string[] {
  const found = events
    .flatMap((event) => paths.flatMap((path) => fieldAt(event, path)))
    .flatMap((value) => {
      const text = typeof value === 'boolean' ? '' : (textOf(value) ?? '');
      return text === '' || text.length > longestId || !text.isWellFormed() ? [] : [text];
    });
  return [...new Set(found)];
}
