/**
 * The customers of an agency, each with a CRM and a platform of its own, behind two listeners in
 * this process: a request names its customer by the API key, or by a header. Every write on a
 * platform is counted by customer and contact.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEmulator } from '../../src/emulator/emulator.ts';
import { serve } from '../../src/emulator/http-listener.ts';
import { seeded } from '../../src/emulator/shared/seeded-random.ts';

/** A secret of the webhooks of all customers. */
export const secret = `whsec_${Buffer.from('a secret of a benchmark').toString('base64')}`;

interface Person {
  id: string;
  email: string;
  news: 'yes' | 'no';
}

/** A customer, and what was seen of its mirror. */
export interface Customer {
  name: string;
  people: Person[];
  /** When its CRM was last listed, by Date.now(). */
  listedAt: number;
  /** When each write of a known contact came, by the id of the person. */
  writes: Map<string, number[]>;
  /** How many other writes came: of a first load. */
  others: number;
  /** Has a person say no to the news, from now on. */
  optOut(id: string): void;
}

/** What a customer begins with. */
export interface Size {
  name: string;
  people: number;
  /** Whether the platform knows the people already. */
  isLoaded: boolean;
  /** How many requests the platform allows in a second. */
  limit: number;
}

/** The customers of an agency. */
export interface Agency {
  customers: Map<string, Customer>;
  add(size: Size): Customer;
  /** What the configuration of a customer says of its platform and its CRM. */
  linesOf(name: string): object;
  close(): Promise<void>;
}

/** Opens the listeners. */
export async function openAgency(): Promise<Agency> {
  const customers = new Map<string, Customer>();
  const platforms = new Map<string, ReturnType<typeof createEmulator>>();
  const lists = new Map<string, string>();
  const platform = await serve(
    {
      receive(request) {
        const name = request.headers['x-api-key'] ?? '';
        const delivery = platforms.get(name)?.receive(request);
        if (!delivery) throw new Error(`no customer ${name}`);
        if (request.method !== 'GET' && delivery.is === 'whole' && delivery.answer.status < 300) {
          note(customers.get(name), request.body ?? '');
        }
        return delivery;
      },
    },
    0,
  );
  const crm = createServer(({ url = '', headers }, response) => {
    const name = String(headers['x-customer']);
    const customer = customers.get(name);
    const id = /\/people\/(\d+)/.exec(url)?.[1];
    if (customer && id === undefined) customer.listedAt = Date.now();
    const found = id === undefined ? listOf(name) : JSON.stringify(customer?.people[Number(id)]);
    response.writeHead(found ? 200 : 404, { 'content-type': 'application/json' }).end(found);
  });
  const listOf = (name: string): string | undefined => {
    const text = lists.get(name) ?? JSON.stringify(customers.get(name)?.people);
    lists.set(name, text);
    return text;
  };
  crm.listen(0, '127.0.0.1');
  await new Promise((resolve) => crm.once('listening', resolve));
  const { port } = crm.address() as AddressInfo;
  const url = `http://127.0.0.1:${port}/people`;
  return {
    customers,
    add({ name, people: count, isLoaded, limit }) {
      const emulator = createEmulator({
        clock: { now: Date.now, monotonic: () => performance.now() },
        random: seeded(1),
        apiKey: name,
        channels: [{ id: 'ch_news', name: 'Newsletter' }],
        limits: [`*=${limit}/1`],
      });
      platforms.set(name, emulator);
      const people = Array.from({ length: count }, (_, at): Person => {
        return { id: String(at), email: `p${at}@example.com`, news: 'yes' };
      });
      for (const { id, email } of isLoaded ? people : []) {
        emulator.seed.contact({ id: `con_${id}`, email, channels: { ch_news: 'opt_in' } });
      }
      const optOut = (id: string): void => {
        const person = people[Number(id)];
        if (person) person.news = 'no';
        lists.delete(name);
      };
      const customer = { name, people, listedAt: 0, writes: new Map(), others: 0, optOut };
      customers.set(name, customer);
      return customer;
    },
    linesOf: (name) => ({
      platform: { url: platform.url, apiKey: name },
      contacts: {
        source: { type: 'http', url, one: `${url}/{id}`, headers: { 'x-customer': name } },
        id: 'id',
        email: 'email',
        channels: [{ id: 'ch_news', subscription: 'news' }],
        webhook: { format: 'standard', secret },
      },
    }),
    async close() {
      await platform.close();
      crm.close().closeAllConnections();
    },
  };
}

function note(customer: Customer | undefined, body: string): void {
  const id = /"con_(\d+)"/.exec(body)?.[1];
  if (!customer) return;
  if (id === undefined) customer.others += 1;
  else customer.writes.set(id, [...(customer.writes.get(id) ?? []), Date.now()]);
}
