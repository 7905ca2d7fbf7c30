/** Where a worker tells what is wrong, as it is configured. */
import { afterAll, expect, it } from 'vitest';
import { makeFolder, minimal } from '../support/config/config-folder.ts';

const { load, mistakes, remove } = makeFolder();
afterAll(remove);

const block = (url: string, secret: string): string =>
  minimal(`notices: { url: '${url}', secret: '${secret}' }`);
const good = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

it('is absent unless it is configured', () => {
  expect(load(minimal()).notices).toBeUndefined();
});

it.each(['https://x.example/hook?to=ops', 'http://127.0.0.1:9/x', 'http://localhost/'])(
  'takes %s',
  (url) => expect(load(block(url, good)).notices).toEqual({ url, secret: good }),
);

it.each([
  ['http://x.example/', good, 'url  would send it unencrypted  → use https'],
  [' http://x.example/', good, 'url  would send it unencrypted  → use https'],
  ['ht\ttp://x.example/', good, 'url  would send it unencrypted  → use https'],
  ['ftp://x.example/', good, 'url  is no web address  → write https://HOST/PATH'],
  ['https://ann:pw@x.example/', good, 'url  is no web address  → write https://HOST/PATH'],
  [
    'https://x.example/',
    'not base64!',
    'secret  is empty or holds what a header cannot carry  → write the key alone',
  ],
  [
    'https://x.example/',
    'whsec_?',
    'secret  is no secret of Standard Webhooks' +
      '  → write whsec_ and then base64 (openssl rand -base64 32)',
  ],
])('refuses %s with %s', (url, secret, line) => {
  const found = mistakes(block(url, secret))?.map((text) => text.replace(/^\S+ {2}notices\./, ''));
  expect(found?.[0]).toBe(line);
});

const receivers = (...entries: string[]): string =>
  minimal(`notices: { to: [${entries.join(', ')}] }`);
const slack = (more = '') => `{ slack: { url: 'https://x.example/T0/B0' }${more} }`;
const mail = (more: string) => `{ email: { from: a@x.example, to: [b@x.example], ${more} } }`;

it('takes a list of receivers, also beside url and secret', () => {
  const hook = `{ webhook: { url: 'https://x.example/', secret: '${good}' }, name: second }`;
  const text = `notices: { url: 'https://y.example/', secret: '${good}', to: [${slack()}, ${hook}] }`;
  expect(load(minimal(text)).notices?.to).toEqual([
    { slack: { url: 'https://x.example/T0/B0' }, level: 'warning' },
    { webhook: { url: 'https://x.example/', secret: good }, name: 'second', level: 'warning' },
  ]);
});

it.each([
  'smtp: smtps://mail.example',
  "smtp: 'smtp://mail.example:587', user: ops, password: 'p@ss/w#rd'",
  "smtp: 'smtp://[::1]:25'",
])('takes a mail server: %s', (given) => {
  expect(load(receivers(mail(given))).notices?.to).toHaveLength(1);
});

const noServer =
  'is no address of a mail server  → write smtps://HOST, or smtp://HOST:587 for STARTTLS; ' +
  'user and password are keys of their own';

it.each([
  ['{}', 'to  is missing, and so is url  → list at least one receiver'],
  ['{ to: [] }', 'to  is empty  → fill it (Further receivers)'],
  [
    "{ url: 'https://x.example/' }",
    'secret  is missing  → add "secret: …" (Secret for the signature, in the format of Standard Webhooks)',
  ],
  [
    `{ to: [${slack()}, ${slack()}] }`,
    'to[1]  has the name of another receiver  → give it a name of its own: name: …',
  ],
  [
    '{ to: [{ level: error }] }',
    'to[0]  has to name one of slack, teams, ntfy, email, webhook  → ' +
      'write one of them, and a further entry for another receiver',
  ],
  [
    "{ to: [{ ntfy: { url: 'http://ntfy.example/topic' } }] }",
    'to[0].ntfy.url  would send it unencrypted  → use https',
  ],
  [
    `{ to: [${slack(', events: [sunny]')}] }`,
    'to[0].events[0]  is not known here  → use unreadable or held or opt_outs or quarantined or failed or stale or alert',
  ],
  [`{ to: [${mail("smtp: 'smtps://ops:pw@mail.example'")}] }`, `to[0].email.smtp  ${noServer}`],
  [
    `{ to: [${mail("smtp: 'smtps://mail.example', user: ops")}] }`,
    'to[0].email.password  is missing, and there is a user  → add password, or remove user',
  ],
  ['{ to: [null] }', 'to[0]  is empty  → fill the entry or remove it'],
])('refuses %s', (text, line) => {
  const found = mistakes(minimal(`notices: ${text}`))?.map((one) =>
    one.replace(/^\S+ {2}notices\./, ''),
  );
  expect(found).toEqual([line]);
});
