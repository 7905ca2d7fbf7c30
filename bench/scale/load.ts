/** Enrols people as fast as autocannon can: each request another address. */
import autocannon from 'autocannon';
import { given } from '../stage/child.ts';

export interface LoadTask {
  url: string;
  people: number;
  connections: number;
}

const { url, people, connections }: LoadTask = JSON.parse(given());
let nth = 0;
const result = await autocannon({
  url,
  connections,
  amount: people,
  requests: [
    {
      method: 'POST',
      path: '/api/contacts/channel/ch_news',
      headers: { 'x-api-key': 'key_bench', 'content-type': 'application/json' },
      setupRequest(request) {
        nth += 1;
        const body = { email: `person${nth}@example.com`, subscription: 'opt_in' };
        return { ...request, body: JSON.stringify(body) };
      },
    },
  ],
});
process.send?.({ refused: result.non2xx + result.errors });
