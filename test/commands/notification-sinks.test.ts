/** What each receiver of notifications gets, and what happens while it is away. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/http/system-clock.ts';
import { slackSink } from '../../src/worker/notifications/sinks.ts';
import { ann, bob } from '../support/commands/mirrored-contacts.ts';
import { mailServer, receiver, refusing, reporting } from '../support/commands/notice-receivers.ts';
import { certify, run } from '../support/program.ts';

const publicUrl = 'https://crm-mirror.example.com';
const server = { publicUrl };
const page = `${publicUrl}/m/world`;

/** More people than the guard for opt-ins lets pass. */
const crowd = Array.from({ length: 300 }, (_, at) => ({ email: `p${at}@x.org`, news: 'yes' }));

/** A first run that ends well, and then one that holds changes and fails to read the platform. */
async function inTrouble({ world, run }: Awaited<ReturnType<typeof reporting>>) {
  expect(await run()).toBe(0);
  world.people([{ email: ann, news: 'yes' }, ...crowd]);
  expect((await world.call('sync')).code).toBe(3);
  const fault = refusing(world, 403);
  return { fault, fix: `What to do: see \`crm-mirror plan -c ${world.file}\`` };
}

const parsed = (body: string | undefined) => JSON.parse(body ?? '');

test('Slack gets one message for all that a run found, with remedies and a link', async () => {
  const { heard, url } = await receiver();
  const mirror = await reporting({ to: [{ slack: { url } }] }, server);
  const { fault, fix } = await inTrouble(mirror);
  expect(await mirror.run()).toBe(1);
  expect(heard).toHaveLength(1);
  const { text, blocks } = parsed(heard[0]?.body);
  expect(text).toMatch(
    /^world: the last run failed, and 1 more\nWarning: changes await approval\n/,
  );
  const texts = blocks.map((block: { text: { text: string } }) => block.text.text);
  expect(texts).toEqual([
    'world: the last run failed, and 1 more',
    expect.stringMatching(/^\*Warning: changes await approval\*\n300 people to be created/),
    expect.stringMatching(/^\*Error: the last run failed\*\nthe last full run/),
    `<${page}|Open the console>`,
  ]);
  expect(texts[1]).toContain(fix);
  // Each has a page of its own, and the button leads to the overview.
  expect(texts[1]).toMatch(new RegExp(`\\n${page}/approvals$`));
  expect(texts[2]).toMatch(new RegExp(`\\n${page}/runs$`));
  fault.undo();
  await mirror.run();
  await mirror.run();
  expect(heard).toHaveLength(2);
  expect(parsed(heard[1]?.body).blocks[0].text.text).toBe('world: runs end well again');
  for (const { body } of heard)
    for (const one of [ann, bob, '@x.org']) expect(body).not.toContain(one);
});

test('Slack gets no link and no mention from a text', async () => {
  const { heard, url } = await receiver();
  const sink = slackSink({ url }, systemClock);
  const reason = 'the CRM answers <!channel> & <https://x.example|here>';
  const item = { type: 'mirror.failed', level: 'error', title: 'failed', reason, fix: '' } as const;
  const message = { id: 'msg_1', at: 0, mirror: 'acme', run: null, link: undefined };
  await sink.deliver({ ...message, items: [item] }, new AbortController().signal);
  await sink.close();
  expect(heard[0]?.body).toContain('&lt;!channel&gt; &amp; &lt;https://x.example|here&gt;');
  expect(heard[0]?.body).not.toMatch(/<[!h]/);
});

test('Teams gets an Adaptive Card', async () => {
  const { heard, url } = await receiver({ status: 202 });
  const mirror = await reporting({ to: [{ teams: { url } }] }, server);
  const { fix } = await inTrouble(mirror);
  await mirror.run();
  expect(heard).toHaveLength(1);
  expect(heard[0]?.path).toBe('/hooks/crm?to=ops');
  const { type, attachments } = parsed(heard[0]?.body);
  expect(type).toBe('message');
  expect(attachments).toHaveLength(1);
  const [{ contentType, content }] = attachments;
  expect(contentType).toBe('application/vnd.microsoft.card.adaptive');
  expect(content).toMatchObject({
    type: 'AdaptiveCard',
    version: '1.4',
    actions: [{ type: 'Action.OpenUrl', url: page }],
  });
  const texts = content.body.map(
    (block: { inlines: { text: string }[] }) => block.inlines[0]?.text,
  );
  expect(texts).toEqual([
    'world: the last run failed, and 1 more',
    'Warning: changes await approval',
    expect.stringMatching(/^300 people/),
    expect.stringContaining(fix),
    'Error: the last run failed',
    expect.stringMatching(/^the last full run/),
    expect.stringMatching(/^What to do: /),
  ]);
});

test('ntfy gets a title, a priority, a link and its token', async () => {
  const { heard, origin } = await receiver();
  const ntfy = { url: `${origin}/crm`, token: 'tk_secret' };
  const mirror = await reporting({ to: [{ ntfy }] }, server);
  const { fault, fix } = await inTrouble(mirror);
  await mirror.run();
  expect(heard[0]).toMatchObject({
    path: '/crm',
    headers: {
      title: 'world: the last run failed, and 1 more',
      priority: '4',
      tags: 'rotating_light',
      click: page,
      authorization: 'Bearer tk_secret',
    },
  });
  expect(heard[0]?.body).toContain(fix);
  fault.undo();
  await mirror.run();
  expect(heard[1]?.headers).toMatchObject({
    priority: '2',
    title: 'world: runs end well again',
  });
});

const email = (host: string, password = 'p@ss/w#rd') => ({
  smtp: `smtp://${host}`,
  user: 'ops',
  password,
  from: 'crm-mirror <crm-mirror@example.com>',
  to: ['ops@example.com', 'crm@example.com'],
});

test('e-mail goes to all recipients of one receiver', async () => {
  const { mails, host } = await mailServer();
  const mirror = await reporting({ to: [{ email: email(host) }] }, server);
  const { fix } = await inTrouble(mirror);
  await mirror.run();
  expect(mails).toMatchObject([{ to: ['ops@example.com', 'crm@example.com'], user: 'ops' }]);
  const mail = (mails[0]?.text ?? '').replaceAll(/=\r\n/g, '').replaceAll('=3D', '=');
  expect(mail).toContain('Subject: [crm-mirror] world: the last run failed, and 1 more');
  expect(mail).toContain('Auto-Submitted: auto-generated');
  expect(mail).toMatch(/Message-ID: <msg_\w+@example\.com>/);
  for (const one of ['Warning: changes await approval', fix, `Console: ${page}`])
    expect(mail).toContain(one);
  for (const one of [ann, bob, '@x.org']) expect(mail).not.toContain(one);
});

test('a wrong password is one line without the password, said once by a process', async () => {
  const { mails, host } = await mailServer();
  const mirror = await reporting({ to: [{ email: email(host, 'wrong-word') }] });
  refusing(mirror.world, 403);
  const notifier = mirror.begin();
  for (let nth = 0; nth < 2; nth += 1) {
    await mirror.world.call('sync');
    notifier.ran();
  }
  await notifier.close();
  expect(mails).toEqual([]);
  expect(mirror.told).toMatchObject([
    {
      to: 'email',
      why: `${host} refuses the user or the password (535) → correct user and password, then restart the worker`,
    },
  ]);
});

test('a mail server that defers is tried again', async () => {
  let deferred = 2;
  const { mails, host } = await mailServer({
    onMailFrom(_address, _session, done) {
      deferred -= 1;
      done(deferred < 0 ? null : Object.assign(new Error('later'), { responseCode: 451 }));
    },
  });
  const mirror = await reporting({ to: [{ email: email(host) }] });
  refusing(mirror.world, 403);
  await mirror.run();
  expect(mails).toHaveLength(1);
  expect(mirror.told.map(({ why }) => why)).toEqual([undefined]);
});

test('a mail server without trusted encryption gets nothing', async () => {
  const { mails, host } = await mailServer({ secure: true });
  const smtp = `smtps://${host}`;
  const mirror = await reporting({ to: [{ email: { ...email(host), smtp } }] });
  refusing(mirror.world, 403);
  await mirror.run();
  expect(mails).toEqual([]);
  expect(mirror.told[0]?.why).toMatch(/offers no encryption that can be trusted \([A-Z_]+\) → /);
});

/** A run of `notify test` by a process that trusts a certificate, at a server that has it. */
test('a mail server with a certificate of its own authority gets mail over TLS', async (context) => {
  const folder = mkdtempSync(join(tmpdir(), 'crm-mirror-mail-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const made = (await certify(folder)) ?? context.skip('openssl is not installed');
  const [key, cert] = [readFileSync(made.key), readFileSync(made.certificate)];
  const { mails, host } = await mailServer({ secure: true, key, cert, allowInsecureAuth: false });
  const smtp = `smtps://${host.replace('127.0.0.1', 'localhost')}`;
  const { world } = await reporting({ to: [{ email: { ...email(host), smtp } }] });
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: made.certificate };
  const argv = ['bin/crm-mirror.mjs', 'notify', 'test', '-c', world.file];
  const { stdout } = await run(process.execPath, argv, { env });
  expect(stdout).toMatch(/^email \(localhost:\d+\): sent\n$/);
  expect(mails).toMatchObject([{ user: 'ops' }]);
});

test('another machine gets neither a mail nor a password without encryption', async () => {
  const logins: string[] = [];
  const { mails, host } = await mailServer({
    onAuth({ username }, _session, done) {
      logins.push(String(username));
      done(null, { user: 'ops' });
    },
  });
  // This address leads to the same server and is not known to stay on this machine.
  const smtp = `smtp://${host.replace('127.0.0.1', '0.0.0.0')}`;
  const mirror = await reporting({ to: [{ email: { ...email(host), smtp } }] });
  refusing(mirror.world, 403);
  await mirror.run();
  expect([mails, logins]).toEqual([[], []]);
  expect(mirror.told[0]?.why).toMatch(/^0\.0\.0\.0:\d+ offers no encryption .* \(ETLS\) → /);
});

test('waits as long as a receiver asks, if that is short', async () => {
  const { heard, url } = await receiver({ status: 429, headers: { 'retry-after': '30' } }, 503);
  const mirror = await reporting({ to: [{ slack: { url } }] });
  refusing(mirror.world, 403);
  const before = mirror.clock.now();
  await mirror.run();
  expect(heard).toHaveLength(3);
  expect(mirror.clock.now() - before).toBeGreaterThanOrEqual(30_000);
  expect(mirror.told.map(({ why }) => why)).toEqual([undefined]);
});

test('leaves a receiver alone for as long as it asks, if that is long', async () => {
  const { heard, url } = await receiver({ status: 429, headers: { 'retry-after': '3600' } });
  const mirror = await reporting({ to: [{ teams: { url } }] });
  refusing(mirror.world, 403);
  const notifier = mirror.begin();
  const again = async () => {
    await mirror.world.call('sync');
    notifier.ran();
  };
  await again();
  await expect.poll(() => mirror.told).toHaveLength(1);
  await again();
  expect(heard).toHaveLength(1);
  mirror.clock.pass(3_600_000);
  await again();
  await notifier.close();
  expect(heard).toHaveLength(2);
});

test('a refusal is printed once, with the host alone and with a remedy', async () => {
  const gone = { status: 404, body: 'no_service' };
  const { heard, url, origin } = await receiver(gone, gone, gone);
  const mirror = await reporting({ to: [{ slack: { url } }] });
  refusing(mirror.world, 403);
  const notifier = mirror.begin();
  for (let nth = 1; nth <= 3; nth += 1) {
    await mirror.world.call('sync');
    notifier.ran();
    await expect.poll(() => heard).toHaveLength(nth);
  }
  await notifier.close();
  const host = origin.replace('http://', '');
  expect(mirror.told.map(({ why }) => why)).toEqual([
    `${host} answers 404: no_service → create a new incoming webhook of Slack and write its URL ` +
      'into notices, then restart the worker',
  ]);
});

test('events and level choose what a receiver hears', async () => {
  const receivers = await Promise.all([receiver(), receiver(), receiver()]);
  const urls = receivers.map(({ url }) => url);
  const mirror = await reporting({
    to: [
      { slack: { url: urls[0] }, events: ['held'] },
      { slack: { url: urls[1] }, level: 'error', name: 'night' },
      { ntfy: { url: urls[2] }, events: ['stale', 'alert'] },
    ],
  });
  const { fault } = await inTrouble(mirror);
  await mirror.run();
  fault.undo();
  await mirror.run();
  const titles = receivers.map(({ heard }) =>
    heard.map(({ body, headers }) => headers['title'] ?? parsed(body).blocks[0].text.text),
  );
  expect(titles).toEqual([
    ['world: changes await approval'],
    ['world: the last run failed', 'world: runs end well again'],
    [],
  ]);
});
