/**
 * An account of HubSpot over real HTTP: lists, search, batch reads and single reads of contacts, as
 * its documentation has them, over contacts that can be changed, archived and merged at any time.
 * Time stands still unless a test moves it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { hubspotSource } from '../../../src/sources/hubspot/hubspot-source.ts';
import { hubspotOptions } from '../../../src/sources/hubspot/options.ts';
import type { Certificate, Source, SourceRecord } from '../../../src/sources/source.ts';
import { serve } from '../http/test-server.ts';
import { virtualClock, WRITTEN } from './source-reading.ts';

export const TOKEN = 'pat-eu1-secret';
export const fields = ['id', 'archived', 'properties.email', 'properties.newsletter'];

interface Contact {
  properties: Record<string, string | null>;
  at: number;
  archived: boolean;
}

type Question = IncomingMessage & { text: string };

export class Account {
  readonly contacts = new Map<string, Contact>();
  /** Maps the id of a merged contact to the id of the winner. */
  readonly winners = new Map<string, string>();
  readonly asked: string[] = [];
  names = ['email', 'newsletter', 'lastmodifieddate', 'hs_object_id'];
  token = TOKEN;
  now = WRITTEN;
  /** What search knows: until a test lets it fall behind, all there is. */
  index: Map<string, Contact> | undefined;
  /** Called with each question, before it is answered. */
  before: (question: string, count: number) => void = () => undefined;
  url = '';

  async open(): Promise<this> {
    this.url = await serve((question, response) => this.#answer(question, response));
    return this;
  }

  put(id: number | string, email: string, newsletter: string | null = 'true'): this {
    const properties = { email, newsletter };
    this.contacts.set(String(id), { properties, at: this.now, archived: false });
    return this;
  }

  archive(id: number): void {
    const contact = this.contacts.get(String(id));
    if (contact) contact.archived = true;
  }

  /** For privacy: it is in no list, and cannot be read. */
  erase(id: number): void {
    this.contacts.delete(String(id));
  }

  /** As the first one, or under a new id. */
  merge([winner, loser]: [number, number], id = winner): void {
    const properties = { ...this.contacts.get(String(winner))?.properties };
    const gone = [winner, loser].filter((other) => other !== id).map(String);
    for (const other of gone) {
      this.contacts.delete(other);
      this.winners.set(other, String(id));
    }
    properties['hs_merged_object_ids'] = gone.join(';');
    this.contacts.set(String(id), { properties, at: this.now, archived: false });
  }

  /** From now on search answers as of now. */
  freezeIndex(): void {
    this.index = new Map([...this.contacts].map(([id, one]) => [id, { ...one }]));
  }

  #answer(question: Question, response: ServerResponse): void {
    const url = new URL(question.url ?? '', 'http://hubspot');
    const path = url.pathname.replace('/crm/v3/', '');
    const body = question.text === '' ? {} : JSON.parse(question.text);
    const name = path.startsWith('objects/contacts/') ? path.slice(17) : path;
    this.asked.push(name);
    this.before(name, this.asked.length);
    const send = (status: number, content: object) =>
      response
        .writeHead(status, {
          'content-type': 'application/json;charset=utf-8',
          date: new Date(this.now).toUTCString(),
        })
        .end(JSON.stringify(content));
    if (question.headers.authorization !== `Bearer ${this.token}`) {
      return void send(401, { status: 'error', category: 'INVALID_AUTHENTICATION' });
    }
    if ((question.url ?? '').length > 4_000) {
      return void response.writeHead(414, { 'content-type': 'text/html' }).end('<h1>414</h1>');
    }
    if (path === 'properties/contacts') {
      return void send(200, { results: this.names.map((one) => ({ name: one, type: 'string' })) });
    }
    const archived = url.searchParams.get('archived') === 'true';
    const of = { archived, wanted: url.searchParams.get('properties')?.split(',') ?? [] };
    if (path === 'objects/contacts') {
      return void send(200, this.#list(of, url.searchParams.get('after') ?? '0'));
    }
    if (path === 'objects/contacts/search') return void send(...this.#search(body));
    if (path === 'objects/contacts/batch/read') {
      return void send(...this.#batch(body.inputs, { archived, wanted: body.properties }));
    }
    const found = this.#shown(path.slice(17), of);
    send(found ? 200 : 404, found ?? { status: 'error', message: 'resource not found' });
  }

  #shown(id: string, { archived, wanted }: { archived: boolean; wanted: string[] }) {
    const own = this.winners.get(id) ?? id;
    const contact = this.contacts.get(own);
    if (!contact || contact.archived !== archived) return undefined;
    const known = wanted.filter((name) => name in contact.properties || this.names.includes(name));
    const properties = known.map((name) => [name, contact.properties[name] ?? null]);
    const at = new Date(contact.at).toISOString();
    const times = { createdAt: at, updatedAt: at, ...(archived && { archivedAt: at }) };
    return { id: own, properties: Object.fromEntries(properties), ...times, archived };
  }

  #list(of: { archived: boolean; wanted: string[] }, after: string) {
    const ids = sorted(this.contacts).filter((id) => Number(id) >= Number(after));
    const shown = ids.flatMap((id) => this.#shown(id, of) ?? []);
    const next = shown[100]?.id;
    return {
      results: shown.slice(0, 100),
      ...(next !== undefined && { paging: { next: { after: next, link: `?after=${next}` } } }),
    };
  }

  #search(body: ReturnType<typeof JSON.parse>): [number, object] {
    const [{ filters }] = body.filterGroups;
    const index = this.index ?? this.contacts;
    const hits = sorted(index).filter((id) => {
      const contact = index.get(id);
      const values: Record<string, number> = {
        lastmodifieddate: contact?.at ?? 0,
        hs_object_id: Number(id),
      };
      return (
        !contact?.archived &&
        filters.every(({ propertyName, operator, value }: Record<string, string>) => {
          const is = values[propertyName ?? ''] ?? Number.NaN;
          return operator === 'GT' ? is > Number(value) : is >= Number(value);
        })
      );
    });
    const from = Number(body.after ?? 0);
    if (from + body.limit > 10_000) return [400, { status: 'error', category: 'VALIDATION_ERROR' }];
    const results = hits.slice(from, from + body.limit).map((id) => ({ id, properties: {} }));
    const next = from + body.limit;
    const paging = hits.length > next && { paging: { next: { after: String(next) } } };
    return [200, { total: Math.min(hits.length, 10_000), results, ...paging }];
  }

  #batch(inputs: { id: string }[], of: { archived: boolean; wanted: string[] }): [number, object] {
    const shown = inputs.map(({ id }) => ({ id, found: this.#shown(id, of) }));
    const results = shown.flatMap(({ found }) => found ?? []).map(({ archived: _, ...one }) => one);
    const ids = shown.flatMap(({ id, found }) => (found ? [] : [id]));
    if (ids.length === 0) return [200, { status: 'COMPLETE', results }];
    const errors = [{ status: 'error', category: 'OBJECT_NOT_FOUND', context: { ids } }];
    return [207, { status: 'COMPLETE', results, numErrors: 1, errors }];
  }
}

function sorted(contacts: ReadonlyMap<string, unknown>): string[] {
  return [...contacts.keys()].sort((a, b) => Number(a) - Number(b));
}

/** The source of options as they stand in a configuration. */
export function sourceOf(url: string, options: object = {}) {
  const clock = virtualClock();
  const parsed = hubspotOptions.parse({ type: 'hubspot', token: TOKEN, url, ...options });
  return { source: hubspotSource(parsed, { clock, random: () => 1 }), clock };
}

/** All that changed since, and the certificate, or 'lost'. */
export async function changesOf(source: Source, since: string, of: readonly string[] = fields) {
  const reading = source.changes?.(since, { fields: of, signal: new AbortController().signal });
  if (!reading) throw new Error('no changes');
  const records: SourceRecord[] = [];
  let step = await reading.next();
  for (; !step.done; step = await reading.next()) records.push(...step.value);
  return { records, values: valuesOf(records), certificate: step.value };
}

export function valuesOf(records: readonly SourceRecord[]) {
  return records.flatMap((record) => ('value' in record ? [record.value] : []));
}

export function cursorOf(certificate: Certificate | 'lost'): string {
  if (certificate === 'lost' || !certificate.complete) throw new Error('no cursor');
  return certificate.cursor ?? '';
}
