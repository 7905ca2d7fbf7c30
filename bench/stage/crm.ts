/** A CRM over HTTP that tells of its changes: a list in pages, single records, signed events. */
import { randomUUID } from 'node:crypto';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';

const secret = `whsec_${Buffer.from('a secret of a benchmark').toString('base64')}`;

export interface Person {
  id: string;
  email: string;
  news: 'yes' | 'no';
}

export interface Crm {
  people: Map<string, Person>;
  /** What a configuration says of it. */
  contacts: object;
  /** Tells the worker whose server is at `url` of these records; answers its status, 0 for none. */
  tell(url: string, ids: readonly string[]): Promise<number>;
  close(): void;
}

const pageSize = 200;

const noLimit = { percent: 100, floor: 1_000_000_000 };
/** Allows any number of opt-ins and opt-outs. */
export const unguarded = { optIns: noLimit, optOuts: noLimit };

export async function openCrm(count: number): Promise<Crm> {
  const people = new Map<string, Person>();
  for (let at = 1; at <= count; at += 1) {
    people.set(String(at), { id: String(at), email: `p${at}@example.com`, news: 'yes' });
  }
  const answer = (response: ServerResponse, status: number, body: object): void =>
    void response
      .writeHead(status, { 'content-type': 'application/json' })
      .end(JSON.stringify(body));
  const server = createServer(({ url = '/' }, response) => {
    const { pathname, searchParams } = new URL(url, 'http://crm');
    const [, , id] = pathname.split('/');
    if (id !== undefined) {
      const one = people.get(id);
      return one ? answer(response, 200, one) : answer(response, 404, {});
    }
    const from = (Number(searchParams.get('page')) - 1) * pageSize;
    const items = [...people.values()].slice(from, from + pageSize);
    return answer(response, 200, { items, total: people.size });
  });
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  const { port } = server.address() as AddressInfo;
  const base = `http://127.0.0.1:${port}/people`;
  const webhook = new Webhook(secret);
  return {
    people,
    contacts: {
      source: {
        type: 'http',
        url: base,
        records: 'items',
        total: 'total',
        page: { number: 'page', size: 'size', sizeValue: pageSize },
        one: `${base}/{id}`,
      },
      id: 'id',
      email: 'email',
      channels: [{ id: 'ch_news', subscription: 'news' }],
      webhook: { format: 'standard', secret },
    },
    async tell(url, ids) {
      const body = JSON.stringify(ids.map((id) => ({ type: 'person.changed', data: { id } })));
      const id = randomUUID();
      const now = new Date();
      const headers = {
        'content-type': 'application/json',
        'webhook-id': id,
        'webhook-timestamp': String(Math.floor(now.getTime() / 1000)),
        'webhook-signature': webhook.sign(id, now, body),
      };
      try {
        const { status } = await fetch(`${url}/webhooks/soak`, { method: 'POST', headers, body });
        return status;
      } catch {
        return 0;
      }
    },
    close: () => server.close().closeAllConnections(),
  };
}
