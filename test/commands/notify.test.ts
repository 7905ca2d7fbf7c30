/** `notify test`: whether each receiver of notifications takes a message. */
import { expect, test } from 'vitest';
import { freePort } from '../support/waiting.ts';
import { mirrored } from '../support/commands/mirrored-contacts.ts';
import { mailServer, receiver } from '../support/commands/notice-receivers.ts';

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const password = 'wrong-word';

/** A mirror with a receiver that takes messages, one that refuses them and one that is away. */
async function threeReceivers() {
  const hook = await receiver();
  const { host } = await mailServer();
  const away = `http://127.0.0.1:${await freePort()}/T0/B0-secret`;
  const smtp = `smtp://${host}`;
  const email = { smtp, user: 'ops', password, from: 'a@x.example', to: ['b@x.example'] };
  const hides = ['B0-secret', password, secret, 'b@x.example'];
  const world = await mirrored({ hides });
  const to = [{ email }, { slack: { url: away } }];
  world.config({ notices: { url: hook.url, secret, to } });
  return { world, hook, host, away: away.replace(/^http:..|\/T0.*$/g, '') };
}

test('sends to each receiver once and prints one line for each', async () => {
  const { world, hook, host, away } = await threeReceivers();
  const { code, out } = await world.call('notify', 'test');
  expect(code).toBe(1);
  expect(out.split('\n')).toEqual([
    expect.stringMatching(/^webhook \(127\.0\.0\.1:\d+\): sent$/),
    `email (${host}): not sent: ${host} refuses the user or the password (535) → ` +
      'correct user and password, then restart the worker',
    expect.stringMatching(
      new RegExp(`^slack \\(${away}\\): not sent: ${away} .* → try again later; if it goes on, `),
    ),
  ]);
  expect(hook.heard.map(({ body }) => JSON.parse(body))).toMatchObject([
    { type: 'mirror.test', data: { mirror: 'world', run: null, fix: '' } },
  ]);
});

test('sends to one receiver with --to, and prints a document', async () => {
  const { world, hook } = await threeReceivers();
  const { code, json } = await world.call('notify', 'test', '--to', 'webhook', '--json');
  expect(code).toBe(0);
  expect(json).toEqual({
    mirror: 'world',
    receivers: [
      {
        name: 'webhook',
        kind: 'webhook',
        host: expect.any(String),
        sent: true,
        reason: null,
        fix: null,
      },
    ],
  });
  expect(hook.heard).toHaveLength(1);
});

test('says which receivers there are if none has the name', async () => {
  const { world } = await threeReceivers();
  const { code, err } = await world.call('notify', 'test', '--to', 'ops');
  expect(code).toBe(2);
  expect(err).toContain(
    '--to ops: notices has no receiver of this name → use webhook or email or slack',
  );
});

test('says when a mail server refuses one of the recipients', async () => {
  const { mails, host } = await mailServer({
    onRcptTo({ address }, _session, done) {
      done(address === 'gone@x.example' ? new Error('no such user') : null);
    },
  });
  const to = ['gone@x.example', 'b@x.example'];
  const email = { smtp: `smtp://${host}`, from: 'a@x.example', to };
  const world = await mirrored({ hides: ['gone@'] });
  world.config({ notices: { to: [{ email }] } });
  const { code, out } = await world.call('notify', 'test');
  expect([code, out]).toEqual([0, `email (${host}): sent: ${host} refuses 1 recipient`]);
  expect(mails).toMatchObject([{ to: ['b@x.example'], user: undefined }]);
});

test('sync --notify runs nothing if nobody is to be told', async () => {
  const world = await mirrored();
  const { code, err } = await world.call('sync', '--notify');
  expect([code, world.writes()]).toEqual([2, []]);
  expect(err).toContain('--notify: ');
  expect(err).toContain('names no receiver → add notices: ');
});
