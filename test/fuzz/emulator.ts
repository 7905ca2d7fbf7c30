/** The emulator's API: raw bytes on a connection, most of them HTTP. */
import fc from 'fast-check';
import { connect } from 'node:net';
import { serve } from '../../src/emulator/http-listener.ts';
import { KEY, stage } from '../support/emulator/emulator-stage.ts';
import { area, judgeText, mutated, scrap, strangeValue, twisted } from './area.ts';

const answers = new Set([200, 201, 400, 401, 403, 404, 405, 409, 413, 417, 431]);

export const requests: [line: string, body?: unknown][] = [
  ['GET /api/contacts/list?page=1&limit=100'],
  ['GET /api/contacts/list?search=a%40b.c&status=subscribed'],
  ['GET /api/contacts/retrieve/con_1'],
  ['DELETE /api/contacts/con_1'],
  ['POST /api/contacts/channel/ch_news', { email: 'a@b.c', subscription: 'opt_in' }],
  ['POST /api/contacts/channel/ch_news', { contact_id: 'con_1', subscription: 'opt_out' }],
  ['GET /api/template/v1/list?page=1'],
  ['POST /api/template/v1/create', { name: 'One', content: [{ type: 'text' }] }],
  ['PUT /api/template/v1/tpl_1', { subject: 'Hi {{name}}', variables: [], status: 'draft' }],
  ['POST /api/template/v1/tpl_1/test', { to: 'a@b.c', variables: { name: 'Ann' } }],
  ['POST /api/domain/v1/create', { domain: 'one.example', tls: 'enforced' }],
  ['GET /api/domain/v1/verify/dom_1'],
  ['GET /api/domain/v1/nameservers/dom_1'],
  ['POST /api/api-key/v1/enable/key_1'],
  ['GET /openapi.json'],
  ['GET /docs'],
  ['GET /_emulator/state'],
  ['POST /_emulator/sign-up', { email: 'a@b.c', channel: 'ch_news' }],
  ['POST /_emulator/leave', { contact: 'con_1', channel: 'ch_news' }],
  ['POST /_emulator/edit-template', { template: 'tpl_1', fields: { subject: 'x' } }],
  ['GET /'],
];

const lines = requests.map(([line]) => line);
const bodies = requests.flatMap(([, body]) => (body === undefined ? [] : [body]));

export const emulatorArea = area('emulator', async () => {
  const platform = stage({ limits: ['*=1000000/1'] });
  platform.seed.contact({ id: 'con_1', email: 'a@b.c', channels: { ch_news: 'opt_in' } });
  platform.seed.template({ id: 'tpl_1', name: 'One', subject: '{{name}}' });
  platform.seed.domain({ id: 'dom_1', domain: 'one.example' });
  platform.seed.key({ id: 'key_1', secret: 'key_live_other', enabled: false });
  const served = await serve(platform, 0);
  const port = Number(new URL(served.url).port);
  const json = (value: unknown) => (value === undefined ? '' : JSON.stringify(value));
  const anyBody = fc.oneof(mutated(bodies.map(json)), strangeValue.map(json), fc.constant(''));
  const asked = fc.oneof(
    {
      weight: 3,
      arbitrary: fc
        .constantFrom(...requests)
        .chain(([line, body]) =>
          fc.tuple(fc.constant(line), fc.oneof(fc.constant(body), twisted([body])).map(json)),
        ),
    },
    {
      weight: 2,
      arbitrary: fc.tuple(fc.oneof(fc.constantFrom(...lines), mutated(lines)), anyBody),
    },
  );
  const key = fc.oneof(
    { weight: 6, arbitrary: fc.constant(`x-api-key: ${KEY}`) },
    { weight: 1, arbitrary: fc.tuple(scrap, scrap).map((pair) => pair.join(': ')) },
  );
  const whole = fc
    .tuple(asked, key)
    .map(([[line, body], header]) => rawRequest(line, header, body));
  return {
    inputs: fc.oneof(
      { weight: 5, arbitrary: whole },
      { weight: 1, arbitrary: whole.chain((raw) => mutated([raw])) },
    ),
    async judge(raw) {
      const text = await exchange(port, raw);
      // Where a request does not end, or another one is left over, the connection just ends.
      if (text === '') return;
      const status = Number(/^HTTP\/1\.[01] (\d{3}) /.exec(text)?.[1]);
      if (!answers.has(status)) throw new Error(`is answered by ${status}: ${text.slice(0, 300)}`);
      const said = bodyOf(text);
      if (status < 400 || said === undefined || raw.startsWith('HEAD ')) return;
      const { message } = JSON.parse(said);
      if (typeof message !== 'string') throw new Error(`is refused without a message: ${said}`);
      judgeText(message);
    },
    close: async () => served.close(),
  };
});

/** Of the first answer, where it is JSON: others may follow. */
function bodyOf(text: string): string | undefined {
  const [head = ''] = text.split('\r\n\r\n');
  if (!/^content-type: application\/json/im.test(head)) return undefined;
  const length = Number(/^content-length: (\d+)/im.exec(head)?.[1]);
  return Buffer.from(text.slice(head.length + 4))
    .subarray(0, length)
    .toString();
}

function rawRequest(line: string, header: string, body: string): string {
  const length = Buffer.byteLength(body);
  const head = [`${line} HTTP/1.1`, 'host: localhost', 'connection: close', header];
  return [...head, `content-length: ${length}`, '', body].join('\r\n');
}

/** All that comes back until the connection ends; the other side hears that no more follows. */
async function exchange(port: number, raw: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  let text = '';
  const socket = connect(port, '127.0.0.1', () => socket.end(Buffer.from(raw)));
  socket.on('data', (chunk) => (text += chunk.toString()));
  socket.on('close', () => resolve(text));
  socket.on('error', (error: NodeJS.ErrnoException) => {
    // Who is refused before all was sent may see the connection cut.
    if (error.code === 'ECONNRESET' || error.code === 'EPIPE') resolve(text);
    else reject(error);
  });
  return promise;
}
